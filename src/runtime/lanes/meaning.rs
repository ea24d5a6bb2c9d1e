//! What an adapter's error says about the adapter itself: whether it is there, wants us to wait, or shuts us out.

use std::fmt::Display;
use std::time::Duration;

use crate::forge::ForgeError;
use crate::tracker::TrackerError;

/// How long nothing is asked of an adapter that limits us and does not say for how long.
const UNNAMED_WAIT: Duration = Duration::from_secs(60);

/// What a lane makes of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The adapter is well and has answered; what it says is the caller's affair.
    Answered,
    Failed,
    /// The adapter is well, and this kind of call has to wait so long. The lane goes on.
    Later(Duration),
    /// Nothing is to be asked for so long.
    Wait(Duration),
    /// A person has to mend our access.
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
