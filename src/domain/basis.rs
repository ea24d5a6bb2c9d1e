//! What a reading from outside rests on: when its request was sent, and which of the runner's own writes had been answered by then.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ids::TicketId;
use super::time::Timestamp;

/// A point in the order of all requests that the engine made and all answers that it took in. A later point is greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// Returns the point right after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// When a request was sent, and which answers the engine had taken in by then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// When the request was sent: by the server's clock where it reports the time, otherwise by the runner's.
    pub asked_at: Timestamp,
    /// The request was sent after the engine had taken in every answer that came before this moment.
    pub after: Moment,
}

impl Basis {
    /// Whether the request was sent after the engine had taken in what happened at `moment`.
    pub fn is_after(&self, moment: Moment) -> bool {
        self.after > moment
    }
}

/// A tracker's own bookmark for one of its answers, such as a cursor. Only that tracker can interpret it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub String);

/// How far the board has been read. Stored in the ledger, so that a restarted runner asks only for what has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardMark {
    pub mark: Mark,
    /// The states that were asked for, with the workflow's hash below. The mark is void under other states or another workflow.
    pub states: Vec<String>,
    pub workflow: String,
    pub basis: Basis,
    /// Tickets that the board's answers have not settled. They are asked for by id, because a list of changes does not include them.
    #[serde(default)]
    pub ask_for: BTreeSet<TicketId>,
}

/// The server's own version of an object. Versions are compared, never interpreted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub String);

/// The status of a write by the runner to an object that others write to as well.
///
/// From sending until the write is visible, readings of the written value are not conclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum WriteStatus {
    /// Decided, and perhaps sent; no answer yet.
    Sent,
    /// The server confirmed the write.
    Confirmed {
        at: Timestamp,
        moment: Moment,
        /// The object's version, as its time of change, that the server's answer carried.
        version: Option<Timestamp>,
    },
    /// The answer was lost, so the write may or may not have happened.
    MaybeDone { at: Timestamp },
}
