//! Everything that can go wrong between Dirigent and a tracker, distinguished by what has to happen next.

use std::time::Duration;

use thiserror::Error;

use crate::domain::ids::TicketId;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrackerError {
    #[error("invalid tracker configuration: {0}")]
    InvalidConfig(String),
    #[error("the tracker's secret is missing: {0}")]
    MissingSecret(String),
    #[error("the tracker could not be reached: {0}")]
    Request(String),
    /// The request was sent and its response was lost: a write may have taken effect.
    #[error("the tracker's answer was lost: {0}")]
    MaybeDone(String),
    /// No request gets through until a person repairs the access.
    #[error("the tracker refuses our access: {0}")]
    Auth(String),
    #[error("the tracker answered {status}: {detail}")]
    Status { status: u16, detail: String },
    #[error("the tracker's answer could not be understood: {0}")]
    Response(String),
    #[error("a page of the tracker's answer is missing: {0}")]
    Pagination(String),
    #[error("the tracker limits our requests{}", .retry_after.map(|d| format!(" for {} s", d.as_secs())).unwrap_or_default())]
    RateLimited { retry_after: Option<Duration> },
    /// Calls of this kind have to wait; other calls go on.
    #[error("not for {} s: {why}", .wait.as_secs())]
    Later { wait: Duration, why: String },
    #[error("ticket {0} does not exist")]
    NotFound(TicketId),
    #[error("the tracker refuses: {0}")]
    Refused(String),
}

impl TrackerError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidConfig(_) => "invalid_config",
            Self::MissingSecret(_) => "missing_secret",
            Self::Request(_) => "request",
            Self::MaybeDone(_) => "maybe_done",
            Self::Auth(_) => "auth",
            Self::Status { .. } => "status",
            Self::Response(_) => "response",
            Self::Pagination(_) => "pagination",
            Self::RateLimited { .. } => "rate_limited",
            Self::Later { .. } => "later",
            Self::NotFound(_) => "not_found",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether the same call may work later without any change by a person.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Request(_)
            | Self::MaybeDone(_)
            | Self::Response(_)
            | Self::Pagination(_)
            | Self::RateLimited { .. }
            | Self::Later { .. } => true,
            Self::Status { status, .. } => *status >= 500 || *status == 429 || *status == 408,
            Self::Auth(_) | Self::InvalidConfig(_) | Self::MissingSecret(_) | Self::NotFound(_) | Self::Refused(_) => {
                false
            }
        }
    }
}
