//! A board in memory for tests. It behaves like a real one, and fails in the ways that a test requests.
//!
//! Writes act on the current board. Readings come from replicas, which may lag: see [`MemoryTracker::replicas`].

mod adapter;
mod board;
mod past;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;

use super::{Acknowledgement, TrackerError};
use crate::domain::comment::{Author, TrustLevel};
use crate::domain::hint::Hint;
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::ticket::Ticket;
use crate::domain::time::Timestamp;
use board::{Board, Replica};

/// A failure of a coming call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and the call returns this error.
    Fails(TrackerError),
    /// The write takes effect, and the call returns this error.
    FailsAfterWriting(TrackerError),
    Late(Duration),
    Fine,
}

impl Fault {
    /// Returns the fault of a lost response. The request itself took effect if `done`.
    pub fn lost(done: bool) -> Self {
        let error = TrackerError::MaybeDone("the connection was closed before the answer came".to_owned());
        if done { Self::FailsAfterWriting(error) } else { Self::Fails(error) }
    }
}

#[derive(Debug)]
pub struct MemoryTracker {
    board: Mutex<Board>,
    changes: broadcast::Sender<Hint>,
}

impl Default for MemoryTracker {
    fn default() -> Self {
        Self { board: Mutex::default(), changes: broadcast::Sender::new(64) }
    }
}

/// Actions of people, and access to the state of the board.
impl MemoryTracker {
    pub fn new(tickets: impl IntoIterator<Item = Ticket>) -> Self {
        let tracker = Self::default();
        for ticket in tickets {
            tracker.put(ticket);
        }
        tracker
    }

    /// Adds or replaces a ticket.
    pub fn put(&self, ticket: Ticket) {
        self.act(|board| board.put(ticket));
    }

    /// Changes a ticket as a person: the one who shares the runner's account, or one named "somebody".
    pub fn edit(&self, id: &TicketId, change: impl FnOnce(&mut Ticket)) {
        let by = self.board().person();
        self.edit_as(by, id, change);
    }

    pub fn edit_as(&self, by: Author, id: &TicketId, change: impl FnOnce(&mut Ticket)) {
        self.act(|board| board.change(id, &by, |ticket, _| change(ticket)));
    }

    /// Deletes a ticket.
    pub fn remove(&self, id: &TicketId) {
        self.act(|board| board.remove(id));
    }

    pub fn say(&self, id: &TicketId, author: Author, body: &str) -> CommentId {
        self.act(|board| board.post(id, author, body))
    }

    /// Changes a comment as its author.
    pub fn reword(&self, id: &TicketId, comment: &CommentId, body: &str) {
        self.act(|board| board.reword(id, comment, body.to_owned()));
    }

    /// Deletes a comment as a person.
    pub fn unsay(&self, id: &TicketId, comment: &CommentId) {
        self.act(|board| board.unsay(id, comment));
    }

    /// Returns the current ticket, whatever the replicas show.
    pub fn ticket(&self, id: &TicketId) -> Option<Ticket> {
        self.board().newest(id).cloned()
    }

    pub fn reactions(&self) -> Vec<(CommentId, Acknowledgement)> {
        self.board().reactions.clone()
    }

    /// Returns address and title of each link of the ticket.
    pub fn links(&self, id: &TicketId) -> Vec<(String, String)> {
        let board = self.board();
        let of = board.links.iter().filter(|((ticket, _), _)| ticket == id);
        of.map(|((_, url), title)| (url.clone(), title.clone())).collect()
    }

    /// Returns the number of calls that have reached the board.
    pub fn calls(&self) -> u64 {
        self.board().calls
    }
}

/// The settings and the failures of the board.
impl MemoryTracker {
    /// Makes the runner write with a person's account.
    pub fn share_account(&self, person: Author) {
        self.board().shared = Some(person);
    }

    pub fn grant(&self, login: &str, trust: TrustLevel) {
        self.board().permissions.insert(login.to_owned(), trust);
    }

    /// Sets the server's clock, which each poll reports from now on. Each change advances it by a millisecond.
    pub fn set_clock(&self, at: Timestamp) {
        let mut board = self.board();
        (board.clock, board.tells_time) = (at, true);
    }

    /// Makes polls with a mark return only the changes since then, instead of everything.
    pub fn report_changes(&self) {
        self.board().reports_changes = true;
    }

    /// Makes listings leave out comments.
    pub fn list_without_comments(&self) {
        self.board().lists_comments = false;
    }

    /// Sets one fault for each of the coming calls, in order.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.board().faults.extend(faults);
    }

    /// Makes every call do nothing and return this error, for example a 401, until `None` ends the outage.
    pub fn outage(&self, error: Option<TrackerError>) {
        self.board().outage = error;
    }

    /// Makes readings come from these replicas in turn. Each number is how many changes of every ticket a replica is behind; `[0]`
    /// does not lag.
    pub fn replicas(&self, behind: &[usize]) {
        self.board().replicas = behind.to_vec();
    }

    /// Makes every replica at least `behind` changes of this ticket behind.
    pub fn lag(&self, id: &TicketId, behind: usize) {
        self.act(|board| board.lag(id, behind));
    }

    /// Makes every replica show all changes made until now. Later changes lag again.
    pub fn catch_up(&self) {
        self.act(Board::catch_up);
    }

    /// Makes a ticket missing from complete readings although it still exists.
    pub fn hide(&self, id: &TicketId, hidden: bool) {
        self.act(|board| match hidden {
            true => board.hidden.insert(id.clone()),
            false => board.hidden.remove(id),
        });
    }

    /// Makes a ticket unreadable for this reason; `None` makes it readable again.
    pub fn garble(&self, id: &TicketId, why: Option<&str>) {
        self.act(|board| match why {
            Some(why) => board.unreadable.insert(id.clone(), why.to_owned()),
            None => board.unreadable.remove(id),
        });
    }

    /// Makes listings contain this ticket twice: as it was one change ago, and as it is. This happens to a ticket that moves
    /// between pages.
    pub fn list_twice(&self, id: &TicketId) {
        self.act(|board| board.listed_twice.insert(id.clone()));
    }
}

impl MemoryTracker {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change on the board, by a person or by a call of the runner, and sends the hints.
    fn act<T>(&self, what: impl FnOnce(&mut Board) -> T) -> T {
        let mut board = self.board();
        let done = what(&mut board);
        let touched = std::mem::take(&mut board.touched);
        drop(board);
        if touched.is_empty() {
            let _ = self.changes.send(Hint::Board);
        }
        for id in touched {
            let _ = self.changes.send(Hint::ticket(id));
        }
        done
    }

    /// Takes the next fault. A late response waits before anything happens.
    async fn next_fault(&self) -> Result<Fault, TrackerError> {
        let fault = {
            let mut board = self.board();
            board.calls += 1;
            if let Some(error) = &board.outage {
                return Err(error.clone());
            }
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

    /// Serves one reading from one replica.
    async fn read<T>(&self, look: impl FnOnce(&Replica<'_>) -> T) -> Result<T, TrackerError> {
        self.next_fault().await?;
        let mut board = self.board();
        let replica = board.next_replica();
        Ok(look(&replica))
    }

    async fn write<T>(&self, change: impl FnOnce(&mut Board) -> Result<T, TrackerError>) -> Result<T, TrackerError> {
        let fault = self.next_fault().await?;
        let done = self.act(change);
        match fault {
            Fault::FailsAfterWriting(error) => Err(error),
            _ => done,
        }
    }
}
