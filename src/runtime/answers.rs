//! Texts that tell a person, after a command, where the ticket stands and how the agent will get a message.

use super::now;
use crate::config::policy::Policy;
use crate::domain::ids::TicketId;
use crate::domain::job::Stage;
use crate::engine::{self, state::State};

pub fn where_it_stands(state: &State, policy: &Policy, ticket: Option<&TicketId>) -> String {
    match ticket.and_then(|id| state.jobs.get(id)) {
        Some(job) => engine::where_it_stands(state, policy, job, now()),
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
