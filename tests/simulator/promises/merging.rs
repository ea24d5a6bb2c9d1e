//! What a merge rests on, asked in the step that decides it.

use dirigent::domain::ids::{CommitId, TicketId};

use crate::simulation::Simulation;
use crate::witness::Heard;

/// A merge leaves only in the step that takes in a complete look, asked in the job's turn and after everything of ours was answered,
/// which shows the head that git has and the base of the workflow; and over nobody's words.
pub fn is_sound(
    simulation: &Simulation,
    heard: &Heard,
    ticket: &TicketId,
    number: u64,
    head: &CommitId,
) -> Result<(), String> {
    let refuse = |why: String| Err(format!("#{number} of {ticket} is merged at {} although {why}", head.short()));
    let Some(look) = heard.look.as_ref().filter(|look| look.ticket == *ticket && look.number == number) else {
        return refuse("nobody has looked at it".into());
    };
    if !look.complete || !look.open {
        return refuse("the look is not complete".into());
    }
    if look.head != *head || look.ref_head.as_ref() != Some(head) {
        return refuse(format!("the look shows {} and git has {:?}", look.head.short(), look.ref_head));
    }
    if look.base != simulation.policy.pr.base_branch {
        return refuse(format!("its base is {}", look.base));
    }
    let witness = &simulation.witness;
    match witness.turns.get(ticket) {
        Some((_, since)) if look.asked >= *since => {}
        _ => return refuse("the look is older than its turn".into()),
    }
    if witness.answered.get(ticket).is_some_and(|answered| look.asked < *answered) {
        return refuse("the look is older than the answer to our last write".into());
    }
    if look.asked < witness.base_written {
        return refuse("the look is older than our last merge into the base".into());
    }
    let accepted = simulation.world.approved.contains(&(ticket.clone(), head.clone()));
    if let Some(wish) = simulation.world.wishes.standing(ticket, accepted) {
        return refuse(format!("somebody's words stand against it: {wish:?}"));
    }
    Ok(())
}
