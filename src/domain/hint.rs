//! Hints from outside that something may have changed. A hint is never believed; it only causes a new reading.

use serde::{Deserialize, Serialize};

use super::ids::{CommentId, PrNumber, TicketId};
use super::remark::RemarkKind;
use super::time::Timestamp;

/// "This may have changed", from a file watch or a webhook. The floor is the state that the message described: a reading that does not
/// reach it yet comes from a lagging replica, and starts, approves and merges nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "about")]
pub enum Hint {
    Ticket {
        id: TicketId,
        /// The time of change that a reading of the ticket has to reach.
        floor: Option<Timestamp>,
    },
    PullRequest {
        number: PrNumber,
        /// A remark that a reading of the pull request has to show.
        floor: Option<RemarkId>,
    },
    /// It is not known what changed; only a poll of the board shows it.
    Board,
}

impl Hint {
    /// Makes a hint about a ticket without a floor.
    pub fn ticket(id: TicketId) -> Self {
        Self::Ticket { id, floor: None }
    }
}

/// The id of a review, a thread or a comment of a pull request. Each kind has ids of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemarkId {
    pub kind: RemarkKind,
    pub id: CommentId,
}
