//! Which workflow a seed plays under.

use std::time::Duration;

use dirigent::config::policy::{Caps, ClosedPrPolicy, ForgeKind, Order, Policy};
use dirigent::domain::phase::Phase;

use super::engine::fixtures::policy;

pub fn policy_of(seed: u64) -> Policy {
    let mut policy = policy();
    policy.polling_interval = Duration::from_secs(60);
    policy.archive_after = Duration::from_secs([0, 60, 600, 86_400][(seed % 17 % 4) as usize]);
    policy.agent.max_concurrent = 1 + (seed % 3) as usize;
    policy.agent.max_retries = 3;
    policy.gates.has_task_gates = seed.is_multiple_of(2);
    if policy.gates.has_task_gates {
        policy.gates.task_names = vec!["make check".into()];
    }
    policy.merge.require_human_approval = seed % 5 == 1;
    policy.review.enabled = seed % 7 == 3;
    policy.orchestration.workpad = seed % 3 == 1;
    if seed % 11 == 4 {
        policy.pr.forge = ForgeKind::Local;
    }
    if seed % 8 == 5 {
        policy.agent.order = Order::CriticalPath;
    }
    if seed % 13 == 6 {
        policy.agent.fresh_start = Duration::from_secs(600);
        policy.agent.max_run = Duration::from_secs(3600);
    }
    if seed.is_multiple_of(3) {
        policy.orchestration.states.insert(Phase::Implementing, "In Progress".into());
        policy.orchestration.states.insert(Phase::WaitingForChecks, "In Review".into());
        policy.orchestration.states.insert(Phase::Blocked, "Stuck".into());
    }
    if seed % 4 == 2 {
        policy.budget.ticket = Caps { max_tokens: Some(1000), ..Caps::default() };
        policy.budget.daily = Caps { max_tokens: Some(3000), ..Caps::default() };
    }
    policy.pr.closed_pr =
        [ClosedPrPolicy::Stop, ClosedPrPolicy::Reopen, ClosedPrPolicy::NewBranch][(seed % 3) as usize];
    policy
}
