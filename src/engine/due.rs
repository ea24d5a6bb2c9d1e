//! When the engine has to be woken: the earliest of all due times in the state.

use super::hindrance;
use super::state::State;
use crate::config::policy::Policy;
use crate::domain::time::Timestamp;

/// Returns the next due time; `None` when only an event from outside can move anything.
pub fn next_due(state: &State, policy: &Policy) -> Option<Timestamp> {
    let times = [
        state.jobs.index().due.first(),
        state.runs.due().first(),
        state.outbox.due().first(),
        state.look_again.first(),
        state.workpads.first(),
        lines_open(state, policy),
    ];
    times.into_iter().flatten().min()
}

/// Returns when the next pause of a whole line ends: a usage limit or a spent daily budget.
fn lines_open(state: &State, policy: &Policy) -> Option<Timestamp> {
    let pools = state.jobs.lines().filter_map(|line| state.meta.pools.get(&line.pool)?.paused_until);
    // Limits that have passed were handled when the jobs were last settled.
    let quota = pools.filter(|until| *until > state.settled_at).min();
    let somebody = state.jobs.is_anybody_in_line();
    let spent = hindrance::day_is_spent(state, policy, state.settled_at);
    let day = spent.filter(|_| somebody).map(|(_, until)| until);
    quota.into_iter().chain(day).min()
}
