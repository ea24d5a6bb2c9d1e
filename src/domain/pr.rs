//! A pull request as a forge shows it: head, base, mergeability, checks, reviews, threads.
//!
//! Unknown is a value: each part of a look is there only if it was read to the last page.

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
    pub author: Option<Author>,
    pub head_branch: String,
    /// What the forge shows as the head, which may lag behind.
    pub head: CommitId,
    /// `owner/name` of the repository that holds the head branch; `None` where there is only one.
    pub head_repo: Option<String>,
    /// What the git remote says the head branch is at. The truth about the head.
    pub ref_head: Option<CommitId>,
    pub base_branch: String,
    pub base: Option<CommitId>,
    pub mergeability: Mergeability,
    pub checks: Option<Vec<Check>>,
    /// Names of the checks that the forge requires on the base branch; empty when it requires none.
    pub required_checks: Option<Vec<String>>,
    pub reviews: Option<Vec<Review>>,
    pub threads: Option<Vec<ReviewThread>>,
    pub comments: Option<Vec<Comment>>,
    pub labels: Vec<String>,
    /// In the forge's own merge queue.
    pub in_queue: bool,
    /// When the head was pushed, for the grace period of checks.
    pub pushed_at: Option<Timestamp>,
}

impl PullRequest {
    /// Whether every part that a merge depends on was read to the last page. Where the required checks cannot be read, every
    /// check counts as required.
    pub fn is_complete(&self) -> bool {
        self.ref_head.is_some()
            && self.checks.is_some()
            && self.reviews.is_some()
            && self.threads.is_some()
            && self.comments.is_some()
    }

    /// Whether the forge shows the head that the git remote has. Else nothing that depends on the head counts.
    pub fn shows_true_head(&self) -> bool {
        self.ref_head.as_ref() == Some(&self.head)
    }
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
    /// What the forge finds its log by.
    pub id: String,
    pub name: String,
    pub status: CheckStatus,
    pub url: Option<String>,
    pub log_tail: Option<String>,
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
    /// The review that the conversation began with.
    pub review: Option<CommentId>,
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
