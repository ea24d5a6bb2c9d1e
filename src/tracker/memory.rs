//! A board in memory that behaves as a real one, and misbehaves as told: for tests of everything that talks to a tracker.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{
    Account, Acknowledgement, BoardAnswer, BoardReading, Capabilities, CommentFound, Edited, Found, Mark, Move,
    Tracker, TrackerError, Written,
};
use crate::domain::comment::{Author, Comment, TrustLevel};
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
    faults: VecDeque<Fault>,
    calls: u64,
    made: u64,
    clock: i64,
    /// The person whose account we write with; `None` where we have one of our own.
    shared: Option<Author>,
    hidden: BTreeSet<TicketId>,
    unreadable: BTreeMap<TicketId, String>,
    permissions: BTreeMap<String, TrustLevel>,
    reactions: Vec<(CommentId, Acknowledgement)>,
    links: BTreeMap<(TicketId, String), String>,
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

    /// Lets us write with a person's own account.
    pub fn share_account(&self, person: Author) {
        self.board().shared = Some(person);
    }

    /// Lets a ticket be missing from complete answers without being gone.
    pub fn hide(&self, id: &TicketId, hidden: bool) {
        let mut board = self.board();
        if hidden {
            board.hidden.insert(id.clone())
        } else {
            board.hidden.remove(id)
        };
        drop(board);
        self.changed();
    }

    /// Lets a ticket be there and not be understood.
    pub fn garble(&self, id: &TicketId, why: Option<&str>) {
        let mut board = self.board();
        match why {
            Some(why) => board.unreadable.insert(id.clone(), why.to_owned()),
            None => board.unreadable.remove(id),
        };
        drop(board);
        self.changed();
    }

    pub fn grant(&self, login: &str, trust: TrustLevel) {
        self.board().permissions.insert(login.to_owned(), trust);
    }

    pub fn reactions(&self) -> Vec<(CommentId, Acknowledgement)> {
        self.board().reactions.clone()
    }

    pub fn links(&self, id: &TicketId) -> Vec<(String, String)> {
        let board = self.board();
        let of = board.links.iter().filter(|((ticket, _), _)| ticket == id);
        of.map(|((_, url), title)| (url.clone(), title.clone())).collect()
    }

    /// Lets somebody take a comment back.
    pub fn unsay(&self, id: &TicketId, comment: &CommentId) {
        self.edit(id, |ticket| {
            if let Some(comments) = &mut ticket.comments {
                comments.retain(|known| known.id != *comment);
            }
        });
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

    async fn read<T>(&self, look: impl FnOnce(&BTreeMap<TicketId, Ticket>, &Board) -> T) -> Result<T, TrackerError> {
        let fault = self.next_fault().await?;
        let board = self.board();
        Ok(look(if fault == Fault::Stale { &board.frozen } else { &board.tickets }, &board))
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
            ticket.comments.get_or_insert_default().push(comment);
            ticket.updated_at = Some(Timestamp(self.clock));
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

    fn capabilities(&self) -> Capabilities {
        Capabilities { labels: true, reactions: true, links: true }
    }

    async fn whoami(&self) -> Result<Account, TrackerError> {
        self.read(|_, board| match &board.shared {
            Some(person) => Account { login: person.name.clone(), shared_with_person: true },
            None => Account { login: "dirigent".to_owned(), shared_with_person: false },
        })
        .await
    }

    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError> {
        self.read(|_, board| board.permissions.get(login).copied().unwrap_or(TrustLevel::Stranger)).await
    }

    async fn poll(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        let asked_at = Some(Timestamp(self.board().clock));
        let changes = *self.changes.borrow();
        let mark = Mark(changes.to_string());
        if since == Some(&mark) {
            self.read(|_, _| ()).await?;
            return Ok(BoardReading { asked_at, answer: BoardAnswer::Unchanged });
        }
        let tickets = self.fetch_by_states(states).await?;
        Ok(BoardReading { asked_at, answer: BoardAnswer::Listed { tickets, mark: Some(mark) } })
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|tickets, board| {
            let shown = |ticket: &&Ticket| {
                state_in(&ticket.state, states)
                    && !board.hidden.contains(&ticket.id)
                    && !board.unreadable.contains_key(&ticket.id)
            };
            tickets.values().filter(shown).cloned().collect()
        })
        .await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|tickets, board| {
            let found = |id: &TicketId| match (tickets.get(id), board.unreadable.get(id)) {
                (_, Some(why)) => Found::Unreadable(why.clone()),
                _ if board.hidden.contains(id) => Found::NotVisible,
                (Some(ticket), None) => Found::Ticket(ticket.clone()),
                (None, None) => Found::Gone("nobody has it".to_owned()),
            };
            ids.iter().map(|id| (id.clone(), found(id))).collect()
        })
        .await
    }

    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        let found = self.read(|tickets, _| tickets.get(id).map(|ticket| ticket.known_comments().to_vec())).await?;
        let mut comments = found.ok_or_else(|| TrackerError::NotFound(id.clone()))?;
        comments.retain(|comment| since.is_none() || comment.updated_at.max(comment.created_at) >= since);
        Ok(comments)
    }

    async fn find_comment(&self, id: &TicketId, wanted: &CommentId) -> Result<CommentFound, TrackerError> {
        let there = self.comments(id, None).await?.iter().any(|comment| comment.id == *wanted);
        Ok(if there { CommentFound::There } else { CommentFound::Gone })
    }

    async fn comment(
        &self,
        _: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        _decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        self.write(|board| {
            let marker = format!("<!-- dirigent:{key} -->");
            let known = board.find(id)?.known_comments().iter().find(|comment| comment.body.contains(&marker));
            if let Some(known) = known {
                return Ok(Written { id: known.id.clone(), existed: true });
            }
            let author = board.shared.clone().unwrap_or_else(Author::ourselves);
            let made = board.post(id, author, &format!("{body}\n{marker}"));
            Ok(Written { id: made, existed: false })
        })
        .await
    }

    async fn edit_comment(
        &self,
        _: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        self.write(|board| {
            let now = Timestamp(board.clock);
            let ours = board.shared.as_ref().map_or("dirigent".to_owned(), |person| person.name.clone());
            let comments = board.find(id)?.comments.get_or_insert_default();
            let Some(found) = comments.iter_mut().find(|known| known.id == *comment) else {
                return Ok(Edited::Gone);
            };
            if found.author.name != ours {
                return Err(TrackerError::Refused(format!("comment {comment} is not ours to edit")));
            }
            let marker = found.body.lines().last().unwrap_or_default().to_owned();
            found.body = format!("{body}\n{marker}");
            found.updated_at = Some(now);
            Ok(Edited::Done)
        })
        .await
    }

    async fn move_ticket(
        &self,
        _: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        self.write(|board| {
            let now = Timestamp(board.clock);
            let ticket = board.find(id)?;
            if same_state(&ticket.state, state) {
                return Ok(Move::Already);
            }
            if !expected_from.is_empty() && !state_in(&ticket.state, expected_from) {
                return Ok(Move::Elsewhere(ticket.state.clone()));
            }
            ticket.state = state.to_owned();
            ticket.updated_at = Some(now);
            Ok(Move::Moved(Some(now)))
        })
        .await
    }

    async fn label(&self, _: &Permit, id: &TicketId, add: &[String], remove: &[String]) -> Result<(), TrackerError> {
        self.write(|board| {
            let now = Timestamp(board.clock);
            let ticket = board.find(id)?;
            ticket.labels.retain(|label| !state_in(label, remove));
            ticket.labels = normalise_labels(ticket.labels.iter().chain(add));
            ticket.updated_at = Some(now);
            Ok(())
        })
        .await
    }

    async fn react(
        &self,
        _: &Permit,
        _id: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError> {
        self.write(|board| {
            let known = (comment.clone(), reaction);
            if !board.reactions.contains(&known) {
                board.reactions.push(known);
            }
            Ok(())
        })
        .await
    }

    async fn attach_link(&self, _: &Permit, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError> {
        self.write(|board| {
            board.find(id)?;
            board.links.insert((id.clone(), url.to_owned()), title.to_owned());
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
                comments: Some(Vec::new()),
                state_changed: None,
                labelled: Vec::new(),
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
        self.read(|tickets, _| format!("{} tickets in memory", tickets.len())).await
    }
}
