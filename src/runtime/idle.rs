//! Decides when a runner that exits when idle (`--once`) is finished: nothing is under way, and nothing will happen without an action from
//! outside.

use std::time::Duration;

use crate::config::policy::Policy;
use crate::domain::job::{CheckWait, Hindrance, MergeHold, Stage, Wait};
use crate::domain::phase::Phase;
use crate::engine::hindrance;
use crate::engine::state::{Pending, PendingStatus, State};

use super::driver::Until;
use super::now;

/// How many attempts of a failing effect are waited for.
const PATIENCE_WITH_EFFECTS: u32 = 3;

/// A retry that is due within this time is still waited for.
const SOON: Duration = Duration::from_secs(3);

pub fn is_idle(state: &State, policy: &Policy, until: Until) -> bool {
    state.runs.is_empty()
        && !state.outbox.values().any(comes_by_itself)
        && !somebody_starts(state, policy, until)
        && !somebody_moves(state, policy)
}

/// Whether this effect is under way or will be tried again soon. An effect that keeps failing is left to the next start of the runner.
fn comes_by_itself(pending: &Pending) -> bool {
    match pending.status {
        PendingStatus::InFlight => true,
        PendingStatus::Due { .. } => pending.attempts <= PATIENCE_WITH_EFFECTS,
        PendingStatus::Held { .. } => false,
    }
}

/// Whether a queued job will start by itself: at its time, or when a slot is free.
fn somebody_starts(state: &State, policy: &Policy, until: Until) -> bool {
    let waits_for_a_slot = |line: &_| {
        let hindrance = hindrance::of_line(state, policy, line, now());
        matches!(hindrance, None | Some(Hindrance::Slot | Hindrance::StateSlot { .. } | Hindrance::QuotaTrial { .. }))
    };
    // What keeps all jobs from starting also keeps those from starting whose retry is due.
    hindrance::of_starts(state, policy, now()).is_none()
        && (somebody_is_tried_again(state, until) || state.jobs.lines().any(waits_for_a_slot))
}

fn somebody_is_tried_again(state: &State, until: Until) -> bool {
    if until != Until::Once || state.jobs.index().retrying() == 0 {
        return state.jobs.index().retrying() > 0;
    }
    let soon = now() + SOON;
    state.jobs.values().any(|job| match &job.stage {
        Stage::Queued { wait: Wait::Retry { due, .. }, .. } => *due <= soon,
        Stage::Queued { wait: Wait::Continuation { .. }, .. } => true,
        _ => false,
    })
}

/// Whether a job will go on without a person: its gates run, it is published, or it is merged.
fn somebody_moves(state: &State, policy: &Policy) -> bool {
    let index = state.jobs.index();
    let phases = [Phase::WaitingForChecks, Phase::ReadyToMerge, Phase::Merging];
    let mut jobs = phases.into_iter().flat_map(|phase| index.in_phase(phase)).filter_map(|id| state.jobs.get(id));
    jobs.any(|job| match &job.stage {
        Stage::WaitingForChecks { on, .. } => matches!(on, CheckWait::Gates { .. } | CheckWait::Publishing { .. }),
        Stage::ReadyToMerge { hold: MergeHold::Queue, .. } => {
            matches!(hindrance::of_job(state, policy, job, now()), None | Some(Hindrance::Behind { .. }))
        }
        Stage::Merging { .. } => true,
        _ => false,
    })
}
