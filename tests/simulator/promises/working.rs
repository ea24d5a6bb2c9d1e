//! What a run and a rework rest on, asked in the step that decides them.

use dirigent::config::policy::ClosedPrPolicy;
use dirigent::domain::ids::{CommitId, EffectId, TicketId};
use dirigent::domain::job::{Job, ReworkCause, ReworkTrigger, Stage, Work};
use dirigent::domain::pr::PrState;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;

use crate::simulation::Simulation;
use crate::witness::Heard;

/// As far back as what the runner knows may lie: a poll, a slow answer, a replica.
const HORIZON: i64 = 240_000;

fn lately(simulation: &Simulation) -> Timestamp {
    Timestamp(simulation.outside_now().0 - HORIZON)
}

/// A run starts only for a ticket that is worked on, and a rework not for what somebody has made unnecessary.
pub fn has_a_cause(simulation: &Simulation, ticket: &TicketId, work: &Work) -> Result<(), String> {
    let (policy, world) = (&simulation.policy, &simulation.world);
    let mut live = policy.tracker.active_states.clone();
    live.extend(policy.orchestration.rework_states.iter().cloned());
    live.extend(policy.merge.approval_states.iter().cloned());
    live.extend(policy.orchestration.states.values().cloned());
    if !world.was_lately_in(ticket, &live, lately(simulation)) {
        let state = world.tickets.get(ticket).map(|ticket| &ticket.state);
        return Err(format!("a run of {ticket} starts, and nobody wants it: {state:?}"));
    }
    let decided = simulation.witness.reworks.get(ticket);
    if matches!(work, Work::Rework { .. }) && decided.is_some_and(|decided| decided.overtaken) {
        return Err(format!(
            "a needless rework of {ticket} starts: the branch is at another head, and was looked at since"
        ));
    }
    Ok(())
}

/// A review is paid for only where the workflow asks for one, of a head that was pushed and that none has read, and no more often
/// than `review.max_passes` says.
pub fn review_has_a_cause(simulation: &Simulation, job: &Job, head: &CommitId) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("{} is reviewed at {}: {why}", job.ticket.id, head.short()));
    let (policy, reviews) = (&simulation.policy, &job.delivery.reviews);
    if !policy.review.enabled {
        return refuse("nobody asks for it");
    }
    if reviews.passes >= policy.review.max_passes {
        return refuse("the reviews of this ticket are used up");
    }
    if reviews.head.as_ref() == Some(head) {
        return refuse("a review has read it");
    }
    let number = job.delivery.pr.as_ref().map_or(0, |pr| pr.number.0);
    if !simulation.world.was_green.contains(&(number, head.clone())) {
        return refuse("nobody ever saw this head green");
    }
    Ok(())
}

