//! The issue board. One trait, one folder per adapter; a vendor's format never leaves its adapter.

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

    /// What this tracker can do besides the board itself.
    fn capabilities(&self) -> Capabilities;

    /// The account that we write as.
    async fn whoami(&self) -> Result<Account, TrackerError>;

    /// How this account stands to the board.
    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError>;

    /// All tickets in one of `states`, every page of them, or an error: never a part. An empty list asks nothing.
    /// A malformed ticket is left out with a log line.
    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError>;

    /// What `fetch_by_states` answers, for whoever asks again and again: `since` stands for an earlier answer about the same
    /// states. A tracker that cannot tell what changed lists everything each time.
    async fn poll(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        let _ = since;
        Ok(BoardReading {
            asked_at: None,
            answer: BoardAnswer::Listed { tickets: self.fetch_by_states(states).await?, mark: None },
        })
    }

    /// What became of each of these ids, in full, comments included. An error says nothing about any of them.
    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError>;

    /// Comments of a ticket, oldest first; those that were written or changed since, or all of them.
    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError>;

    /// One comment by its id: whether somebody took it back.
    async fn find_comment(&self, id: &TicketId, comment: &CommentId) -> Result<CommentFound, TrackerError>;

    /// Posts a comment once: `key` is hidden in it, and one that carries it already is returned instead. Nothing that was made
    /// before `decided_at` has to be looked through.
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

    /// Moves the ticket to `state` if it is in one of `expected_from`; an empty list expects nothing. No remote API compares and
    /// sets: it is read just before and verified after.
    async fn move_ticket(
        &self,
        permit: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError>;

    /// Labels that are there already, or gone already, are a success.
    async fn label(
        &self,
        permit: &Permit,
        id: &TicketId,
        add: &[String],
        remove: &[String],
    ) -> Result<(), TrackerError>;

    /// Acknowledges a comment.
    async fn react(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError>;

    /// Links something to the ticket; the same address again changes its title.
    async fn attach_link(&self, permit: &Permit, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError>;

    /// Creates a ticket once: `key` makes a repetition return the first one.
    async fn create_ticket(&self, permit: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError>;

    /// What may have changed, the moment it does; `None` where only polling tells. Whoever falls behind polls.
    fn changes(&self) -> Option<broadcast::Receiver<Hint>> {
        None
    }

    /// What the last reading of the board had to leave out, one sentence each: people must see it somewhere.
    fn left_out(&self) -> Vec<String> {
        Vec::new()
    }

    /// What was asked of the tracker so far and what is left of its limits, in one line, where there are any.
    fn usage(&self) -> Option<String> {
        None
    }

    /// The tracker's own API for the agents of its runs, where it has one that can be kept within bounds.
    fn agent_api(&self) -> Option<&dyn AgentApi> {
        None
    }

    /// The files that a text of a ticket refers to, as far as they lie on the service's own hosts.
    fn attachments(&self, text: &str) -> Vec<Attachment> {
        let _ = text;
        Vec::new()
    }

    /// One of these, unless it is longer than so many bytes. Our credential goes to the service's own API alone.
    async fn fetch_attachment(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, TrackerError> {
        let _ = longest;
        Err(TrackerError::Refused(format!("{} is not a file of this tracker", attachment.url)))
    }

    /// A look at whether the board can be reached at all, for `doctor`.
    async fn probe(&self) -> Result<String, TrackerError>;
}

/// What a tracker can do. What it cannot is refused with a sentence, and not asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub labels: bool,
    pub reactions: bool,
    pub links: bool,
}

/// Who we are on the tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub login: String,
    /// A person uses the same account: what it writes is not ours for that alone.
    pub shared_with_person: bool,
}

/// A board's answer to a poll.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardReading {
    /// When it was asked by the server's own clock, where it tells the time.
    pub asked_at: Option<Timestamp>,
    pub answer: BoardAnswer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BoardAnswer {
    /// All tickets, and what stands for this answer where the tracker can tell later what changed.
    Listed { tickets: Vec<Ticket>, mark: Option<Mark> },
    /// What has changed since, in whatever state it is now.
    Changed { tickets: Vec<Ticket>, mark: Mark },
    /// The answer that the mark stands for still holds, to the letter.
    Unchanged,
}

/// What became of one ticket that was asked for by its id.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into the engine")]
pub enum Found {
    Ticket(Ticket),
    /// Deleted, or moved to where we do not look. It does not come back.
    Gone(String),
    /// A complete answer does not have it, which may pass.
    NotVisible,
    Unreadable(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentFound {
    There,
    Gone,
    NotVisible,
}

/// A comment as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub id: CommentId,
    /// It was there already, perhaps with another text.
    pub existed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    Done,
    /// Somebody deleted it.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// With the tracker's own time of the change, where it tells.
    Moved(Option<Timestamp>),
    Already,
    /// It is neither there nor where it was expected; it was left alone.
    Elsewhere(String),
}
