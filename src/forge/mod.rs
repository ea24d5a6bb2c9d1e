//! Where branches become pull requests and pull requests are merged.

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

    /// The pull request of `branch`: an open one if there is one, else the newest.
    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError>;

    /// Looks at several pull requests, each with a result of its own.
    async fn inspect_many(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)>;

    /// Looks at one pull request.
    async fn inspect(&self, number: PrNumber) -> Result<PullRequest, ForgeError> {
        let looks = self.inspect_many(&[number]).await;
        let look = looks.into_iter().find(|(seen, _)| *seen == number).map(|(_, look)| look);
        look.unwrap_or_else(|| Err(ForgeError::Response(format!("the answer says nothing about {number}"))))
            .map(|look| look.pr)
    }

    /// The end of what a failed check printed.
    async fn check_log(&self, check: &str) -> Result<String, ForgeError>;

    /// Whether a remark is still there, asked by its id.
    async fn find_remark(
        &self,
        number: PrNumber,
        kind: RemarkKind,
        id: &CommentId,
    ) -> Result<RemarkPresence, ForgeError>;

    /// Brings the branch to the forge at exactly `head`, over nothing but `pushed`: the head that we pushed last. Where a person pushed
    /// meanwhile, theirs and ours are joined.
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

    /// Merges `number` if its head and its base branch are still the expected ones. One that is merged already is a success.
    async fn merge(&self, permit: &Permit, order: &MergeOrder) -> Result<Merged, ForgeError>;

    /// Takes the pull request out of the forge's own merge queue; one that is not in it is a success.
    async fn dequeue(&self, permit: &Permit, number: PrNumber) -> Result<(), ForgeError>;

    /// Merges the base into the branch.
    async fn update_branch(&self, permit: &Permit, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError>;

    /// Changes what is ours about a pull request: title, the text between our markers, draft or ready, labels.
    async fn update_pr(&self, permit: &Permit, number: PrNumber, change: &PrChange) -> Result<(), ForgeError>;

    /// One comment per key: written, or changed to this text.
    async fn upsert_comment(
        &self,
        permit: &Permit,
        number: PrNumber,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError>;

    /// Acknowledges a comment on a pull request. The same again changes nothing.
    async fn react(
        &self,
        permit: &Permit,
        number: PrNumber,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), ForgeError>;

    /// Begins a conversation on each of these lines of `head`, once per key. Lines that the change does not show, and all of them if the
    /// pull request has another head by now, are left out. Answers how many it began.
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

    /// Keeps a receipt with the merged commit, for everybody who has the repository. One that is there already is a success.
    async fn keep_receipt(
        &self,
        permit: &Permit,
        commit: &CommitId,
        payload: &str,
        signature: Option<&str>,
    ) -> Result<(), ForgeError>;

    /// Removes the merged branch.
    async fn delete_branch(&self, permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError>;
}

/// What a forge can do. What it cannot is refused with a sentence, and not asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgeCapabilities {
    /// Reviews, threads and comments on pull requests.
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
    /// When it was asked by the server's own clock, where it tells the time.
    pub asked_at: Option<Timestamp>,
    pub pr: PullRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemarkPresence {
    There,
    Gone,
    NotVisible,
}

/// A merge, with everything that has to be as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    pub number: PrNumber,
    pub expected_head: CommitId,
    pub expected_base: String,
    pub method: MergeMethod,
    /// Lines for the end of the commit message: what it was made for, and by which run.
    pub trailers: Vec<String>,
}

impl Merged {
    /// The commit on the base branch, where it is done and known.
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
    /// The forge's own queue has it.
    Queued,
}

/// What a push came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    AsAsked,
    /// A person had pushed to the branch: it is at this head now, which has both.
    Joined {
        head: CommitId,
    },
}

/// The branch with the base merged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    pub head: CommitId,
    /// The change against the base is what it was.
    pub same_diff: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrChange {
    pub title: Option<String>,
    pub body: Option<String>,
    pub draft: Option<bool>,
    pub add_labels: Vec<String>,
}

/// Something about one line of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineNote {
    pub key: String,
    pub path: String,
    pub line: u32,
    pub body: String,
}

/// A result of ours on a commit, as the forge shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStatus {
    pub commit: CommitId,
    pub name: String,
    pub passed: bool,
    pub description: String,
}
