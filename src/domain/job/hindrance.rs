//! What keeps a job waiting through no fault of its own: it holds for all jobs, or for all that need the same thing.

use crate::domain::ids::{PoolName, TicketKey};
use crate::domain::time::Timestamp;

use super::stage::SwitchSource;

/// Worked out when somebody looks, never stored with a job: it comes and goes for all of them at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// A switch that stops everything.
    Switch {
        source: SwitchSource,
    },
    Observe,
    Preflight,
    /// The board could not be read; nothing is started on old knowledge.
    Tracker,
    DailyBudget {
        what: String,
        until: Timestamp,
    },
    ShuttingDown,
    /// The usage limit of the credentials that its agent would use.
    Quota {
        pool: PoolName,
        until: Timestamp,
    },
    /// The limit should be reset; one run finds out.
    QuotaTrial {
        pool: PoolName,
    },
    Slot,
    StateSlot {
        state: String,
    },
    /// Merging is a person's business here.
    MergeDisabled,
    RolloutForbids,
    /// Another one is merged first.
    Behind {
        key: TicketKey,
    },
}
