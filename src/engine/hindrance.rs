//! Hindrances: what keeps jobs waiting that is not their own doing, derived from what is true of many jobs.

use std::time::Duration;

use super::budget::{self, Level};
use super::jobs::StartLine;
use super::quota;
use super::route;
use super::run_store::column;
use super::state::{Daily, State, job_switch};
use crate::config::policy::{Policy, RolloutMode};
use crate::domain::job::{Hindrance, Job, MergeHold, Stage, SwitchSource, Wait};
use crate::domain::time::Timestamp;

/// Returns why no run at all starts.
pub fn of_starts(state: &State, policy: &Policy, now: Timestamp) -> Option<Hindrance> {
    if let Some(source) = state.global_switch() {
        return Some(Hindrance::Switch { source });
    }
    if policy.rollout.mode == RolloutMode::Observe {
        return Some(Hindrance::Observe);
    }
    if policy.rollout.preflight_missing {
        return Some(Hindrance::Preflight);
    }
    if state.shutting_down {
        return Some(Hindrance::ShuttingDown);
    }
    if let Some((what, until)) = day_is_spent(state, policy, now) {
        return Some(Hindrance::DailyBudget { what, until });
    }
    // Nothing is started on outdated information: neither while the board cannot be read, nor before it was first read in this life.
    let unread = state.tracker.last_error.is_some() || state.tracker.last_ok.is_none();
    unread.then_some(Hindrance::Tracker)
}

/// Returns which cap of the day's budget is spent, and when the day ends.
pub fn day_is_spent(state: &State, policy: &Policy, now: Timestamp) -> Option<(String, Timestamp)> {
    let Level::Exceeded { what, figure, cap } = level_of_day(state, policy, now) else { return None };
    Some((format!("{what}: {figure} of {cap}"), policy.budget.days.end_of(today(state, policy, now).day)))
}

/// Returns how close today's spending is to its caps. The time of live runs counts as well.
pub fn level_of_day(state: &State, policy: &Policy, now: Timestamp) -> Level {
    let (caps, today) = (&policy.budget.daily, today(state, policy, now));
    let mut ran = Duration::from_millis(today.run_ms);
    if caps.max_run.is_some() {
        ran = state.runs.values().fold(ran, |sum, run| sum.saturating_add(now.since(run.started_at)));
    }
    budget::level(caps, &today.usage, ran)
}

/// Returns what was spent today. The account of an earlier day does not count; a clock that was put back does not clear it.
pub fn today(state: &State, policy: &Policy, now: Timestamp) -> Daily {
    let (day, known) = (policy.budget.days.day(now), &state.meta.daily);
    if day > known.day { Daily { day, ..Daily::default() } } else { known.clone() }
}

/// Returns why no job in this line starts.
pub fn of_line(state: &State, policy: &Policy, line: &StartLine, now: Timestamp) -> Option<Hindrance> {
    if let Some(until) = quota::paused_until(state.meta.pools.get(&line.pool), now) {
        return Some(Hindrance::Quota { pool: line.pool.clone(), until });
    }
    // After the reset one run goes first, because the limit may not really have been reset.
    let is_tried = || state.runs.values().any(|run| run.pool == line.pool);
    if state.meta.pools.get(&line.pool).is_some_and(|pool| pool.limited) && is_tried() {
        return Some(Hindrance::QuotaTrial { pool: line.pool.clone() });
    }
    // The narrower limit is reported first, because a person would have to change that one.
    let limit = policy.agent.max_concurrent_by_state.get(&*line.state);
    if limit.is_some_and(|limit| state.runs.in_column(&line.state) >= *limit) {
        return Some(Hindrance::StateSlot { state: line.state.to_string() });
    }
    (state.runs.len() >= policy.agent.max_concurrent).then_some(Hindrance::Slot)
}

/// Returns the line that a queued job would stand in. `None` for a policy without any route.
pub fn line_of(job: &Job, policy: &Policy) -> Option<StartLine> {
    let Stage::Queued { work, .. } = &job.stage else { return None };
    let pool = route::pool(policy, &job.ticket, work.kind())?.clone();
    Some(StartLine { pool, state: column(&job.ticket.state).into() })
}

/// Returns why nothing at all is merged.
pub fn of_merges(state: &State, policy: &Policy) -> Option<Hindrance> {
    if !policy.merge.auto {
        Some(Hindrance::MergeDisabled)
    } else if policy.rollout.mode != RolloutMode::Merge || policy.rollout.preflight_missing {
        Some(Hindrance::RolloutForbids)
    } else {
        state.global_switch().map(|source| Hindrance::Switch { source })
    }
}

/// Returns what keeps this job waiting that is not its own doing.
pub fn of_job(state: &State, policy: &Policy, job: &Job, now: Timestamp) -> Option<Hindrance> {
    match &job.stage {
        // Checked here as well, because the job's own wait shows a pause only after the next decision, and without a runner there is none.
        Stage::Queued { .. } if job.people.pause.is_some() => {
            Some(Hindrance::Switch { source: SwitchSource::PauseTicket })
        }
        // A retry keeps its own time and reason, whatever else is in the way meanwhile.
        Stage::Queued { wait: Wait::Retry { .. } | Wait::Continuation { .. }, .. } => None,
        Stage::Queued { wait: Wait::Ready, .. } => of_ready_job(state, policy, job, now),
        // A switch that stops everything is reported first.
        Stage::Queued { .. } => state.global_switch().map(|source| Hindrance::Switch { source }),
        Stage::ReadyToMerge { hold, turn, .. } => {
            if let Some(hindrance) = of_merges(state, policy) {
                return Some(hindrance);
            }
            if let Some(source) = job_switch(job, policy.rollout.kill_switch_label.as_deref()) {
                return Some(Hindrance::Switch { source });
            }
            let held = matches!(hold, MergeHold::Forge { retry_at, .. } if *retry_at > now);
            if held || turn.is_some() { None } else { behind(state, job) }
        }
        _ => None,
    }
}

fn of_ready_job(state: &State, policy: &Policy, job: &Job, now: Timestamp) -> Option<Hindrance> {
    if let Some(hindrance) = of_starts(state, policy, now) {
        return Some(hindrance);
    }
    let id = &job.ticket.id;
    if state.is_out_of_sight(id) {
        return Some(Hindrance::Tracker);
    }
    of_line(state, policy, &line_of(job, policy)?, now)
}

/// Returns which job is merged before this one.
fn behind(state: &State, job: &Job) -> Option<Hindrance> {
    let index = state.jobs.index();
    let first = index.in_phase(crate::domain::phase::Phase::Merging).next();
    let first = first.or_else(|| index.turns.first()).or_else(|| index.landing.first())?;
    let key = state.jobs.get(first).filter(|first| first.ticket.id != job.ticket.id)?.ticket.key.clone();
    Some(Hindrance::Behind { key })
}
