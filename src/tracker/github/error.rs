//! Converts GitHub's errors into those of the tracker trait.

use std::time::Duration;

use crate::domain::ids::TicketId;
use crate::github::GithubError;
use crate::tracker::TrackerError;

impl From<GithubError> for TrackerError {
    fn from(error: GithubError) -> Self {
        let status = |status, detail: &str| Self::Status { status, detail: detail.to_owned() };
        match &error {
            GithubError::Config(words) => Self::InvalidConfig(words.clone()),
            GithubError::Unreachable(words) => Self::Request(words.clone()),
            GithubError::MaybeDone(words) => Self::MaybeDone(words.clone()),
            GithubError::Auth(words) => Self::Auth(words.clone()),
            GithubError::Withdrawn => Self::Later { wait: Duration::ZERO, why: error.to_string() },
            GithubError::RateLimited { wait, by } if by.is_our_own() => {
                Self::Later { wait: *wait, why: by.to_string() }
            }
            GithubError::RateLimited { wait, .. } => Self::RateLimited { retry_after: Some(*wait) },
            GithubError::NotFound(words) => status(404, words),
            GithubError::Gone(words) => status(410, words),
            GithubError::Moved(to) => status(301, to),
            GithubError::Refused(refusal) => Self::Refused(refusal.to_string()),
            GithubError::Server { status: code, detail } => status(*code, detail),
            GithubError::Unreadable(words) => Self::Response(words.clone()),
            GithubError::Pages(words) => Self::Pagination(words.clone()),
        }
    }
}

/// Converts an error about one ticket: an issue that GitHub does not show is `NotFound`.
pub fn about(id: &TicketId) -> impl Fn(GithubError) -> TrackerError + use<'_> {
    move |error| match error {
        GithubError::NotFound(_) | GithubError::Gone(_) | GithubError::Moved(_) => TrackerError::NotFound(id.clone()),
        other => other.into(),
    }
}
