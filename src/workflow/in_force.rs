//! Describes for people how the workflow in force has the work done; shown beside the board at all times.
//!
//! Hooks are listed by name and never quoted, because a script may contain something private.

use crate::config::Settings;
use crate::config::agent::OnRequest;
use crate::config::gates::{GateCommand, TASK_COMPLETED};
use crate::config::merge::{MergeExecutor, MergeMode, MergeStrategy};
use crate::config::policy::{ForgeKind, RolloutMode, RoutePolicy};
use crate::domain::pr::MergeMethod;
use crate::domain::snapshot::PolicyView;

pub fn policies(settings: &Settings) -> Vec<PolicyView> {
    let lines = [
        ("rollout", rollout(settings)),
        ("agents", agents(settings)),
        ("models", models(settings)),
        ("hooks", hooks(settings)),
        ("checks", checks(settings)),
        ("review", review(settings)),
        ("merge", merge(settings)),
        ("requests", requests(settings)),
    ];
    lines.into_iter().map(|(name, value)| PolicyView { name: name.to_owned(), value }).collect()
}

fn rollout(settings: &Settings) -> String {
    let mode = match settings.rollout.mode {
        RolloutMode::Observe => "observe: nothing is written outside",
        RolloutMode::Mutate => "mutate: works and opens pull requests, merges nothing",
        RolloutMode::Merge => "merge: works, opens pull requests and merges",
    };
    if settings.rollout.preflight_required { format!("{mode}; after `dirigent doctor`") } else { mode.to_owned() }
}

fn agents(settings: &Settings) -> String {
    let agent = &settings.agent;
    let at_once = match agent.max_concurrent_agents {
        1 => "one at a time".to_owned(),
        many => format!("up to {many} at a time"),
    };
    format!("{at_once}, {} turns each, {} tries after failures", agent.max_turns, agent.max_retries)
}

/// Describes the agents: the one for most tickets first, then those for some.
fn models(settings: &Settings) -> String {
    let policy = settings.policy("", false);
    let Some((every, some)) = policy.agent.routes.split_last() else { return String::new() };
    let some = some.iter().map(|route| format!("{} for {}", agent_of(route), what_for(route)));
    std::iter::once(agent_of(every)).chain(some).collect::<Vec<_>>().join("; ")
}

fn agent_of(route: &RoutePolicy) -> String {
    let route = &route.route;
    let parts = [Some(route.runtime.as_str()), route.model.as_deref(), route.thinking_level.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn what_for(route: &RoutePolicy) -> String {
    let priorities: Vec<String> = route.priority.iter().map(|priority| format!("priority {priority}")).collect();
    let parts = [route.labels.join(" or "), priorities.join(" or "), route.states.join(" or ")];
    let role = route.role.clone().unwrap_or_default();
    let parts: Vec<String> = parts.into_iter().chain([role]).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "every ticket".to_owned() } else { parts.join(", ") }
}

fn hooks(settings: &Settings) -> String {
    let hooks = &settings.hooks;
    let all = [
        ("after_create", &hooks.after_create),
        ("before_run", &hooks.before_run),
        ("after_run", &hooks.after_run),
        ("before_remove", &hooks.before_remove),
    ];
    let set: Vec<&str> = all.into_iter().filter(|(_, script)| script.is_some()).map(|(name, _)| name).collect();
    if set.is_empty() {
        return "none".to_owned();
    }
    format!("{} ({} s each)", set.join(", "), hooks.timeout.as_secs())
}

fn checks(settings: &Settings) -> String {
    let gates = &settings.gates;
    let hook = gates.hook.iter().map(|_| TASK_COMPLETED);
    let names: Vec<&str> = gates.task.iter().map(GateCommand::title).map(first_word_of).chain(hook).collect();
    let mut parts = Vec::new();
    match names.as_slice() {
        [] => parts.push("no command of ours".to_owned()),
        names => parts.push(format!("ours: {}", names.join(", "))),
    }
    if settings.merge.require_green_checks {
        parts.push("the forge's have to be green".to_owned());
    }
    let wanted: Vec<&str> = gates.required_evidence.iter().map(|kind| kind.name()).collect();
    if !wanted.is_empty() {
        parts.push(format!("evidence: {}", wanted.join(", ")));
    }
    parts.join("; ")
}

/// Returns the first line of a gate's title. A gate without a name has its whole command as its title.
fn first_word_of(title: &str) -> &str {
    title.lines().next().unwrap_or_default()
}

fn review(settings: &Settings) -> String {
    if !settings.review.enabled {
        return "people alone".to_owned();
    }
    let severities: Vec<&str> =
        settings.review.fix_consideration_severities.iter().map(|severity| severity.name()).collect();
    let rework =
        if severities.is_empty() { "none leads".to_owned() } else { format!("{} lead", severities.join(", ")) };
    format!("an agent reads each head, {} times at most; {rework} to rework", settings.review.max_passes)
}

fn merge(settings: &Settings) -> String {
    let merge = &settings.merge;
    if settings.pr.resolve_forge(None) == ForgeKind::None {
        return "by people: no pull request is made".to_owned();
    }
    if merge.mode == MergeMode::Disabled {
        return "by people".to_owned();
    }
    let method = match merge.method {
        MergeMethod::Squash => "squash",
        MergeMethod::Merge => "merge",
        MergeMethod::Rebase => "rebase",
    };
    let mut parts = vec![format!("{method} into {}", settings.pr.base_branch)];
    parts.push(match merge.strategy {
        MergeStrategy::Queue => "one at a time".to_owned(),
        MergeStrategy::Immediate => "as soon as it is ready".to_owned(),
    });
    parts.push(if merge.require_human_approval { "after a person's approval" } else { "without approval" }.to_owned());
    if merge.executor == MergeExecutor::Prompt {
        parts.push("prepared by a run".to_owned());
    }
    let guards = settings.guards_not_in_force();
    if !guards.is_empty() {
        parts.push(format!("held: {} is not in force", guards.join(", ")));
    }
    parts.join(", ")
}

fn requests(settings: &Settings) -> String {
    match settings.agent.on_request {
        OnRequest::Auto => "an agent may do what its sandbox allows".to_owned(),
        OnRequest::Ask => format!("asked on the ticket, for {} min", settings.agent.ask_timeout.as_secs() / 60),
        OnRequest::Fail => "refused".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::agent::RouteSettings;

    fn value(settings: &Settings, name: &str) -> String {
        policies(settings).into_iter().find(|policy| policy.name == name).unwrap().value
    }

    #[test]
    fn what_the_file_decides_is_said_and_scripts_are_not_quoted() {
        let mut settings = Settings::default();
        assert_eq!(value(&settings, "hooks"), "none");
        assert_eq!(value(&settings, "merge"), "by people");
        assert!(value(&settings, "rollout").starts_with("observe"));
        settings.hooks.before_run = Some("curl -H 'Authorization: hunter2' https://example.com".to_owned());
        settings.merge.mode = MergeMode::Auto;
        settings.codex.model = Some("large".to_owned());
        let mut route = RouteSettings { model: Some("small".to_owned()), ..RouteSettings::default() };
        route.when.labels = vec!["docs".to_owned()];
        settings.agent.routing.push(route);
        assert_eq!(value(&settings, "hooks"), "before_run (60 s each)");
        assert_eq!(value(&settings, "merge"), "squash into main, one at a time, after a person's approval");
        assert_eq!(value(&settings, "models"), "codex large; codex small for docs");
        assert!(!format!("{:?}", policies(&settings)).contains("hunter2"));
    }
}
