//! Deadlines of live runs: start, silence, open tool calls, the whole run, fresh start.

use std::time::Duration;

use super::state::State;
use crate::config::policy::{AgentPolicy, Policy};
use crate::domain::failure::RunFailure;
use crate::domain::job::Stage;
use crate::domain::run::{Life, LiveRun, StopReason};
use crate::domain::time::Timestamp;

/// A time limit of a run.
#[derive(Clone, Copy)]
enum Span {
    Start,
    Run,
    Silence,
    Turn,
    Tool,
    WithoutResult,
}

struct Deadline {
    of: Span,
    from: Timestamp,
    limit: Duration,
}

impl Deadline {
    fn at(&self) -> Timestamp {
        self.from + self.limit
    }

    /// Returns why the run is stopped when this deadline has passed.
    fn reason(&self, now: Timestamp) -> StopReason {
        let (took, limit) = (millis(now.since(self.from)), millis(self.limit));
        let failure = match self.of {
            Span::WithoutResult => return StopReason::FreshStart,
            Span::Start => RunFailure::Handshake {
                detail: format!("nothing was there after {took} ms (agent.start_timeout_ms is {limit})"),
            },
            Span::Run => RunFailure::RunTimeout { ran_ms: took, limit_ms: limit },
            Span::Silence => RunFailure::Stalled { silent_ms: took, limit_ms: limit },
            Span::Turn => RunFailure::TurnTimeout { silent_ms: took, limit_ms: limit },
            Span::Tool => RunFailure::ToolTimeout { open_ms: took, limit_ms: limit },
        };
        StopReason::Limit { failure }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Returns every deadline that applies to this run in its present state. A limit of zero means that there is none.
fn deadlines(run: &LiveRun, policy: &AgentPolicy) -> impl Iterator<Item = Deadline> {
    let deadline = |of, from, limit: Duration| (!limit.is_zero()).then_some(Deadline { of, from, limit });
    let whole = deadline(Span::Run, run.started_at, policy.max_run);
    let last = run.progress.last_event_at;
    let (one, other) = match (&run.life, run.progress.tool_open_since) {
        (Life::Spawning, _) => (deadline(Span::Start, run.started_at, policy.start_timeout), None),
        (Life::Running { .. }, _) if run.progress.waiting_for_answer => (None, None),
        // While a tool call is open, only the tool's limit applies.
        (Life::Running { .. }, Some(since)) => (deadline(Span::Tool, since, policy.tool_timeout), None),
        (Life::Running { .. }, None) => {
            let own = policy.timeouts.get(&run.runtime).copied().unwrap_or_default();
            (deadline(Span::Silence, last, own.stall), deadline(Span::Turn, last, own.turn))
        }
    };
    let fresh = deadline(Span::WithoutResult, run.started_at, policy.fresh_start)
        .filter(|_| !run.progress.has_commit_or_evidence);
    [whole, one, other, fresh].into_iter().flatten()
}

/// Returns why the run is to be stopped, by the deadline that passed first; `None` if none has.
pub fn overdue(run: &LiveRun, policy: &AgentPolicy, now: Timestamp) -> Option<StopReason> {
    deadlines(run, policy)
        .filter(|deadline| deadline.at() <= now)
        .min_by_key(Deadline::at)
        .map(|deadline| deadline.reason(now))
}

/// Returns when to look at the run again: at its next deadline, or when it will have used up its ticket's time budget. `None` for a run
/// that is being stopped, for which only the launcher's grace period counts.
pub fn next_look(state: &State, policy: &Policy, run: &LiveRun) -> Option<Timestamp> {
    let job = state.jobs.get(&run.ticket)?;
    if matches!(job.stage, Stage::Working { stopping: Some(_), .. }) {
        return None;
    }
    let cap = policy.budget.ticket.max_run.map(|cap| {
        let warn_at = if run.progress.told_to_wrap_up { cap } else { cap.saturating_mul(4) / 5 };
        run.started_at + warn_at.saturating_sub(Duration::from_millis(job.spending.run_ms_since_reset))
    });
    let quiet = quiet_at(run, &policy.agent).filter(|_| run.progress.quiet_noticed != Some(run.progress.last_event_at));
    deadlines(run, &policy.agent).map(|deadline| deadline.at()).chain(cap).chain(quiet).min()
}

/// Returns since when the agent has been silent, if that is longer than it should be. An open tool call has its own limit.
pub fn quiet_since(run: &LiveRun, policy: &AgentPolicy, now: Timestamp) -> Option<Timestamp> {
    quiet_at(run, policy).filter(|at| *at <= now).map(|_| run.progress.last_event_at)
}

/// Returns when the run will be stopped for silence, if nothing is heard from it until then.
pub fn stalls_at(run: &LiveRun, policy: &AgentPolicy) -> Option<Timestamp> {
    let is_silence = |deadline: &Deadline| match deadline.of {
        Span::Start | Span::Silence | Span::Turn | Span::Tool => true,
        Span::Run | Span::WithoutResult => false,
    };
    deadlines(run, policy).filter(is_silence).map(|deadline| deadline.at()).min()
}

fn quiet_at(run: &LiveRun, policy: &AgentPolicy) -> Option<Timestamp> {
    let progress = &run.progress;
    let works = matches!(run.life, Life::Running { .. }) && !progress.waiting_for_answer;
    let limit = policy.timeouts.get(&run.runtime).map(|own| own.quiet).filter(|limit| !limit.is_zero())?;
    (works && progress.tool_open_since.is_none()).then(|| progress.last_event_at + limit)
}
