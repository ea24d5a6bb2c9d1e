//! Deadlines of live runs: start, silence, open tool calls, the whole run, fresh start.

use std::time::Duration;

use crate::config::policy::AgentPolicy;
use crate::domain::failure::RunFailure;
use crate::domain::run::{Life, LiveRun, StopReason};
use crate::domain::time::Timestamp;

/// One deadline of a run: when it passes, and what it then means.
struct Deadline {
    at: Timestamp,
    reason: StopReason,
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn deadlines(run: &LiveRun, policy: &AgentPolicy, now: Timestamp) -> Vec<Deadline> {
    let mut all = Vec::new();
    let mut add = |from: Timestamp, limit: Duration, failure: fn(u64, u64) -> RunFailure| {
        if !limit.is_zero() {
            let failure = failure(millis(now.since(from)), millis(limit));
            all.push(Deadline { at: from + limit, reason: StopReason::Limit { failure } });
        }
    };
    add(run.started_at, policy.max_run, |ran_ms, limit_ms| RunFailure::RunTimeout { ran_ms, limit_ms });
    match (&run.life, run.progress.tool_open_since) {
        (Life::Spawning, _) => add(run.started_at, policy.start_timeout, |waited, limit| RunFailure::Handshake {
            detail: format!("nothing was there after {waited} ms (agent.start_timeout_ms is {limit})"),
        }),
        (Life::Running { .. }, _) if run.progress.waiting_for_answer => {}
        // While a tool call is open the clock is the tool's.
        (Life::Running { .. }, Some(since)) => {
            add(since, policy.tool_timeout, |open_ms, limit_ms| RunFailure::ToolTimeout { open_ms, limit_ms });
        }
        (Life::Running { .. }, None) => {
            let last = run.progress.last_event_at;
            add(last, policy.stall_timeout, |silent_ms, limit_ms| RunFailure::Stalled { silent_ms, limit_ms });
            add(last, policy.turn_timeout, |silent_ms, limit_ms| RunFailure::TurnTimeout { silent_ms, limit_ms });
        }
    }
    if !policy.fresh_start.is_zero() && !run.progress.has_commit_or_evidence {
        all.push(Deadline { at: run.started_at + policy.fresh_start, reason: StopReason::FreshStart });
    }
    all
}

/// The deadline that has passed first, if one has.
pub fn overdue(run: &LiveRun, policy: &AgentPolicy, now: Timestamp) -> Option<StopReason> {
    deadlines(run, policy, now)
        .into_iter()
        .filter(|deadline| deadline.at <= now)
        .min_by_key(|deadline| deadline.at)
        .map(|deadline| deadline.reason)
}

/// When to look again.
pub fn next(run: &LiveRun, policy: &AgentPolicy, now: Timestamp) -> Option<Timestamp> {
    deadlines(run, policy, now).into_iter().map(|deadline| deadline.at).min()
}
