//! What review runs have said about a job's work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::finding::{ReviewFinding, Severity};
use crate::domain::ids::{CommentId, CommitId, SessionId};
use crate::domain::seldom::unwritten;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reviews {
    /// Reviews that could be read, whatever head they were about.
    pub passes: u32,
    /// The head that counts as reviewed: a run has read it, or our own update of the branch left the change as it was.
    pub head: Option<CommitId>,
    /// What the last one found, in its own order.
    pub findings: Vec<ReviewFinding>,
    /// What the ones before it found, and what became of that.
    pub settled: Vec<SettledFinding>,
    /// Why the last one could not be read; gone with the next that can.
    pub unreadable: Option<UnreadableReview>,
    /// The reviewer's own conversation, gone on with only to ask for the same review once more.
    pub session: Option<SessionId>,
    /// What the comment about it shows, so that it is written when that changes.
    pub shown: Option<u64>,
    /// What was last told in each conversation about a finding.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub told_in: BTreeMap<CommentId, u64>,
}

unwritten!(Reviews);

/// A review that says nothing that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableReview {
    pub head: CommitId,
    pub because: String,
    /// In a row, about this head.
    pub times: u32,
}

/// A finding that a later review has replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledFinding {
    pub id: String,
    pub severity: Severity,
    pub title: String,
    /// What the worker said or did about it.
    pub answer: String,
}

impl Reviews {
    /// Whether the reviewer was asked twice about this head, and could not be understood either time.
    pub fn is_given_up(&self, head: &CommitId) -> bool {
        self.unreadable.as_ref().is_some_and(|last| last.head == *head && last.times >= 2)
    }
}
