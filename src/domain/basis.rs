//! What an observation rests on: when the question was sent, and which of our writes had been answered by then.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ids::TicketId;
use super::time::Timestamp;

/// A point in the order of everything that the engine asked for and was told. Later ones are greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// What comes right after it.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// When a question was sent, and after what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// By the server's clock where it reports the time, otherwise by ours.
    pub asked_at: Timestamp,
    /// Every answer that the engine had taken in before this moment was known to whoever asked.
    pub after: Moment,
}

impl Basis {
    /// Whether the question was sent after the engine had taken in what happened at `moment`.
    pub fn is_after(&self, moment: Moment) -> bool {
        self.after > moment
    }
}

/// Stands for one answer of one tracker. Only that tracker understands it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub String);

/// How far the board has been read. It is stored, so that the runner asks only for what has changed since when it starts again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardMark {
    pub mark: Mark,
    /// What was asked for, and the workflow that gave the answer its meaning: with another one it has to be read anew.
    pub states: Vec<String>,
    pub workflow: String,
    pub basis: Basis,
    /// Tickets that the board's answers have not settled. What changes after the mark says nothing about them.
    #[serde(default)]
    pub ask_for: BTreeSet<TicketId>,
}

/// The server's own version of an object. Compared, never interpreted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub String);

/// Something of ours on its way into an object that others write too.
///
/// From sending until it is visible, what a reading says about the thing that was written is unsettled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum WriteStatus {
    /// Decided, and perhaps sent; there is no answer yet.
    Sent,
    /// The other side said that it is done.
    Confirmed {
        at: Timestamp,
        moment: Moment,
        /// The object's version or time of change that the answer carried.
        version: Option<Timestamp>,
    },
    /// The answer was lost: it may be done.
    MaybeDone { at: Timestamp },
}