/// A rework is decided for something that is so. Answers with the head that it is about.
pub fn is_wanted(
    simulation: &Simulation,
    heard: &Heard,
    ticket: &TicketId,
    cause: &ReworkCause,
) -> Result<Option<CommitId>, String> {
    let world = &simulation.world;
    let refuse = |why: &str| Err(format!("{ticket} is reworked for {:?} ({}): {why}", cause.trigger, cause.summary));
    let look = heard.look.as_ref().filter(|look| look.ticket == *ticket);
    match cause.trigger {
        ReworkTrigger::MergeConflict if heard.conflict.as_ref() == Some(ticket) => Ok(None),
        ReworkTrigger::CheckFailed | ReworkTrigger::MergeConflict => {
            let Some(look) = look else { return refuse("nobody has looked") };
            let facts =
                if cause.trigger == ReworkTrigger::CheckFailed { &world.was_red } else { &world.was_in_conflict };
            if look.ref_head.as_ref() != Some(&look.head) || !facts.contains(&(look.number, look.head.clone())) {
                return refuse("it was never so on this head");
            }
            let witness = &simulation.witness;
            if witness.answered.get(ticket).is_some_and(|answered| look.asked < *answered) {
                return refuse("the look is older than the answer to our last write");
            }
            if cause.trigger == ReworkTrigger::MergeConflict && look.asked < witness.base_written {
                return refuse("the look is older than our last merge into the base");
            }
            Ok(Some(look.head.clone()))
        }
        ReworkTrigger::GateFailed if heard.gate_failed.as_ref() != Some(ticket) => refuse("no gate has failed"),
        ReworkTrigger::Contradicted
            if !world.lied_about.contains(ticket) && !has_failed_its_gates(simulation, ticket) =>
        {
            refuse("nobody has lied")
        }
        ReworkTrigger::ReviewFinding if !was_found_wanting(simulation, ticket) => {
            refuse("no review of it has found anything")
        }
        ReworkTrigger::ReworkState => {
            let there = world.tickets.get(ticket).is_some_and(|ticket| ticket.state == "Rework");
            let was = world.left_rework.get(ticket).is_some_and(|at| *at >= lately(simulation));
            if there || was { Ok(None) } else { refuse("nobody has moved it") }
        }
        ReworkTrigger::ChangesRequested
        | ReworkTrigger::UnresolvedThread
        | ReworkTrigger::TicketComment
        | ReworkTrigger::Operator => {
            let closed = simulation.policy.pr.closed_pr == ClosedPrPolicy::NewBranch
                && world.pr_owner.iter().any(|(n, owner)| owner == ticket && world.prs[n].state == PrState::Closed);
            // What nobody could look at since is as it was.
            let seen = simulation.witness.seen_at.get(ticket).map_or(0, |at| at.0 - HORIZON);
            if closed || world.wishes.ask_for_work(ticket, lately(simulation).min(Timestamp(seen))) {
                Ok(None)
            } else {
                refuse("nobody asks for anything that is not dealt with")
            }
        }
        _ => Ok(None),
    }
}

/// Whether the head that the job's receipt is about did not pass.
fn has_failed_its_gates(simulation: &Simulation, ticket: &TicketId) -> bool {
    let receipt = simulation.state.jobs.get(ticket).and_then(|job| job.evidence.receipt.as_ref());
    receipt.and_then(|receipt| receipt.head.as_ref()).is_some_and(|head| simulation.world.not_gated.contains(head))
}

/// Whether a review of the head that was read last, or of one that it is made of, has found something to mend.
fn was_found_wanting(simulation: &Simulation, ticket: &TicketId) -> bool {
    let world = &simulation.world;
    let read = simulation.state.jobs.get(ticket).and_then(|job| job.delivery.reviews.head.as_ref());
    read.is_some_and(|read| world.found_wanting.iter().any(|wanting| world.contains(read, wanting)))
}

/// Refused access is nobody's decision: the effect stays, and the job is not blocked by it.
pub fn outlives_a_401(
    simulation: &Simulation,
    effect: EffectId,
    ticket: &TicketId,
    was_blocked: bool,
) -> Result<(), String> {
    let job = simulation.state.jobs.get(ticket);
    if !was_blocked && job.is_some_and(|job| matches!(job.stage, Stage::Blocked { .. })) {
        return Err(format!("{ticket} is blocked by a 401"));
    }
    let stays = simulation.state.outbox.get(&effect).is_some();
    let lasts = |action: &Action| {
        matches!(
            action,
            Action::Comment { .. } | Action::CreateTicket { .. } | Action::WriteReceipt { .. } | Action::CleanUp { .. }
        )
    };
    let lost = simulation.ledger.pending().find(|pending| pending.effect.id == effect).filter(|_| !stays);
    match lost.filter(|pending| lasts(&pending.effect.action)) {
        Some(pending) if !simulation.world.given_back.contains(ticket) => {
            Err(format!("a 401 drops {:?}", pending.effect.action))
        }
        _ => Ok(()),
    }
}
