//! Which agent does a run: the first route that matches the ticket, over the settings.

use crate::config::Settings;
use crate::config::agent::RouteMatch;
use crate::config::worker::Runtime;
use crate::domain::run::RunKind;
use crate::domain::ticket::{Ticket, state_in};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub runtime: Runtime,
    pub model: Option<String>,
    pub thinking_level: Option<String>,
    pub template: Option<String>,
}

pub fn choose(settings: &Settings, ticket: &Ticket, kind: RunKind) -> Chosen {
    let route = settings.agent.routing.iter().find(|route| matches(&route.when, ticket, kind));
    let runtime = route.and_then(|route| route.runtime).unwrap_or(settings.worker.runtime);
    let own_model = match runtime {
        Runtime::Codex => settings.codex.model.clone(),
        Runtime::Claude => settings.claude.model.clone(),
        Runtime::Pi | Runtime::Acp | Runtime::Exec => None,
    };
    Chosen {
        runtime,
        model: route.and_then(|route| route.model.clone()).or(own_model),
        thinking_level: route.and_then(|route| route.thinking_level.clone()),
        template: route.and_then(|route| route.prompt.clone()),
    }
}

fn matches(when: &RouteMatch, ticket: &Ticket, kind: RunKind) -> bool {
    let has = |label: &String| ticket.labels.contains(&label.trim().to_lowercase());
    let labels = when.labels.is_empty() || when.labels.iter().any(has);
    let priority = when.priority.is_empty() || ticket.priority.is_some_and(|one| when.priority.contains(&one));
    let state = when.state.is_empty() || state_in(&ticket.state, &when.state);
    let role = when.role.as_deref().is_none_or(|role| role == kind.name());
    labels && priority && state && role
}
