//! What review runs have said about a job's work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::finding::{ReviewFinding, Severity};
use crate::domain::ids::{CommentId, CommitId, SessionId};
use crate::domain::seldom::unwritten;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reviews {
    /// How many reviews could be parsed, whatever head they were about.
    pub passes: u32,
    /// The head that counts as reviewed: a run has read it, or the runner's own update of the branch left the change against the base as it
    /// was.
    pub head: Option<CommitId>,
    /// The findings of the last review, in the reviewer's order.
    pub findings: Vec<ReviewFinding>,
    /// The findings of earlier reviews and how they were answered.
    pub settled: Vec<SettledFinding>,
    /// Why the last review could not be parsed. Cleared by the next one that can.
    pub unreadable: Option<UnreadableReview>,
    /// The reviewer's own conversation. It is resumed only to ask for the same review once more.
    pub session: Option<SessionId>,
    /// A hash of what the review comment shows, so that the comment is written only when that changes.
    pub shown: Option<u64>,
    /// A hash of what was last said in each conversation about a finding.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub told_in: BTreeMap<CommentId, u64>,
}

unwritten!(Reviews);

/// A review that could not be parsed, so that nothing in it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableReview {
    pub head: CommitId,
    pub because: String,
    /// How many consecutive reviews of this head could not be parsed.
    pub times: u32,
}

/// A finding that a later review has replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledFinding {
    pub id: String,
    pub severity: Severity,
    pub title: String,
    /// What the worker said or did about the finding.
    pub answer: String,
}

impl Reviews {
    /// Whether the reviewer was asked twice about this head and neither answer could be parsed.
    pub fn is_given_up(&self, head: &CommitId) -> bool {
        self.unreadable.as_ref().is_some_and(|last| last.head == *head && last.times >= 2)
    }
}
