//! Keys that are accepted and have no effect: in this version, in this mode, or with this agent. A warning with the reason is given for
//! each one that a file contains. Giving a key its effect means deleting its line here.

use super::error::{Finding, Source};
use super::tree::{Entry, Node, Place, Value};
use crate::config::Settings;
use crate::config::exec::ExecEvents;
use crate::config::gates::FailureAction;
use crate::config::merge::MergeExecutor;
use crate::config::orchestration::{MentionWhom, PhaseStore};
use crate::config::policy::ForgeKind;
use crate::config::tracker::TrackerKind;
use crate::config::worker::Runtime;
use crate::config::workspace::{BranchSource, WorkspaceMode};
use crate::domain::phase::Phase;

/// What decides whether a key has an effect.
struct Scene<'a> {
    settings: &'a Settings,
    /// The agents that runs may use.
    runtimes: Vec<Runtime>,
    /// The forge in use. Where the file does not set one, a repository without a GitHub remote is assumed.
    forge: ForgeKind,
}

struct Rule {
    /// Full paths; `[]` stands for any place in a list, a `*` at the end for any key of the section.
    keys: &'static [&'static str],
    /// Returns why the key has no effect, or `None` if it has one.
    why: fn(&Scene, &str) -> Option<&'static str>,
}

const NO_SERVER: &str = "nothing is served (there is no `server.port`)";
const NO_REVIEW: &str = "no review is made (`review.enabled` is false)";
const NO_PULL_REQUEST: &str = "no pull request is made (`pr.forge` is `none`, or `workspace.mode` is `directory`)";
const LOCAL_FORGE: &str = "the local forge has nothing like it";
const PLAIN_DIRECTORY: &str = "`workspace.mode` is `directory`: what lies there is its hook's affair";

const RULES: &[Rule] = &[
    Rule {
        keys: &["server.host", "server.names", "server.token", "server.tokens", "polling.webhook"],
        why: |s, _| s.settings.server.port.is_none().then_some(NO_SERVER),
    },
    Rule {
        keys: &["observability.metrics"],
        why: |s, _| (s.settings.observability.metrics && s.settings.server.port.is_none()).then_some(NO_SERVER),
    },
    Rule {
        keys: &["worker.max_concurrent_agents_per_host"],
        why: |_, _| Some("every worker runs on this machine; `agent.max_concurrent_agents` counts them"),
    },
    Rule {
        // A value that equals the built-in one is in force. The check of the file refuses a value that contradicts it.
        keys: &["orchestration.default_phase", "orchestration.passive_phases"],
        why: |s, path| {
            let written = &s.settings.orchestration;
            let passive = [Phase::WaitingForChecks, Phase::WaitingForHuman, Phase::Blocked];
            let is_built_in = match path {
                "orchestration.default_phase" => written.default_phase == Some(Phase::Implementing),
                _ => passive.iter().all(|phase| written.passive_phases.contains(phase)),
            };
            (!is_built_in).then_some("the phases are built in; the value is only compared with them")
        },
    },
    Rule {
        keys: &["orchestration.comment_min_interval_ms", "orchestration.ownership.required_workpad_marker"],
        why: |s, _| {
            (s.settings.orchestration.phase_store == PhaseStore::Ledger)
                .then_some("no workpad is written (`orchestration.phase_store` is `ledger`)")
        },
    },
    Rule {
        keys: &["tracker.on_done"],
        why: |s, _| {
            (s.settings.tracker.kind != TrackerKind::Github)
                .then_some("only the GitHub tracker changes labels at the end")
        },
    },
    Rule { keys: &["review.*"], why: review },
    Rule {
        keys: &["gates.wave", "gates.final", "gates.forbidden_patterns"],
        why: |_, _| Some("this version has no wave or final check; until it has, nothing is merged"),
    },
    Rule {
        keys: &["waves.enabled"],
        why: |s, _| s.settings.waves.enabled.then_some("this version has no waves; until it has, nothing is merged"),
    },
    Rule {
        keys: &["gates.failure_action"],
        why: |s, _| {
            (s.settings.gates.failure_action != FailureAction::Reopen)
                .then_some("a failed check always leads to rework of the same ticket")
        },
    },
    Rule {
        keys: &["gates.max_reopens_per_task"],
        why: |_, _| Some("`orchestration.max_rework_cycles` counts every rework, also those after a failed check"),
    },
    Rule { keys: &["gates.followup_owner"], why: |_, _| Some("a failed check makes no follow-up ticket") },
    Rule { keys: &["budget.prices"], why: prices },
    Rule { keys: &["budget.max_cost_usd", "budget.daily.max_cost_usd"], why: cost_cap },
    Rule {
        keys: &["merge.require_head_match"],
        why: |s, _| {
            (!s.settings.merge.require_head_match)
                .then_some("the head that was checked is always the head that is merged")
        },
    },
    Rule { keys: &["merge.executor"], why: executor },
    Rule {
        keys: &["merge.checks_grace_ms"],
        why: |s, _| (s.forge == ForgeKind::Local).then_some("the local forge's checks are our own; none come later"),
    },
    Rule {
        keys: &[
            "pr.repo_slug",
            "pr.reviewers",
            "pr.provider.*",
            "pr.resolve_threads",
            "pr.reuse_branch_pr",
            "pr.publish_gates",
            "merge.rerun_failed_checks",
        ],
        why: |s, _| match s.forge {
            // The remote decides which forge is used, and it may be GitHub's.
            ForgeKind::Local if s.settings.pr.forge.is_none() => None,
            ForgeKind::Github => None,
            ForgeKind::Local => Some(LOCAL_FORGE),
            ForgeKind::None => Some(NO_PULL_REQUEST),
        },
    },
    Rule { keys: &["pr.review_comment_mode", "pr.review_comment_marker"], why: review },
    Rule {
        keys: &[
            "pr.auto_create",
            "pr.attach_to_tracker",
            "pr.title",
            "pr.closed_pr_policy",
            "pr.required_labels",
            "pr.draft",
            "merge.*",
        ],
        why: |s, _| (s.forge == ForgeKind::None).then_some(NO_PULL_REQUEST),
    },
    Rule {
        keys: &[
            "pr.forge",
            "pr.base_branch",
            "workspace.base",
            "workspace.branch_prefix",
            "workspace.branch",
            "workspace.keep",
            "workspace.on_dirty",
            "gates.task",
            "gates.timeout_ms",
            "gates.max_concurrent",
        ],
        why: |s, path| {
            let written = path != "pr.forge" || s.settings.pr.forge != Some(ForgeKind::None);
            (s.settings.workspace.mode == WorkspaceMode::Directory && written).then_some(PLAIN_DIRECTORY)
        },
    },
    Rule {
        keys: &["workspace.branch"],
        why: |s, _| {
            let proposes = s.settings.tracker.kind == TrackerKind::Linear;
            (!proposes && s.settings.workspace.branch == BranchSource::Tracker)
                .then_some("only Linear proposes branch names; `workspace.branch_prefix` is used")
        },
    },
    Rule {
        keys: &["orchestration.mention"],
        why: |s, _| {
            let none = s.settings.orchestration.mention == MentionWhom::None;
            (!none && !s.settings.tracker.kind.has_accounts()).then_some("this board tells nobody that they are named")
        },
    },
    Rule {
        keys: &["agent.routing[].model", "agent.routing[].model_provider", "agent.routing[].thinking_level"],
        why: routed,
    },
    Rule {
        keys: &["agent.on_request", "agent.allow", "agent.deny", "agent.ask_timeout_ms", "agent.ask_default"],
        why: |s, _| {
            let asks = s.runtimes.iter().any(|runtime| *runtime != Runtime::Exec);
            (!asks).then_some("a program that `exec` runs does not ask")
        },
    },
    Rule {
        keys: &["exec.read_timeout_ms"],
        why: |_, _| {
            Some("a program that `exec` runs is not asked anything; `exec.stall_timeout_ms` limits its silence")
        },
    },
    Rule { keys: &["codex.*", "claude.*", "pi.*", "acp.*", "exec.*"], why: unused_runtime },
];

