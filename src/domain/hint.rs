//! News from outside that something may have changed. It is never believed; it is only a reason to look.

use serde::{Deserialize, Serialize};

use super::ids::{CommentId, PrNumber, TicketId};
use super::remark::RemarkKind;
use super::time::Timestamp;

/// "This may have changed", from a file watch or a webhook. The floor is what the message spoke of: readings that do not
/// reach it yet come from a replica that lags, and start, approve and merge nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "about")]
pub enum Hint {
    Ticket {
        id: TicketId,
        /// The ticket's own time of change.
        floor: Option<Timestamp>,
    },
    PullRequest {
        number: PrNumber,
        /// Something that a reading of the pull request has to show.
        floor: Option<RemarkId>,
    },
    /// Nobody knows what: only a poll tells.
    Board,
}

impl Hint {
    /// Nothing is known but which ticket.
    pub fn ticket(id: TicketId) -> Self {
        Self::Ticket { id, floor: None }
    }
}

/// A review, a thread or a comment of a pull request: each kind has ids of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemarkId {
    pub kind: RemarkKind,
    pub id: CommentId,
}
