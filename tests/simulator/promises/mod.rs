//! The promises as predicates over world and state.

use std::collections::BTreeSet;

use dirigent::config::policy::RolloutMode;
use dirigent::domain::ids::{EffectId, TicketId};
use dirigent::domain::job::{Hindrance, Stage, Wait, Work};
use dirigent::domain::pr::PrState;
use dirigent::domain::ticket::{same_state, state_in};
use dirigent::engine::effect::Action;
use dirigent::engine::{hindrance, reason};

pub mod merging;
pub mod working;

use super::agents::BEAT_TOKENS;
use super::engine::fixtures::SWITCH_LABEL;
use super::simulation::Simulation;

/// Asked right before a write reaches the world, independently of the permit.
pub fn may_be_written(simulation: &Simulation, ticket: &TicketId, action: &Action) -> Result<(), String> {
    let (state, world, policy) = (&simulation.state, &simulation.world, &simulation.policy);
    let refuse = |why: &str| Err(format!("{action:?} reaches the world although {why}"));
    if world.kill_file {
        return refuse("the kill-switch file is there");
    }
    if state.meta.pause_all.is_some() {
        return refuse("everything is paused");
    }
    if policy.rollout.mode == RolloutMode::Observe {
        return refuse("the mode is observe");
    }
    let Some(job) = state.jobs.get(ticket) else { return refuse("nobody knows the ticket") };
    if job.people.pause.is_some() || job.ticket.labels.iter().any(|label| label == SWITCH_LABEL) {
        return refuse("the ticket is stopped");
    }
    if job.delivery.pr.as_ref().is_some_and(|pr| pr.labels.iter().any(|label| label == SWITCH_LABEL)) {
        return refuse("the pull request is stopped");
    }
    match action {
        Action::Acknowledge { told, .. } | Action::AddLabels { told, .. }
            if world.told.get(&told.comment) != Some(&true) =>
        {
            return refuse("nobody whose words count told us anything");
        }
        Action::MergePr { number, head, .. } => {
            if policy.rollout.mode != RolloutMode::Merge {
                return refuse("the mode does not merge");
            }
            if !world.was_good.contains(&(number.0, head.clone())) {
                return refuse("nobody ever saw this head green");
            }
            if policy.gates.has_task_gates && !world.gated.contains(head) {
                return refuse("the gates never passed on this head");
            }
            let approved = world.approved.contains(&(ticket.clone(), head.clone()));
            if policy.merge.require_human_approval && !approved {
                return refuse("nobody approved this head");
            }
            if policy.review.enabled && !world.reviewed.contains(head) && !approved {
                return refuse("no review read this head");
            }
            if policy.review.enabled && world.found_wanting.contains(head) && !approved {
                return refuse("the review of this head has a finding that nobody dealt with");
            }
        }
        Action::StartRun { work, .. } => {
            if let Work::Review { head } = work {
                working::review_has_a_cause(simulation, job, head)?;
            }
            if simulation.agents.values().any(|agent| agent.ticket == *ticket) {
                return refuse("the ticket has a live worker");
            }
            if simulation.agents.len() >= policy.agent.max_concurrent {
                return refuse("every slot is taken");
            }
            let is_open =
                |state: Option<&str>| !state.is_some_and(|state| state_in(state, &policy.tracker.terminal_states));
            if job.ticket.blocked_by.iter().any(|blocker| is_open(blocker.state.as_deref())) {
                return refuse("the ticket is blocked by another");
            }
        }
        _ => {}
    }
    Ok(())
}

/// Asked after an answer was given: what somebody told us is carried out, and answered, by one decision.
pub fn answered_once(simulation: &Simulation, effect: EffectId, key: &str) -> Result<(), String> {
    match simulation.world.acknowledged.get(key) {
        Some(first) if *first != effect => Err(format!("{key} was decided twice: {first:?} and {effect:?}")),
        _ => Ok(()),
    }
}

/// Asked after every step: nobody whose words do not count has stopped or approved anything.
pub fn strangers_decide_nothing(simulation: &Simulation, ticket: &TicketId) -> Result<(), String> {
    let Some(job) = simulation.state.jobs.get(ticket) else { return Ok(()) };
    let paused = job.people.pause.as_ref().map(|pause| &pause.by);
    let approved = job.people.approval.as_ref().map(|approval| &approval.by);
    let strangers = ["mallory", "stranger"];
    match paused.into_iter().chain(approved).find(|by| strangers.contains(&by.as_str())) {
        Some(by) => Err(format!("{by} decides about {ticket}")),
        None => Ok(()),
    }
}

/// Asked whenever the world was written to.
pub fn world_holds(simulation: &Simulation, ticket: &TicketId) -> Result<(), String> {
    let world = &simulation.world;
    if let Some((number, times)) = world.merges.iter().find(|(_, times)| **times > 1) {
        return Err(format!("#{number} was merged {times} times"));
    }
    if world.open_prs_of(ticket).count() > 1 {
        return Err(format!("{ticket} has two open pull requests"));
    }
    let posted = world.posted.get(ticket).map(Vec::as_slice).unwrap_or_default();
    let (mut told, mut effects) = (BTreeSet::new(), BTreeSet::new());
    for comment in posted {
        if comment.tells.as_ref().is_some_and(|tells| !told.insert(tells)) {
            return Err(format!("{ticket} is told twice: {comment:?}"));
        }
        if !effects.insert(comment.effect) {
            return Err(format!("one decision left two comments on {ticket}: {comment:?}"));
        }
    }
    let of = |prefix: &str| posted.iter().filter(|comment| comment.key.starts_with(prefix)).count();
    let entered = simulation.times_blocked.get(ticket).copied().unwrap_or(0);
    if of("blocked:") > entered {
        return Err(format!("{ticket} was blocked {entered} times and says so {} times", of("blocked:")));
    }
    let said = world.worker_words.get(ticket).copied().unwrap_or(0);
    if of("worker:") + of("asked:") > said {
        return Err(format!("the workers of {ticket} said {said} things, and more are on the ticket"));
    }
    Ok(())
}

