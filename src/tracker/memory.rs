//! A board in memory that behaves as a real one, and misbehaves as told: for tests of everything that talks to a tracker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Tracker, TrackerError};
use crate::domain::comment::{Author, Comment};
use crate::domain::ids::{CommentId, TicketId, TicketKey};
use crate::domain::permit::Permit;
use crate::domain::ticket::{Dispatchable, NewTicket, Ticket, normalise_labels, same_state, state_in};
use crate::domain::time::Timestamp;

/// What goes wrong with a coming call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Fails(TrackerError),
    /// The write takes effect, its answer does not arrive.
    FailsAfterWriting(TrackerError),
    Late(Duration),
    /// A read is answered with the board as [`MemoryTracker::freeze`] saw it.
    Stale,
    Fine,
}

#[derive(Debug, Default)]
struct Board {
    tickets: BTreeMap<TicketId, Ticket>,
    frozen: BTreeMap<TicketId, Ticket>,
    keys: BTreeMap<String, TicketId>,
    comment_keys: BTreeMap<(TicketId, String), CommentId>,
    faults: VecDeque<Fault>,
    calls: u64,
    made: u64,
    clock: i64,
}

#[derive(Debug)]
pub struct MemoryTracker {
    board: Mutex<Board>,
    changes: watch::Sender<u64>,
}

impl Default for MemoryTracker {
    fn default() -> Self {
        Self { board: Mutex::default(), changes: watch::channel(0).0 }
    }
}

impl MemoryTracker {
    pub fn new(tickets: impl IntoIterator<Item = Ticket>) -> Self {
        let tracker = Self::default();
        for ticket in tickets {
            tracker.put(ticket);
        }
        tracker
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds or replaces a ticket, as a person would.
    pub fn put(&self, mut ticket: Ticket) {
        ticket.labels = normalise_labels(&ticket.labels);
        self.board().tickets.insert(ticket.id.clone(), ticket);
        self.changed();
    }

    /// Lets a person change a ticket.
    pub fn edit(&self, id: &TicketId, change: impl FnOnce(&mut Ticket)) {
        let mut board = self.board();
        board.clock += 1;
        let now = Timestamp(board.clock);
        if let Some(ticket) = board.tickets.get_mut(id) {
            change(ticket);
            ticket.labels = normalise_labels(&ticket.labels);
            ticket.updated_at = Some(now);
        }
        drop(board);
        self.changed();
    }

    pub fn remove(&self, id: &TicketId) {
        self.board().tickets.remove(id);
        self.changed();
    }

    /// Lets somebody write on a ticket.
    pub fn say(&self, id: &TicketId, author: Author, body: &str) -> CommentId {
        let mut board = self.board();
        let id = board.post(id, author, body);
        drop(board);
        self.changed();
        id
    }

    pub fn ticket(&self, id: &TicketId) -> Option<Ticket> {
        self.board().tickets.get(id).cloned()
    }

    /// How many calls have reached the board.
    pub fn calls(&self) -> u64 {
        self.board().calls
    }

    /// Remembers the board as it is now, for stale answers.
    pub fn freeze(&self) {
        let mut board = self.board();
        board.frozen = board.tickets.clone();
    }

    /// One fault for each of the coming calls, in order.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.board().faults.extend(faults);
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Takes the next fault; a late answer waits before anything happens.
    async fn next_fault(&self) -> Result<Fault, TrackerError> {
        let fault = {
            let mut board = self.board();
            board.calls += 1;
            board.faults.pop_front().unwrap_or(Fault::Fine)
        };
        match fault {
            Fault::Fails(error) => Err(error),
            Fault::Late(span) => {
                tokio::time::sleep(span).await;
                Ok(Fault::Fine)
            }
            other => Ok(other),
        }
    }

    async fn read<T>(&self, look: impl FnOnce(&BTreeMap<TicketId, Ticket>) -> T) -> Result<T, TrackerError> {
        let fault = self.next_fault().await?;
        let board = self.board();
        Ok(look(if fault == Fault::Stale { &board.frozen } else { &board.tickets }))
    }

    async fn write<T>(&self, change: impl FnOnce(&mut Board) -> Result<T, TrackerError>) -> Result<T, TrackerError> {
        let fault = self.next_fault().await?;
        let done = {
            let mut board = self.board();
            board.clock += 1;
            change(&mut board)
        };
        self.changed();
        match fault {
            Fault::FailsAfterWriting(error) => Err(error),
            _ => done,
        }
    }
}

impl Board {
    fn post(&mut self, id: &TicketId, author: Author, body: &str) -> CommentId {
        self.made += 1;
        self.clock += 1;
        let comment = Comment {
            id: CommentId::new(format!("c{}", self.made)),
            author,
            body: body.to_owned(),
            created_at: Some(Timestamp(self.clock)),
            updated_at: None,
        };
        let made = comment.id.clone();
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.comments.push(comment);
        }
        made
    }

