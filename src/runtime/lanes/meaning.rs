//! What an adapter's error says about the adapter itself: whether it works, asks for a pause, or refuses access.

use std::fmt::Display;
use std::time::Duration;

use crate::forge::ForgeError;
use crate::tracker::TrackerError;

/// The pause after a rate limit that does not say how long to wait.
const UNNAMED_WAIT: Duration = Duration::from_secs(60);

/// What an error means for the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The adapter works and has responded. The error concerns the caller alone.
    Answered,
    Failed,
    /// The adapter works, but this kind of call has to wait this long. The lane goes on with other calls.
    Later(Duration),
    /// The lane makes no calls for this long.
    Wait(Duration),
    /// Access is refused until a person repairs it.
    LockedOut,
}

pub trait AdapterError: Display {
    fn meaning(&self) -> Meaning;
}

impl AdapterError for TrackerError {
    fn meaning(&self) -> Meaning {
        match self {
            Self::RateLimited { retry_after } => Meaning::Wait(retry_after.unwrap_or(UNNAMED_WAIT)),
            Self::Status { status: 429, .. } => Meaning::Wait(UNNAMED_WAIT),
            Self::MissingSecret(_) | Self::Auth(_) | Self::Status { status: 401, .. } => Meaning::LockedOut,
            Self::InvalidConfig(_)
            | Self::Request(_)
            | Self::MaybeDone(_)
            | Self::Status { .. }
            | Self::Response(_)
            | Self::Pagination(_) => Meaning::Failed,
            Self::Later { wait, .. } => Meaning::Later(*wait),
            Self::NotFound(_) | Self::Refused(_) => Meaning::Answered,
        }
    }
}

impl AdapterError for ForgeError {
    fn meaning(&self) -> Meaning {
        match self {
            Self::RateLimited { retry_after } => Meaning::Wait(retry_after.unwrap_or(UNNAMED_WAIT)),
            Self::Status { status: 429, .. } => Meaning::Wait(UNNAMED_WAIT),
            Self::Auth(_) | Self::Status { status: 401, .. } => Meaning::LockedOut,
            Self::Request(_) | Self::MaybeDone(_) | Self::Status { .. } | Self::Response(_) | Self::Git(_) => {
                Meaning::Failed
            }
            Self::Later { wait, .. } => Meaning::Later(*wait),
            Self::NotFound(_)
            | Self::HeadMoved { .. }
            | Self::OtherBase { .. }
            | Self::Conflict { .. }
            | Self::Apart { .. }
            | Self::NotNow(_)
            | Self::Refused(_) => Meaning::Answered,
        }
    }
}
