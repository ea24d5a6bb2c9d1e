//! When `--once` has done what it can: nothing is under way, and nothing would come without somebody outside.

use crate::domain::job::{CheckWait, MergeHold, Stage, Wait};
use crate::engine::state::{Pending, PendingStatus, State};

/// How often a failed effect is tried before `--once` ends without it.
const PATIENCE_WITH_EFFECTS: u32 = 3;

pub fn is_idle(state: &State) -> bool {
    state.runs.is_empty()
        && !state.outbox.values().any(comes_by_itself)
        && !state.jobs.values().any(|job| moves_by_itself(&job.stage))
}

/// A write that failed is waited for a few times; one that keeps failing is left to the next start.
fn comes_by_itself(pending: &Pending) -> bool {
    match pending.status {
        PendingStatus::InFlight => true,
        PendingStatus::Due { .. } => pending.attempts <= PATIENCE_WITH_EFFECTS,
        PendingStatus::Held { .. } => false,
    }
}

fn moves_by_itself(stage: &Stage) -> bool {
    match stage {
        Stage::Queued { wait, .. } => {
            matches!(
                wait,
                Wait::Ready | Wait::Slot | Wait::StateSlot { .. } | Wait::Continuation { .. } | Wait::Retry { .. }
            )
        }
        Stage::WaitingForChecks { on, .. } => matches!(on, CheckWait::Gates { .. } | CheckWait::Publishing { .. }),
        Stage::ReadyToMerge { hold, .. } => matches!(hold, MergeHold::Slot { .. }),
        Stage::Working { .. } | Stage::Merging { .. } => true,
        Stage::WaitingForHuman { .. } | Stage::Blocked { .. } | Stage::Done { .. } | Stage::Released { .. } => false,
    }
}
