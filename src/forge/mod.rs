//! The forge: opens pull requests for branches, reads their state and merges them. The trait `Forge` has one adapter per kind of forge.

mod combine;
mod error;
pub mod github;
pub mod local;
mod markers;
pub mod memory;

use async_trait::async_trait;

use crate::domain::comment::Acknowledgement;
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{MergeMethod, NewPr, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::domain::time::Timestamp;

pub use combine::holds_work;
pub use error::ForgeError;

#[async_trait]
pub trait Forge: Send + Sync {
    fn kind(&self) -> &'static str;

    fn capabilities(&self) -> ForgeCapabilities;

    /// Finds the pull request of `branch`: an open one if there is one, else the newest.
    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError>;

    /// Looks at several pull requests. Each has its own result.
    async fn inspect_many(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)>;

    /// Looks at one pull request.
    async fn inspect(&self, number: PrNumber) -> Result<PullRequest, ForgeError> {
        let looks = self.inspect_many(&[number]).await;
        let look = looks.into_iter().find(|(seen, _)| *seen == number).map(|(_, look)| look);
        look.unwrap_or_else(|| Err(ForgeError::Response(format!("the answer says nothing about {number}"))))
            .map(|look| look.pr)
    }

    /// Returns the last lines of the log of a failed check. Empty if there is no log to read.
    async fn check_log(&self, check: &str) -> Result<String, ForgeError>;

    /// Looks up by its id whether a remark (something that a trusted person wants) still exists.
    async fn find_remark(
        &self,
        number: PrNumber,
        kind: RemarkKind,
        id: &CommentId,
    ) -> Result<RemarkPresence, ForgeError>;

    /// Pushes the branch to the forge so that it points to `head`. Overwrites only `pushed`, the head that the runner pushed last. If a
    /// person pushed in between, that person's commits and the runner's are joined.
    async fn push_branch(
        &self,
        permit: &Permit,
        branch: &str,
        head: &CommitId,
        pushed: Option<&CommitId>,
    ) -> Result<Pushed, ForgeError>;

    /// Opens the pull request, or returns the open one of the same branch.
    async fn open_pr(&self, permit: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError>;

    async fn reopen(&self, permit: &Permit, number: PrNumber) -> Result<(), ForgeError>;

    /// Merges a pull request if its head and its base branch are still the expected ones. Already merged counts as success.
    async fn merge(&self, permit: &Permit, order: &MergeOrder) -> Result<Merged, ForgeError>;

    /// Removes the pull request from the forge's own merge queue. Not being in the queue counts as success.
    async fn dequeue(&self, permit: &Permit, number: PrNumber) -> Result<(), ForgeError>;

    /// Merges the base into the branch if the branch is still at `head`.
    async fn update_branch(&self, permit: &Permit, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError>;

    /// Changes the runner's part of a pull request: title, the text between the runner's markers, draft or ready, labels.
    async fn update_pr(&self, permit: &Permit, number: PrNumber, change: &PrChange) -> Result<(), ForgeError>;

    /// Writes the comment that `key` identifies, or changes its text to `body` if it exists.
    async fn upsert_comment(
        &self,
        permit: &Permit,
        number: PrNumber,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError>;

    /// Acknowledges a comment on a pull request with a reaction. Repeating the call changes nothing.
    async fn react(
        &self,
        permit: &Permit,
        number: PrNumber,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), ForgeError>;

    /// Begins a conversation on each of these lines of `head`, once per key, and returns how many it began. Skips lines that the change
    /// does not show, and all lines if the pull request has another head by now.
    async fn begin_threads(
        &self,
        permit: &Permit,
        number: PrNumber,
        head: &CommitId,
        notes: &[LineNote],
    ) -> Result<usize, ForgeError>;

    async fn reply_in_thread(
        &self,
        permit: &Permit,
        number: PrNumber,
        thread: &CommentId,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError>;

    async fn resolve_thread(&self, permit: &Permit, number: PrNumber, thread: &CommentId) -> Result<(), ForgeError>;

    async fn request_review(&self, permit: &Permit, number: PrNumber, reviewer: &str) -> Result<(), ForgeError>;

    async fn publish_status(&self, permit: &Permit, status: &CommitStatus) -> Result<(), ForgeError>;

    async fn rerun_check(&self, permit: &Permit, check: &str) -> Result<(), ForgeError>;

    /// Stores a receipt as a note on the merged commit, for everybody who has the repository. An existing receipt counts as success.
    async fn keep_receipt(
        &self,
        permit: &Permit,
        commit: &CommitId,
        payload: &str,
        signature: Option<&str>,
    ) -> Result<(), ForgeError>;

    /// Removes the merged branch if it still points to `head`.
    async fn delete_branch(&self, permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError>;
}

/// What a forge supports. The engine does not request what is missing here; a call for it anyway is refused with an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgeCapabilities {
    /// Reviews, conversations on lines and comments on pull requests.
    pub conversations: bool,
    /// Reactions to comments.
    pub reactions: bool,
    pub statuses: bool,
    pub merge_queue: bool,
    pub reruns: bool,
}

/// One look at one pull request.
#[derive(Debug, Clone, PartialEq)]
pub struct PrLook {
    /// When the look was requested, by the server's own clock. `None` if the server does not report its time.
    pub asked_at: Option<Timestamp>,
    pub pr: PullRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemarkPresence {
    There,
    Gone,
    NotVisible,
}

/// A merge to perform, with the state that the pull request must still have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    pub number: PrNumber,
    pub expected_head: CommitId,
    pub expected_base: String,
    pub method: MergeMethod,
    /// Lines for the end of the commit message, for example the ticket and the run that the change was made for.
    pub trailers: Vec<String>,
}

impl Merged {
    /// The merge commit on the base branch. `None` while the merge is queued, or if the forge does not report the commit.
    pub fn commit(&self) -> Option<&CommitId> {
        match self {
            Self::Done { commit } => commit.as_ref(),
            Self::Queued => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    Done {
        commit: Option<CommitId>,
    },
    /// The pull request is in the forge's own merge queue.
    Queued,
}

/// The result of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    AsAsked,
    /// A person had pushed to the branch: it now points to `head`, which contains both sides.
    Joined {
        head: CommitId,
    },
}

/// The branch after the base was merged into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    pub head: CommitId,
    /// Whether the change against the base is still the same as before.
    pub same_diff: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrChange {
    pub title: Option<String>,
    pub body: Option<String>,
    pub draft: Option<bool>,
    pub add_labels: Vec<String>,
}

/// A note about one line of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineNote {
    pub key: String,
    pub path: String,
    pub line: u32,
    pub body: String,
}

/// A result of the runner on a commit, as the forge shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStatus {
    pub commit: CommitId,
    pub name: String,
    pub passed: bool,
    pub description: String,
}
