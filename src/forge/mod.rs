//! Where branches become pull requests and pull requests are merged.

pub mod local;
pub mod memory;

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{MergeMethod, NewPr, PullRequest};

#[async_trait]
pub trait Forge: Send + Sync {
    fn kind(&self) -> &'static str;

    /// The pull request of `branch`: an open one if there is one, else the newest.
    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError>;

    async fn inspect(&self, number: PrNumber) -> Result<PullRequest, ForgeError>;

    /// Brings the branch to the forge at exactly `head`. A no-op where branch and forge are one place.
    async fn push_branch(&self, permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError>;

    /// Opens the pull request, or returns the open one of the same branch.
    async fn open_pr(&self, permit: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError>;

    async fn reopen(&self, permit: &Permit, number: PrNumber) -> Result<(), ForgeError>;

    /// Merges `number` if its head is still `head`. A pull request that is merged already is a success.
    async fn merge(
        &self,
        permit: &Permit,
        number: PrNumber,
        head: &CommitId,
        method: MergeMethod,
    ) -> Result<Merged, ForgeError>;

    /// Merges the base into the branch; the new head is seen at the next look.
    async fn update_branch(&self, permit: &Permit, number: PrNumber, head: &CommitId) -> Result<(), ForgeError>;

    /// Removes the merged branch.
    async fn delete_branch(&self, permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub commit: Option<CommitId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForgeError {
    #[error("the forge could not be reached: {0}")]
    Request(String),
    #[error("the forge answered {status}: {detail}")]
    Status { status: u16, detail: String },
    #[error("the forge's answer could not be understood: {0}")]
    Response(String),
    #[error("the forge limits our requests")]
    RateLimited { retry_after: Option<Duration> },
    #[error("pull request {0} does not exist")]
    NotFound(PrNumber),
    #[error("the head is {actual}, not {expected}: somebody pushed")]
    HeadMoved { expected: CommitId, actual: CommitId },
    #[error("it conflicts with the base in {}", files.join(", "))]
    Conflict { files: Vec<String> },
    /// In the way for now (a dirty file, a protection rule): looked at again later.
    #[error("{0}")]
    NotNow(String),
    #[error("the forge refuses: {0}")]
    Refused(String),
    #[error("git: {0}")]
    Git(String),
}

impl ForgeError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Request(_) => "request",
            Self::Status { .. } => "status",
            Self::Response(_) => "response",
            Self::RateLimited { .. } => "rate_limited",
            Self::NotFound(_) => "not_found",
            Self::HeadMoved { .. } => "head_moved",
            Self::Conflict { .. } => "conflict",
            Self::NotNow(_) => "not_now",
            Self::Refused(_) => "refused",
            Self::Git(_) => "git",
        }
    }
}
