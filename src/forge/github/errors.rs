//! Turns errors of the API, of git and of the workspace into errors of a forge.

use std::time::Duration;

use crate::domain::ids::PrNumber;
use crate::forge::ForgeError;
use crate::github::GithubError;
use crate::workspace::WorkspaceError;
use crate::workspace::remote::RemoteError;

impl From<GithubError> for ForgeError {
    fn from(error: GithubError) -> Self {
        match error {
            GithubError::Config(_) | GithubError::Refused(_) | GithubError::Moved(_) => {
                Self::Refused(error.to_string())
            }
            GithubError::Unreachable(detail) => Self::Request(detail),
            GithubError::MaybeDone(detail) => Self::MaybeDone(detail),
            GithubError::Auth(detail) => Self::Auth(detail),
            GithubError::Withdrawn => Self::Later { wait: Duration::ZERO, why: error.to_string() },
            GithubError::RateLimited { wait, by } if by.is_our_own() => {
                Self::Later { wait: whole_seconds(wait), why: by.to_string() }
            }
            GithubError::RateLimited { wait, .. } => Self::RateLimited { retry_after: Some(whole_seconds(wait)) },
            GithubError::NotFound(detail) => Self::Status { status: 404, detail },
            GithubError::Gone(detail) => Self::Status { status: 410, detail },
            GithubError::Server { status, detail } => Self::Status { status, detail },
            GithubError::Unreadable(detail) | GithubError::Pages(detail) => Self::Response(detail),
        }
    }
}

fn whole_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

impl From<RemoteError> for ForgeError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Passing(detail) => Self::Request(detail),
            RemoteError::Access(detail) => Self::Auth(detail),
            RemoteError::Moved => Self::NotNow(error.to_string()),
            RemoteError::Local(detail) => Self::Git(detail),
            RemoteError::Refused { .. } | RemoteError::NoCommit(_) => Self::Refused(error.to_string()),
        }
    }
}

impl From<WorkspaceError> for ForgeError {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::BranchInUse { .. } | WorkspaceError::BranchMoved { .. } => Self::NotNow(error.to_string()),
            error => Self::Git(error.to_string()),
        }
    }
}

pub fn libgit(error: &git2::Error) -> ForgeError {
    ForgeError::Git(error.message().to_owned())
}

/// Maps a 404 or 410 in response to a request about a pull request to "this pull request does not exist".
pub fn about(number: PrNumber) -> impl Fn(GithubError) -> ForgeError {
    move |error| match error {
        GithubError::NotFound(_) | GithubError::Gone(_) => ForgeError::NotFound(number),
        error => error.into(),
    }
}