    fn find(&mut self, id: &TicketId) -> Result<&mut Ticket, TrackerError> {
        self.tickets.get_mut(id).ok_or_else(|| TrackerError::NotFound(id.clone()))
    }
}

#[async_trait]
impl Tracker for MemoryTracker {
    fn kind(&self) -> &'static str {
        "memory"
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|tickets| tickets.values().filter(|ticket| state_in(&ticket.state, states)).cloned().collect()).await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<Ticket>, TrackerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|tickets| tickets.values().filter(|ticket| ids.contains(&ticket.id)).cloned().collect()).await
    }

    async fn comments(&self, id: &TicketId) -> Result<Vec<Comment>, TrackerError> {
        let found = self.read(|tickets| tickets.get(id).map(|ticket| ticket.comments.clone())).await?;
        found.ok_or_else(|| TrackerError::NotFound(id.clone()))
    }

    async fn comment(&self, _: &Permit, id: &TicketId, key: &str, body: &str) -> Result<CommentId, TrackerError> {
        self.write(|board| {
            board.find(id)?;
            let known = (id.clone(), key.to_owned());
            if let Some(made) = board.comment_keys.get(&known) {
                return Ok(made.clone());
            }
            let made = board.post(id, Author::ourselves(), body);
            board.comment_keys.insert(known, made.clone());
            Ok(made)
        })
        .await
    }

    async fn edit_comment(
        &self,
        _: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<(), TrackerError> {
        self.write(|board| {
            let now = Timestamp(board.clock);
            let ticket = board.find(id)?;
            let found = ticket.comments.iter_mut().find(|known| known.id == *comment);
            let Some(found) = found.filter(|known| known.author.ourselves) else {
                return Err(TrackerError::Refused(format!("comment {comment} is not ours to edit")));
            };
            found.body = body.to_owned();
            found.updated_at = Some(now);
            Ok(())
        })
        .await
    }

    async fn move_ticket(&self, _: &Permit, id: &TicketId, state: &str) -> Result<(), TrackerError> {
        self.write(|board| {
            let now = Timestamp(board.clock);
            let ticket = board.find(id)?;
            if !same_state(&ticket.state, state) {
                ticket.state = state.to_owned();
                ticket.updated_at = Some(now);
            }
            Ok(())
        })
        .await
    }

    async fn create_ticket(&self, _: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        self.write(|board| {
            if let Some(made) = board.keys.get(key) {
                return Ok(made.clone());
            }
            board.made += 1;
            let id = TicketId::new(format!("new-{}", board.made));
            let ticket = Ticket {
                id: id.clone(),
                key: TicketKey::new(id.as_str()),
                title: new.title.clone(),
                description: Some(new.description.clone()),
                priority: new.priority,
                state: "Todo".into(),
                branch_name: None,
                url: None,
                assignee: None,
                author: Some(Author::ourselves()),
                labels: normalise_labels(&new.labels),
                blocked_by: Vec::new(),
                parent: new.parent.clone(),
                dispatchable: Dispatchable::Yes,
                created_at: Some(Timestamp(board.clock)),
                updated_at: None,
                native_ref: None,
                comments: Vec::new(),
            };
            board.tickets.insert(id.clone(), ticket);
            board.keys.insert(key.to_owned(), id.clone());
            Ok(id)
        })
        .await
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    async fn probe(&self) -> Result<String, TrackerError> {
        self.read(|tickets| format!("{} tickets in memory", tickets.len())).await
    }
}
