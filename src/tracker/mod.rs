//! The issue board. One trait, one adapter a folder; a vendor's format never leaves its adapter.

pub mod memory;
pub mod tk;

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::watch;

use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::permit::Permit;
use crate::domain::ticket::{NewTicket, Ticket};

#[async_trait]
pub trait Tracker: Send + Sync {
    fn kind(&self) -> &'static str;

    /// All tickets in one of `states`, every page of them, or an error: never a part. An empty list asks nothing.
    /// A malformed ticket is left out with a log line.
    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError>;

    /// What `fetch_by_states` answers, for whoever asks again and again: `seen` stands for an earlier answer about the same
    /// states, and if that still holds nothing is listed. A tracker that cannot tell lists everything each time.
    async fn poll(&self, states: &[String], seen: Option<Mark>) -> Result<Reading, TrackerError> {
        let _ = seen;
        Ok(Reading::Listed { tickets: self.fetch_by_states(states).await?, mark: None })
    }

    /// The tickets with these ids. One that is missing from a successful answer is gone.
    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<Ticket>, TrackerError>;

    /// All comments of a ticket, oldest first.
    async fn comments(&self, id: &TicketId) -> Result<Vec<Comment>, TrackerError>;

    /// Posts a comment once: `key` is hidden in it, and a comment that carries it already is returned instead.
    async fn comment(&self, permit: &Permit, id: &TicketId, key: &str, body: &str) -> Result<CommentId, TrackerError>;

    async fn edit_comment(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<(), TrackerError>;

    /// Moves the ticket to `state`; a ticket that is there already is a success.
    async fn move_ticket(&self, permit: &Permit, id: &TicketId, state: &str) -> Result<(), TrackerError>;

    /// Creates a ticket once: `key` makes a repetition return the first one.
    async fn create_ticket(&self, permit: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError>;

    /// Changes whenever the board may have changed; `None` where only polling tells.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// What the last reading of the board had to leave out, one sentence each: people must see it somewhere.
    fn left_out(&self) -> Vec<String> {
        Vec::new()
    }

    /// A look at whether the board can be reached at all, for `doctor`.
    async fn probe(&self) -> Result<String, TrackerError>;
}

/// A board's answer to a poll.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// All tickets, and what stands for this answer where the tracker can tell later whether it still holds.
    Listed { tickets: Vec<Ticket>, mark: Option<Mark> },
    /// The answer that the mark stands for still holds, to the letter.
    Unchanged,
}

/// Stands for one answer of one tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub u64);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrackerError {
    #[error("invalid tracker configuration: {0}")]
    InvalidConfig(String),
    #[error("the tracker's secret is missing: {0}")]
    MissingSecret(String),
    #[error("the tracker could not be reached: {0}")]
    Request(String),
    #[error("the tracker answered {status}: {detail}")]
    Status { status: u16, detail: String },
    #[error("the tracker's answer could not be understood: {0}")]
    Response(String),
    #[error("a page of the tracker's answer is missing: {0}")]
    Pagination(String),
    #[error("the tracker limits our requests{}", .retry_after.map(|d| format!(" for {} s", d.as_secs())).unwrap_or_default())]
    RateLimited { retry_after: Option<Duration> },
    #[error("ticket {0} does not exist")]
    NotFound(TicketId),
    #[error("the tracker refuses: {0}")]
    Refused(String),
}

impl TrackerError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidConfig(_) => "invalid_config",
            Self::MissingSecret(_) => "missing_secret",
            Self::Request(_) => "request",
            Self::Status { .. } => "status",
            Self::Response(_) => "response",
            Self::Pagination(_) => "pagination",
            Self::RateLimited { .. } => "rate_limited",
            Self::NotFound(_) => "not_found",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether the same call may work later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Request(_) | Self::Response(_) | Self::Pagination(_) | Self::RateLimited { .. } => true,
            Self::Status { status, .. } => *status >= 500 || *status == 429 || *status == 408,
            Self::InvalidConfig(_) | Self::MissingSecret(_) | Self::NotFound(_) | Self::Refused(_) => false,
        }
    }
}
