//! The issue board: one trait, and one folder per adapter. A vendor's format never leaves its adapter.

mod addresses;
mod agent_api;
mod below;
mod error;
pub mod github;
pub mod linear;
pub mod memory;
pub mod tk;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::domain::comment::{Comment, TrustLevel};
use crate::domain::hint::Hint;
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::permit::Permit;
use crate::domain::service::Attachment;
use crate::domain::ticket::{NewTicket, Ticket};
use crate::domain::time::Timestamp;

pub use crate::domain::basis::Mark;
pub use crate::domain::comment::Acknowledgement;
pub use agent_api::{AgentApi, api_tool};
pub use error::TrackerError;

#[async_trait]
pub trait Tracker: Send + Sync {
    fn kind(&self) -> &'static str;

    /// Returns the optional features of this tracker.
    fn capabilities(&self) -> Capabilities;

    /// Returns the account that the runner writes as.
    async fn whoami(&self) -> Result<Account, TrackerError>;

    /// Returns how far this account is trusted on the board.
    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError>;

    /// Returns all tickets in one of `states`, from every page. If a page fails, the whole call fails. An empty list sends no
    /// request. A malformed ticket is left out with a line in the log.
    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError>;

    /// Reads the board like `fetch_by_states`, for repeated calls: `since` is the mark of an earlier reading of the same states. A
    /// tracker that cannot report changes lists everything each time.
    async fn poll(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        let _ = since;
        Ok(BoardReading {
            asked_at: None,
            answer: BoardAnswer::Listed { tickets: self.fetch_by_states(states).await?, mark: None },
        })
    }

    /// Returns the fate of each of these tickets, in full, with comments. An error says nothing about any of them.
    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError>;

    /// Returns the comments of a ticket, the oldest first: those that were written or changed since the given time, or all of them.
    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError>;

    /// Looks up one comment by its id, to learn whether it was deleted.
    async fn find_comment(&self, id: &TicketId, comment: &CommentId) -> Result<CommentFound, TrackerError>;

    /// Posts a comment once. `key` is hidden in it, and a comment that carries this key already is returned instead. Comments that
    /// are older than `decided_at` need not be searched.
    async fn comment(
        &self,
        permit: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        decided_at: Timestamp,
    ) -> Result<Written, TrackerError>;

    async fn edit_comment(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError>;

    /// Moves the ticket to `state` if its state is in `expected_from`, or from any state if that list is empty. No remote API
    /// offers compare-and-set, so remote adapters read the state just before the write and verify it afterwards.
    async fn move_ticket(
        &self,
        permit: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError>;

    /// Adds and removes labels. A label that is present or absent already is a success.
    async fn label(
        &self,
        permit: &Permit,
        id: &TicketId,
        add: &[String],
        remove: &[String],
    ) -> Result<(), TrackerError>;

    /// Adds a reaction to a comment, to acknowledge it.
    async fn react(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError>;

    /// Links an address to the ticket. A second call with the same address changes the title.
    async fn attach_link(&self, permit: &Permit, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError>;

    /// Creates a ticket once: a second call with the same `key` returns the first ticket.
    async fn create_ticket(&self, permit: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError>;

    /// Returns a channel with the tickets that may have changed, sent when they change. `None` if changes are found only by
    /// polling. A receiver that falls behind has to poll.
    fn changes(&self) -> Option<broadcast::Receiver<Hint>> {
        None
    }

    /// Returns one sentence for each ticket that the last reading of the board left out, so that people see it somewhere.
    fn left_out(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns one line about the requests so far and what is left of the tracker's limits. `None` if it has no limits.
    fn usage(&self) -> Option<String> {
        None
    }

    /// Returns the tracker's own API for the agents of its runs. `None` if there is none that can be restricted safely.
    fn agent_api(&self) -> Option<&dyn AgentApi> {
        None
    }

    /// Returns the files that a text of a ticket refers to, as far as they are on the service's own hosts.
    fn attachments(&self, text: &str) -> Vec<Attachment> {
        let _ = text;
        Vec::new()
    }

    /// Downloads one of these files; one of more than `longest` bytes is an error. The credential is sent to the service's own API
    /// only.
    async fn fetch_attachment(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, TrackerError> {
        let _ = longest;
        Err(TrackerError::Refused(format!("{} is not a file of this tracker", attachment.url)))
    }

    /// Checks for `doctor` whether the board can be reached. The result is a sentence about it.
    async fn probe(&self) -> Result<String, TrackerError>;
}

/// The optional features of a tracker. The runner does not use a feature that is missing, and the adapter refuses it with a
/// sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub labels: bool,
    pub reactions: bool,
    pub links: bool,
}

/// The account of the runner on the tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub login: String,
    /// Whether a person uses the same account. If so, the account alone does not prove that the runner wrote something.
    pub shared_with_person: bool,
}

/// The result of a poll.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardReading {
    /// When the reading was requested, by the server's own clock. `None` if the server does not report its time.
    pub asked_at: Option<Timestamp>,
    pub answer: BoardAnswer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BoardAnswer {
    /// All tickets, and the mark of this reading if the tracker can report later changes against it.
    Listed { tickets: Vec<Ticket>, mark: Option<Mark> },
    /// The tickets that have changed since the mark, whatever state they are in now.
    Changed { tickets: Vec<Ticket>, mark: Mark },
    /// Nothing has changed since the mark.
    Unchanged,
}

/// The fate of one ticket that was requested by its id.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into the engine")]
pub enum Found {
    Ticket(Ticket),
    /// Deleted, or moved to a place that the runner does not read. It does not come back.
    Gone(String),
    /// Missing from a complete reading. This may be temporary.
    NotVisible,
    Unreadable(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentFound {
    There,
    Gone,
    NotVisible,
}

/// The comment that a call wrote or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub id: CommentId,
    /// Whether the comment existed already, perhaps with another text.
    pub existed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    Done,
    /// The comment was deleted.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Moved, with the tracker's own time of the change where it reports one.
    Moved(Option<Timestamp>),
    Already,
    /// The ticket is neither in the wanted state nor in an expected one, and was not moved. Contains its state.
    Elsewhere(String),
}
