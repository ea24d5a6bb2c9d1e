//! Which agent does a run: the first route that matches the ticket.

use crate::config::policy::{Policy, RoutePolicy};
use crate::domain::ids::PoolName;
use crate::domain::job::TicketFacts;
use crate::domain::route::Route;
use crate::domain::run::RunKind;
use crate::domain::ticket::state_in;

/// Returns the route for a run. `None` only for a policy without any route, because the last one matches every ticket.
pub fn choose<'a>(policy: &'a Policy, ticket: &TicketFacts, kind: RunKind) -> Option<&'a Route> {
    policy.agent.routes.iter().find(|route| matches(route, ticket, kind)).map(|route| &route.route)
}

/// Returns the credential pool that a run of this ticket would use.
pub fn pool<'a>(policy: &'a Policy, ticket: &TicketFacts, kind: RunKind) -> Option<&'a PoolName> {
    choose(policy, ticket, kind).map(|route| &route.pool)
}

fn matches(route: &RoutePolicy, ticket: &TicketFacts, kind: RunKind) -> bool {
    let labels = route.labels.is_empty() || route.labels.iter().any(|label| ticket.labels.contains(label));
    let priority = route.priority.is_empty() || ticket.priority.is_some_and(|one| route.priority.contains(&one));
    let state = route.states.is_empty() || state_in(&ticket.state, &route.states);
    let role = route.role.as_deref().is_none_or(|role| role == kind.name());
    labels && priority && state && role
}
