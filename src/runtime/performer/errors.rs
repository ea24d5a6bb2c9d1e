//! What a failed call means for its effect: try again, give up, or wait.

use super::super::lanes::{AdapterError, CallError, LaneFailure, Meaning};
use crate::engine::event::EffectError;
use crate::forge::ForgeError;
use crate::tracker::TrackerError;

pub fn permanent(detail: impl ToString) -> EffectError {
    EffectError::Permanent { detail: detail.to_string() }
}

pub fn transient(detail: impl ToString) -> EffectError {
    EffectError::Transient { detail: detail.to_string(), retry_after: None }
}

impl From<LaneFailure> for EffectError {
    fn from(failure: LaneFailure) -> Self {
        let detail = failure.to_string();
        match failure {
            LaneFailure::Held { locked_out: true, .. } => Self::Auth { detail },
            LaneFailure::Held { left, .. } => Self::Transient { detail, retry_after: Some(left) },
            // The call had left, so what it was to change may be changed.
            LaneFailure::Late { .. } | LaneFailure::BrokeDown { .. } => Self::MaybeDone { detail },
        }
    }
}

impl From<CallError<TrackerError>> for EffectError {
    fn from(error: CallError<TrackerError>) -> Self {
        let error = match error {
            CallError::Lane(failure) => return failure.into(),
            CallError::Adapter(error) => error,
        };
        if let Some(held) = held(&error) {
            return held;
        }
        match error {
            TrackerError::MaybeDone(_) => Self::MaybeDone { detail: error.to_string() },
            error if error.is_transient() => transient(error),
            error => permanent(error),
        }
    }
}

impl From<CallError<ForgeError>> for EffectError {
    fn from(error: CallError<ForgeError>) -> Self {
        let error = match error {
            CallError::Lane(failure) => return failure.into(),
            CallError::Adapter(error) => error,
        };
        if let Some(held) = held(&error) {
            return held;
        }
        match error {
            ForgeError::MaybeDone(_) => Self::MaybeDone { detail: error.to_string() },
            ForgeError::HeadMoved { actual, .. } => Self::HeadMoved { actual },
            ForgeError::OtherBase { actual, .. } => Self::OtherBase { actual },
            ForgeError::Conflict { files } => Self::Conflict { files },
            ForgeError::Apart { files, kept } => Self::Apart { files, kept },
            ForgeError::NotNow(because) => Self::NotNow { because },
            ForgeError::Request(_) | ForgeError::Response(_) | ForgeError::Git(_) => transient(error),
            ForgeError::Status { status, .. } if status >= 500 => transient(error),
            ForgeError::Status { .. }
            | ForgeError::Auth(_)
            | ForgeError::RateLimited { .. }
            | ForgeError::Later { .. }
            | ForgeError::NotFound(_)
            | ForgeError::Refused(_) => permanent(error),
        }
    }
}

/// Returns the error for what the lane waits out, `None` for other errors. Such an effect is never given up: neither a rate limit nor
/// refused access is about this effect.
fn held(error: &impl AdapterError) -> Option<EffectError> {
    let detail = error.to_string();
    match error.meaning() {
        Meaning::Wait(wait) | Meaning::Later(wait) => Some(EffectError::Transient { detail, retry_after: Some(wait) }),
        Meaning::LockedOut => Some(EffectError::Auth { detail }),
        Meaning::Answered | Meaning::Failed => None,
    }
}
