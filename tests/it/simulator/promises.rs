//! The promises as predicates over world and state.

use dirigent::config::policy::RolloutMode;
use dirigent::domain::ids::TicketId;
use dirigent::domain::job::{MergeHold, Stage, Wait};
use dirigent::domain::ticket::state_in;
use dirigent::engine::effect::Action;

use super::agents::BEAT_TOKENS;
use super::runner::Simulation;
use crate::engine::fixtures::SWITCH_LABEL;

/// Asked right before a write reaches the world, independently of the permit.
pub fn may_be_written(simulation: &Simulation, ticket: &TicketId, action: &Action) -> Result<(), String> {
    let state = &simulation.state;
    let refuse = |why: &str| Err(format!("{action:?} reaches the world although {why}"));
    if simulation.world.kill_file {
        return refuse("the kill-switch file is there");
    }
    if state.meta.pause_all.is_some() {
        return refuse("everything is paused");
    }
    if simulation.policy.rollout.mode == RolloutMode::Observe {
        return refuse("the mode is observe");
    }
    let Some(job) = state.jobs.get(ticket) else { return refuse("nobody knows the ticket") };
    if job.pause.is_some() || job.ticket.labels.iter().any(|label| label == SWITCH_LABEL) {
        return refuse("the ticket is stopped");
    }
    if job.pr.as_ref().is_some_and(|pr| pr.labels.iter().any(|label| label == SWITCH_LABEL)) {
        return refuse("the pull request is stopped");
    }
    if let Action::MergePr { number, head, .. } = action {
        if simulation.policy.rollout.mode != RolloutMode::Merge {
            return refuse("the mode does not merge");
        }
        if !simulation.world.was_good.contains(&(number.0, head.clone())) {
            return refuse("nobody ever saw this head green");
        }
    }
    if let Action::StartRun { .. } = action
        && simulation.agents.values().any(|agent| agent.ticket == *ticket)
    {
        return refuse("the ticket has a live worker");
    }
    Ok(())
}

/// Asked after every step.
pub fn hold(simulation: &Simulation) -> Result<(), String> {
    let world = &simulation.world;
    if let Some((number, times)) = world.merges.iter().find(|(_, times)| **times > 1) {
        return Err(format!("#{number} was merged {times} times"));
    }
    for (id, job) in &simulation.state.jobs {
        let open = world
            .prs
            .values()
            .filter(|pr| pr.state == dirigent::domain::pr::PrState::Open && job.branch.name == pr.head_branch);
        if open.count() > 1 {
            return Err(format!("{id} has two open pull requests on its branch"));
        }
    }
    if let Some(cap) = simulation.policy.budget.ticket.max_tokens {
        for (id, job) in &simulation.state.jobs {
            // The event that crosses the cap, and what the agent had not reported when it was stopped.
            if job.budget_used.tokens() > cap + 2 * BEAT_TOKENS {
                return Err(format!("{id} spent {} of {cap} tokens", job.budget_used.tokens()));
            }
        }
    }
    Ok(())
}

/// Asked at the end: nobody is left waiting for something that does not come.
pub fn settled(simulation: &Simulation) -> Result<(), String> {
    for (id, ticket) in &simulation.world.tickets {
        let active = state_in(&ticket.state, &simulation.policy.tracker.active_states);
        let Some(job) = simulation.state.jobs.get(id) else {
            if active {
                return Err(format!("{id} is active and nobody has seen it"));
            }
            continue;
        };
        let at_rest = matches!(
            &job.stage,
            Stage::Done { .. }
                | Stage::Released { .. }
                | Stage::Blocked { .. }
                | Stage::WaitingForHuman { .. }
                | Stage::Queued { wait: Wait::Blockers { .. } | Wait::Cycle { .. }, .. }
                | Stage::ReadyToMerge { hold: MergeHold::MergeDisabled | MergeHold::RolloutForbids, .. }
        );
        if !at_rest {
            return Err(format!("{id} never comes to rest: {:?} {:?}", job.stage, job.pr));
        }
        let reason = job.stage.reason(simulation.now);
        if reason.next.trim().is_empty() {
            return Err(format!("{id} does not say who has to move it: {reason:?}"));
        }
    }
    Ok(())
}
