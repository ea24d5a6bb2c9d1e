//! Errors of a forge, sorted by how the caller has to react.

use std::time::Duration;

use thiserror::Error;

use crate::domain::ids::{CommitId, PrNumber};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForgeError {
    #[error("the forge could not be reached: {0}")]
    Request(String),
    /// The request was sent and its response was lost: a write may have taken effect.
    #[error("the forge's answer was lost: {0}")]
    MaybeDone(String),
    /// The forge rejects the credentials. No call succeeds until a person repairs the access.
    #[error("the forge refuses our access: {0}")]
    Auth(String),
    #[error("the forge answered {status}: {detail}")]
    Status { status: u16, detail: String },
    #[error("the forge's answer could not be understood: {0}")]
    Response(String),
    #[error("the forge limits our requests")]
    RateLimited { retry_after: Option<Duration> },
    /// A call of this kind has to wait for `wait`; other kinds of calls may go on.
    #[error("not for {} s: {why}", .wait.as_secs())]
    Later { wait: Duration, why: String },
    #[error("pull request {0} does not exist")]
    NotFound(PrNumber),
    #[error("the head is {actual}, not {expected}: somebody pushed")]
    HeadMoved { expected: CommitId, actual: CommitId },
    #[error("the base branch is `{actual}`, not `{expected}`: somebody changed it")]
    OtherBase { expected: String, actual: String },
    #[error("it conflicts with the base in {}", files.join(", "))]
    Conflict { files: Vec<String> },
    /// A person pushed to the branch, and those commits conflict with the runner's. The branch keeps the person's commits; the runner's are
    /// kept under the ref `kept`.
    #[error("somebody pushed to the branch, and it contradicts ours in {}", files.join(", "))]
    Apart { files: Vec<String>, kept: String },
    /// Something prevents the call for now (a dirty file, a protection rule). It is tried again later.
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
            Self::MaybeDone(_) => "maybe_done",
            Self::Auth(_) => "auth",
            Self::Status { .. } => "status",
            Self::Response(_) => "response",
            Self::RateLimited { .. } => "rate_limited",
            Self::Later { .. } => "later",
            Self::NotFound(_) => "not_found",
            Self::HeadMoved { .. } => "head_moved",
            Self::OtherBase { .. } => "other_base",
            Self::Conflict { .. } => "conflict",
            Self::Apart { .. } => "apart",
            Self::NotNow(_) => "not_now",
            Self::Refused(_) => "refused",
            Self::Git(_) => "git",
        }
    }

    /// The error that a forge returns for a feature it does not have.
    pub fn unsupported(kind: &str, what: &str) -> Self {
        Self::Refused(format!("the {kind} forge has no {what}"))
    }
}
