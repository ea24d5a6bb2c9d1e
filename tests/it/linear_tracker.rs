//! Linear besides what every tracker has to pass: its scopes, its people, its faults, its cost, and the built binary on it.

mod agent_api;
mod automations;
mod contract;
mod cost;
mod family;
mod faults;
mod killed;
mod people;
mod runner;
mod scope;
mod waits;
mod writes;

use std::sync::Arc;

use dirigent::domain::ids::TicketId;
use dirigent::domain::ticket::Ticket;
use dirigent::tracker::linear::{Assignee, LinearConfig, LinearTracker, NamedStates, Scope};
use dirigent::tracker::{BoardAnswer, Found, Mark, Tracker};

use super::linear::{KEY, Linear};

fn team(key: &str) -> Scope {
    Scope { team_key: Some(key.to_owned()), ..Scope::default() }
}

fn assigned_to(whom: &str) -> Scope {
    Scope { assignee: Some(Assignee::named(whom)), ..team("ENG") }
}

fn config(linear: &Linear, scope: Scope) -> LinearConfig {
    let active = active();
    LinearConfig {
        endpoint: linear.endpoint().to_owned(),
        states: NamedStates { active, terminal: vec!["Done".to_owned()], targets: Vec::new() },
        ..LinearConfig::new(KEY.to_owned().into(), scope)
    }
}

fn tracker(linear: &Linear, scope: Scope) -> Arc<LinearTracker> {
    Arc::new(LinearTracker::new(config(linear, scope)).unwrap())
}

fn active() -> Vec<String> {
    ["Todo", "In Progress"].map(str::to_owned).to_vec()
}

fn titles(tickets: &[Ticket]) -> Vec<&str> {
    let mut titles: Vec<&str> = tickets.iter().map(|ticket| ticket.title.as_str()).collect();
    titles.sort_unstable();
    titles
}

async fn listed(tracker: &LinearTracker) -> Vec<Ticket> {
    tracker.fetch_by_states(&active()).await.unwrap()
}

async fn found(tracker: &LinearTracker, id: &str) -> Found {
    let id = TicketId::new(id);
    tracker.fetch_by_ids(std::slice::from_ref(&id)).await.unwrap().remove(0).1
}

async fn whole(tracker: &LinearTracker, id: &str) -> Ticket {
    match found(tracker, id).await {
        Found::Ticket(ticket) => ticket,
        other => panic!("{id} is {other:?}"),
    }
}

/// Polls from nothing; what stands for the answer.
async fn first_mark(tracker: &LinearTracker) -> Mark {
    match tracker.poll(&active(), None).await.unwrap().answer {
        BoardAnswer::Listed { mark: Some(mark), .. } => mark,
        other => panic!("{other:?}"),
    }
}
