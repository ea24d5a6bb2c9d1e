//! A pull request as a forge shows it: head, base, mergeability, checks, reviews, threads.

use serde::{Deserialize, Serialize};

use super::comment::{Author, Comment};
use super::ids::{CommentId, CommitId, PrNumber};
use super::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub number: PrNumber,
    pub url: Option<String>,
    pub title: String,
    pub state: PrState,
    pub draft: bool,
    pub head_branch: String,
    pub head: CommitId,
    pub base_branch: String,
    pub base: Option<CommitId>,
    pub mergeability: Mergeability,
    pub checks: Vec<Check>,
    pub reviews: Vec<Review>,
    pub threads: Vec<ReviewThread>,
    pub comments: Vec<Comment>,
    pub labels: Vec<String>,
    /// When the head was pushed, for the grace period of checks.
    pub pushed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum PrState {
    Open,
    Closed,
    Merged { commit: Option<CommitId> },
}

/// Unknown is pending, never a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Mergeability {
    Unknown,
    Clean,
    Conflicting {
        files: Vec<String>,
    },
    /// The base moved on and the forge wants the branch updated first.
    Behind,
    /// The forge itself refuses for now (protection rules, a dirty work tree of the user's).
    Refused {
        because: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub status: CheckStatus,
    /// `None` where the forge does not tell; counts as required.
    pub required: Option<bool>,
    pub url: Option<String>,
    pub log_tail: Option<String>,
}

impl Check {
    pub fn blocks(&self) -> bool {
        self.required != Some(false)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Pending,
    Passed,
    Failed,
    /// Skipped or neutral: neither for nor against.
    Neutral,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub id: CommentId,
    pub author: Author,
    pub verdict: Verdict,
    /// The head that was read.
    pub head: Option<CommitId>,
    pub body: String,
    pub submitted_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Approved,
    ChangesRequested,
    Commented,
    Dismissed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewThread {
    pub id: CommentId,
    pub resolved: bool,
    pub path: Option<String>,
    pub line: Option<u32>,
    pub comments: Vec<Comment>,
}

/// A pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPr {
    pub title: String,
    pub body: String,
    pub head_branch: String,
    pub head: CommitId,
    pub base_branch: String,
    pub draft: bool,
    pub labels: Vec<String>,
    pub reviewers: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeMethod {
    Squash,
    Merge,
    Rebase,
}