fn review(scene: &Scene, path: &str) -> Option<&'static str> {
    let settings = &scene.settings.review;
    let runtime = settings.runtime.unwrap_or(scene.settings.worker.runtime);
    match path {
        "review.bots" => match scene.forge {
            ForgeKind::Github => None,
            // The remote decides which forge is used, and it may be GitHub's.
            ForgeKind::Local if scene.settings.pr.forge.is_none() => None,
            ForgeKind::Local => Some(LOCAL_FORGE),
            ForgeKind::None => Some(NO_PULL_REQUEST),
        },
        "review.enabled" if !settings.enabled => None,
        _ if scene.forge == ForgeKind::None => Some(NO_PULL_REQUEST),
        _ if !settings.enabled => Some(NO_REVIEW),
        "review.model" | "review.model_provider" | "review.thinking_level" => not_told(runtime, path),
        _ => None,
    }
}

fn executor(scene: &Scene, _: &str) -> Option<&'static str> {
    match (scene.settings.merge.executor, scene.forge) {
        (MergeExecutor::Forge, ForgeKind::Local) => Some("the local forge merges in this repository"),
        _ => None,
    }
}

fn prices(scene: &Scene, _: &str) -> Option<&'static str> {
    let all_name_it = scene.runtimes.iter().all(|runtime| *runtime == Runtime::Claude);
    all_name_it.then_some("Claude Code names its cost itself")
}

fn cost_cap(scene: &Scene, _: &str) -> Option<&'static str> {
    let settings = scene.settings;
    let plain = scene.runtimes.contains(&Runtime::Exec) && settings.exec.events == ExecEvents::Plain;
    plain.then_some("a program of `exec` names neither cost nor tokens; `exec.events: jsonl` lets it")
}