/// Asked after every step that spends.
pub fn budget_holds(simulation: &Simulation) -> Result<(), String> {
    if let Some(cap) = simulation.policy.budget.ticket.max_tokens {
        for (id, job) in simulation.state.jobs.iter() {
            // The event that crosses the cap, and what the agent had not reported when it was stopped.
            if job.spending.since_reset.tokens() > cap + 2 * BEAT_TOKENS {
                return Err(format!("{id} spent {} of {cap} tokens", job.spending.since_reset.tokens()));
            }
        }
    }
    if let Some(cap) = simulation.policy.budget.daily.max_tokens {
        let slack = 2 * BEAT_TOKENS * simulation.policy.agent.max_concurrent as u64;
        let today = simulation.state.meta.daily.usage.tokens();
        if today > cap + slack {
            return Err(format!("{today} of {cap} tokens were spent in a day"));
        }
    }
    Ok(())
}

/// Asked at the end: nobody is left waiting for something that does not come.
pub fn settled(simulation: &Simulation) -> Result<(), String> {
    let (world, state) = (&simulation.world, &simulation.state);
    for (id, ticket) in &world.tickets {
        let active = state_in(&ticket.state, &simulation.policy.tracker.active_states);
        let Some(job) = state.jobs.get(id) else {
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
        );
        let hindrance = hindrance::of_job(state, &simulation.policy, job, simulation.now);
        let for_a_person = matches!(hindrance, Some(Hindrance::MergeDisabled | Hindrance::RolloutForbids));
        if !at_rest && !for_a_person {
            return Err(format!("{id} never comes to rest: {:?} {:?}", job.stage, job.delivery.pr));
        }
        let reason = reason(state, &simulation.policy, job, simulation.now);
        if reason.next.trim().is_empty() {
            return Err(format!("{id} does not say who has to move it: {reason:?}"));
        }
        if let Stage::Done { .. } = &job.stage {
            let merged = job.delivery.pr.as_ref().is_some_and(|pr| {
                world.prs.get(&pr.number.0).is_some_and(|pr| matches!(pr.state, PrState::Merged { .. }))
            });
            if !merged {
                return Err(format!("{id} is done, and nothing was merged: {:?}", job.delivery.pr));
            }
        }
    }
    if let Some(pending) = state.outbox.values().next() {
        return Err(format!("written down and never done: {pending:?}"));
    }
    Ok(())
}

/// Asked after everybody has answered everything: what is active is finished.
pub fn finished(simulation: &Simulation) -> Result<(), String> {
    let stuck = simulation.world.stuck.as_ref().map(|(stuck, _)| stuck);
    for (id, ticket) in simulation.world.tickets.iter().filter(|(id, _)| Some(*id) != stuck) {
        let active = state_in(&ticket.state, &simulation.policy.tracker.active_states);
        let Some(job) = simulation.state.jobs.get(id) else { continue };
        let waits_for_another = matches!(job.stage, Stage::Queued { wait: Wait::Blockers { .. }, .. });
        if active && !job.stage.phase().is_terminal() && !waits_for_another {
            return Err(format!(
                "{id} is not finished although everybody answered: {:?} {:?}",
                job.stage, job.delivery.pr
            ));
        }
        // Where the job is done, the ticket says so too, unless people moved it on since.
        if matches!(job.stage, Stage::Done { ticket_closed: false, .. })
            && job.column.as_ref().is_some_and(|write| same_state(&write.to, "Done"))
            && active
        {
            return Err(format!("{id} is done, and its ticket is still in {}", ticket.state));
        }
    }
    Ok(())
}

/// Asked at the end: what was written down while our access was refused is done, unless the ticket was taken from us.
pub fn debts_are_paid(simulation: &Simulation) -> Result<(), String> {
    let world = &simulation.world;
    let mut owed = simulation.owed.iter().filter(|(_, ticket)| !world.given_back.contains(*ticket));
    match owed.find(|(effect, _)| !world.performed.contains(effect)) {
        Some((effect, ticket)) => Err(format!("{effect:?} for {ticket} was dropped by a 401")),
        None => Ok(()),
    }
}

/// Asked at the end: what was saved is named on its ticket.
pub fn salvage_is_told(simulation: &Simulation) -> Result<(), String> {
    let ours = |ticket: &TicketId| !simulation.world.given_back.contains(ticket);
    for (run, ticket) in simulation.world.salvaged.iter().filter(|(_, ticket)| ours(ticket)) {
        let tells = format!("salvaged {run}");
        let posted = simulation.world.posted.get(ticket).map(Vec::as_slice).unwrap_or_default();
        if !posted.iter().any(|comment| comment.tells.as_ref() == Some(&tells)) {
            return Err(format!("unsaved work of run {run} was saved, and {ticket} does not say where"));
        }
    }
    Ok(())
}
