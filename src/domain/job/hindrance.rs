//! What keeps a job waiting that is not its own doing: it holds for all jobs, or for all that need the same thing.

use crate::domain::ids::{PoolName, TicketKey};
use crate::domain::time::Timestamp;

use super::stage::SwitchSource;

/// Why a job waits through no doing of its own. Worked out when a view asks, never stored with a job, because it comes and goes for many
/// jobs at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// A switch that stops everything.
    Switch {
        source: SwitchSource,
    },
    Observe,
    Preflight,
    /// The board could not be read, so nothing is started on outdated information.
    Tracker,
    DailyBudget {
        what: String,
        until: Timestamp,
    },
    ShuttingDown,
    /// The usage limit of the credentials that the job's agent would use is reached.
    Quota {
        pool: PoolName,
        until: Timestamp,
    },
    /// The usage limit should be reset. One run of the pool tries; the others wait for it.
    QuotaTrial {
        pool: PoolName,
    },
    Slot,
    StateSlot {
        state: String,
    },
    /// `merge.mode` is disabled: merging is left to a person.
    MergeDisabled,
    RolloutForbids,
    /// Another job is merged first.
    Behind {
        key: TicketKey,
    },
}
