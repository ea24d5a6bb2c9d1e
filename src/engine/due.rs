//! When the machine wants to be woken: the earliest of all due times in the state.

use super::limits;
use super::settle::TURN;
use super::state::{PendingStatus, State};
use super::workpad;
use crate::config::policy::Policy;
use crate::domain::job::{Job, MergeHold, Stage, Wait};
use crate::domain::run::LiveRun;
use crate::domain::time::Timestamp;

/// `None` when only the outside can move anything.
pub fn next_due(state: &State, policy: &Policy) -> Option<Timestamp> {
    let jobs = state.jobs.values().filter_map(job_due);
    let workpads = state.unshown.iter().filter_map(|id| {
        let job = state.jobs.get(id).filter(|job| job.attempts > 0 && !workpad::is_in_flight(state, id))?;
        workpad::next_write(job, policy)
    });
    // A run that is being stopped has no deadline left but the launcher's grace.
    let going_on = || state.runs.values().filter(|run| !is_stopping(state, run));
    let runs = going_on().filter_map(|run| limits::next(run, &policy.agent));
    let run_caps = going_on().filter_map(|run| {
        let spent = state.jobs.get(&run.ticket).map_or(0, |job| job.spending.run_ms_since_reset);
        let cap = policy.budget.ticket.max_run?;
        let warn_at = if run.progress.told_to_wrap_up { cap } else { cap.saturating_mul(4) / 5 };
        Some(run.started_at + warn_at.saturating_sub(std::time::Duration::from_millis(spent)))
    });
    let effects = state.outbox.values().filter_map(|pending| match &pending.status {
        PendingStatus::Due { at, .. } => Some(*at),
        PendingStatus::InFlight | PendingStatus::Held { .. } => None,
    });
    let looks = state.look_again.values().copied();
    let turns = state.jobs.values().filter_map(|job| match &job.stage {
        Stage::ReadyToMerge { turn: Some(turn), .. } => Some(turn.since + TURN),
        _ => None,
    });
    jobs.chain(looks).chain(turns).chain(workpads).chain(runs).chain(run_caps).chain(effects).min()
}

fn is_stopping(state: &State, run: &LiveRun) -> bool {
    let job = state.jobs.get(&run.ticket);
    job.is_some_and(|job| matches!(job.stage, Stage::Working { stopping: Some(_), .. }))
}

fn job_due(job: &Job) -> Option<Timestamp> {
    match &job.stage {
        Stage::Queued { wait, .. } => match wait {
            Wait::Retry { due, .. } | Wait::Continuation { due } => Some(*due),
            Wait::Quota { until, .. } | Wait::DailyBudget { until, .. } => Some(*until),
            _ => None,
        },
        Stage::ReadyToMerge { hold: MergeHold::Forge { retry_at, .. }, .. } => Some(*retry_at),
        _ => None,
    }
}
