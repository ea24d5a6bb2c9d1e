//! What people are told after a command: where their ticket stands, and what becomes of their words.

use super::now;
use crate::config::policy::Policy;
use crate::domain::ids::TicketId;
use crate::domain::job::{HumanWait, Job, Stage};
use crate::engine::{self, state::State};

pub fn where_it_stands(state: &State, policy: &Policy, ticket: Option<&TicketId>) -> String {
    match ticket.and_then(|id| state.jobs.get(id)) {
        Some(job) if waits_for_what_it_has(job) => {
            let head = job.people.approved_head().map(|head| head.short().to_owned()).unwrap_or_default();
            format!("{}: {head} is approved; it is looked at once more and goes on", job.ticket.key)
        }
        Some(job) => {
            let reason = engine::reason(state, policy, job, now());
            let paused = if job.people.pause.is_some() { " (paused)" } else { "" };
            format!("{} is {}{paused}: {}", job.ticket.key, job.stage.phase(), reason.sentence)
        }
        None => match state.global_switch() {
            Some(source) => format!("everything is stopped ({})", source.name()),
            None => "everything goes on".into(),
        },
    }
}

pub fn how_it_arrives(state: &State, ticket: &TicketId) -> &'static str {
    match state.jobs.get(ticket).map(|job| &job.stage) {
        Some(Stage::Working { .. }) => {
            "an agent that can listen while it works hears it now; any other reads it with `tk show --new`, and the next \
             prompt carries it"
        }
        Some(Stage::Done { .. } | Stage::Released { .. }) => {
            "no agent will hear it: nobody works on this ticket any more"
        }
        _ => "the next prompt carries it",
    }
}

/// An approval counts from the next look at the pull request on, which is under way.
fn waits_for_what_it_has(job: &Job) -> bool {
    let Stage::WaitingForHuman { on: HumanWait::Approval { head } | HumanWait::NoChecks { head }, .. } = &job.stage
    else {
        return false;
    };
    job.people.is_approved(head)
}