/// Returns why a key of a route has no effect. A route without a runtime uses the worker's.
fn routed(scene: &Scene, path: &str) -> Option<&'static str> {
    let index: usize = path.split(['[', ']']).nth(1)?.parse().ok()?;
    let route = scene.settings.agent.routing.get(index)?;
    not_told(route.runtime.unwrap_or(scene.settings.worker.runtime), path)
}

/// Returns why an agent of this kind cannot be given this setting. `None` if it can.
fn not_told(runtime: Runtime, path: &str) -> Option<&'static str> {
    match (runtime, path.rsplit('.').next()?) {
        (Runtime::Acp, "model") => None,
        (Runtime::Acp, _) => Some("an ACP agent chooses its own"),
        (Runtime::Exec, _) => Some("a program that `exec` runs is not told"),
        (Runtime::Claude, "model_provider") => Some("Claude Code has one provider; the model's name is enough"),
        (Runtime::Codex | Runtime::Claude | Runtime::Pi, _) => None,
    }
}

fn unused_runtime(scene: &Scene, path: &str) -> Option<&'static str> {
    let (section, key) = path.split_once('.')?;
    let runtime = Runtime::ALL.into_iter().find(|runtime| runtime.name() == section)?;
    // The other agents inherit these.
    let inherited = runtime == Runtime::Codex && key.ends_with("_timeout_ms");
    (!inherited && !scene.runtimes.contains(&runtime)).then_some("no run uses this agent")
}

impl<'a> Scene<'a> {
    fn of(settings: &'a Settings) -> Self {
        let routed = settings.agent.routing.iter().filter_map(|route| route.runtime);
        let reviewer = settings.review.runtime.filter(|_| settings.review.enabled);
        let forge = match settings.workspace.mode {
            WorkspaceMode::Directory => ForgeKind::None,
            WorkspaceMode::Worktree => settings.pr.resolve_forge(None),
        };
        Self { settings, runtimes: routed.chain(reviewer).chain([settings.worker.runtime]).collect(), forge }
    }
}

/// A key that is written in the file and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInForce {
    pub key: String,
    pub why: &'static str,
}

/// Returns every key that is written and has no effect, in the order of the file.
pub fn not_in_force(settings: &Settings, root: &Node) -> Vec<NotInForce> {
    let scene = Scene::of(settings);
    let mut written = Vec::new();
    collect("", root, &mut written);
    let silent = written.into_iter().filter_map(|key| {
        let rules = RULES.iter().filter(|rule| rule.keys.iter().any(|pattern| matches(pattern, &key)));
        let why = rules.filter_map(|rule| (rule.why)(&scene, &key)).next()?;
        Some(NotInForce { key, why })
    });
    silent.collect()
}

/// Whether a rule covers this key of the schema, or a section that the key is in.
pub fn is_spoken_about(key: &str) -> bool {
    let whole = key.match_indices('.').map(|(end, _)| &key[..end]).chain([key]);
    whole.into_iter().any(|part| RULES.iter().flat_map(|rule| rule.keys).any(|pattern| matches(pattern, part)))
}

impl NotInForce {
    /// Returns the warning, at the place of the key.
    pub fn finding(&self, root: &Node, source: &Source) -> Finding {
        let entry = root.nearest_entry(&self.key);
        let shown = entry.and_then(|entry: &Entry| entry.node.written_as.as_deref()).unwrap_or(&self.key);
        let place = entry.map_or(Place::COMMAND_LINE, |entry| entry.key_place);
        Finding::at(&self.key, place, format!("`{shown}` is not in force: {}", self.why), None, source)
    }

    /// Whether an effective value belongs to this key or is part of it.
    pub fn concerns(&self, path: &str) -> bool {
        path.strip_prefix(self.key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

/// Collects every path that is written and not null.
fn collect(path: &str, node: &Node, out: &mut Vec<String>) {
    match &node.value {
        Value::Map(entries) => {
            for entry in entries.iter().filter(|entry| !entry.node.is_null()) {
                let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
                out.push(path.clone());
                collect(&path, &entry.node, out);
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(&format!("{path}[{index}]"), item, out);
            }
        }
        _ => {}
    }
}

fn matches(pattern: &str, key: &str) -> bool {
    if let Some(section) = pattern.strip_suffix(".*") {
        return key
            .strip_prefix(section)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|rest| !rest.contains(['.', '[']));
    }
    let mut plain = String::with_capacity(key.len());
    let mut inside = false;
    for c in key.chars() {
        if !inside || c == ']' {
            plain.push(c);
        }
        inside = (inside || c == '[') && c != ']';
    }
    plain == pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_keys_and_places_in_lists() {
        assert!(
            matches("server.*", "server.port")
                && !matches("server.*", "server")
                && !matches("pi.*", "pi.model.provider")
        );
        assert!(matches("agent.routing[].model", "agent.routing[12].model"));
        assert!(!matches("agent.routing[].model", "agent.routing[12].model_provider"));
        assert!(matches("budget.prices", "budget.prices") && !matches("budget.prices", "budget.prices.x"));
    }
}
