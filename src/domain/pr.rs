//! A pull request as a forge shows it: head, base, mergeability, checks, reviews, threads.
//!
//! A part of a look (one reading of a pull request) is `Some` only if it was read to the last page; `None` means unknown.

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
    /// The head that the forge shows, which may lag behind the git remote.
    pub head: CommitId,
    /// `owner/name` of the repository that holds the head branch; `None` where there is only one repository.
    pub head_repo: Option<String>,
    /// The commit that the head branch has at the git remote. This one is authoritative.
    pub ref_head: Option<CommitId>,
    pub base_branch: String,
    pub base: Option<CommitId>,
    pub mergeability: Mergeability,
    pub checks: Option<Vec<Check>>,
    /// Names of the checks that the forge requires on the base branch. Empty when it requires none; `None` when they could not be read.
    pub required_checks: Option<Vec<String>>,
    pub reviews: Option<Vec<Review>>,
    pub threads: Option<Vec<ReviewThread>>,
    pub comments: Option<Vec<Comment>>,
    pub labels: Vec<String>,
    /// Whether the pull request is in the forge's own merge queue.
    pub in_queue: bool,
    /// When the head was pushed, for the grace period of checks.
    pub pushed_at: Option<Timestamp>,
}

impl PullRequest {
    /// Whether every part that a merge depends on was read to the last page. The list of required checks may be missing: then every check
    /// counts as required.
    pub fn is_complete(&self) -> bool {
        self.ref_head.is_some()
            && self.checks.is_some()
            && self.reviews.is_some()
            && self.threads.is_some()
            && self.comments.is_some()
    }

    /// Whether the forge shows the head that the git remote has. Otherwise nothing that depends on the head counts.
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

/// Whether the pull request can be merged. `Unknown` is treated as pending, never as a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Mergeability {
    Unknown,
    Clean,
    Conflicting {
        files: Vec<String>,
    },
    /// The base has moved on, and the forge wants the branch updated first.
    Behind,
    /// The forge itself refuses the merge for now (protection rules, uncommitted changes in the user's work tree).
    Refused {
        because: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The id by which the forge finds the check's log.
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
    /// Skipped or neutral: counts neither for nor against.
    Neutral,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub id: CommentId,
    pub author: Author,
    pub verdict: Verdict,
    /// The head that the reviewer read.
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
    /// The review that started the conversation.
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
