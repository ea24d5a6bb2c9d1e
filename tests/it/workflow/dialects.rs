//! Files written for other runners load unchanged.

use std::path::PathBuf;
use std::time::Duration;

use dirigent::config::policy::RolloutMode;
use dirigent::config::tracker::TrackerKind;
use dirigent::config::worker::Runtime;
use dirigent::config::workspace::{ModeReason, WorkspaceMode};
use secrecy::ExposeSecret;

use super::{Desk, HOME, first_prompt, fixture};

#[test]
fn spec_5_a_symphony_file_loads_unchanged() {
    let desk = Desk::with([("HOME", HOME), ("LINEAR_API_KEY", "lin_secret")]);
    let loaded = desk.load(&fixture("symphony.md")).unwrap();
    let s = &loaded.settings;
    assert_eq!(s.tracker.kind, TrackerKind::Linear);
    assert_eq!(s.tracker.provider.api_key.as_ref().unwrap().expose_secret(), "lin_secret");
    assert_eq!(s.workspace.mode, WorkspaceMode::Directory);
    assert_eq!(s.workspace.mode_reason, ModeReason::HookClones);
    assert_eq!(s.workspace.root, PathBuf::from("/home/somebody/code/symphony-workspaces"));
    assert_eq!(s.worker.ssh_hosts.len(), 2);
    assert_eq!(s.codex.timeouts.stall, Duration::ZERO, "zero or less is off");
    assert_eq!(s.codex.turn_sandbox_policy.as_ref().unwrap()["networkAccess"], true);
    let limits = s.policy("", false).agent.max_concurrent_by_state;
    assert_eq!(limits.into_iter().collect::<Vec<_>>(), [("in progress".to_owned(), 4), ("todo".to_owned(), 2)]);
    assert_eq!(loaded.prompts.origin(), "the body of the workflow file");
    let prompt = first_prompt(&loaded);
    assert!(
        prompt.contains("You are working on ticket `APP-7`: Fix the page") && prompt.contains("Labels: ui, bug"),
        "{prompt}"
    );
    let unavailable: Vec<String> = loaded.unavailable.iter().map(ToString::to_string).collect();
    assert!(unavailable.iter().any(|line| line.contains("`worker.ssh_hosts`")), "{unavailable:?}");
}

#[test]
fn spec_6_bad_per_state_limits_are_ignored_with_a_warning() {
    let desk = Desk::with([("HOME", HOME), ("LINEAR_API_KEY", "x")]);
    let loaded = desk.load(&fixture("symphony.md")).unwrap();
    let warned: Vec<&str> = loaded.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(
        warned,
        [
            // Its prompt moves tickets, and that is said.
            "tracker.kind",
            "worker.max_concurrent_agents_per_host",
            "agent.max_concurrent_agents_by_state.Rework",
            "agent.max_concurrent_agents_by_state.Done"
        ],
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn a_pi_symphony_file_loads_unchanged() {
    let desk = Desk::with([("HOME", HOME), ("LINEAR_API_KEY", "k"), ("PI_SYMPHONY_WORKSPACE_ROOT", "/work/spaces")]);
    let loaded = desk.load(&fixture("pi_symphony.md")).unwrap();
    let s = &loaded.settings;
    assert_eq!(s.tracker.provider.team_key.as_deref(), Some("SYM"));
    assert_eq!(s.tracker.provider.project_slug.as_deref(), Some("db8e51049f48"));
    assert_eq!(s.workspace.root, PathBuf::from("/work/spaces"));
    assert_eq!(s.worker.runtime, Runtime::Pi);
    assert_eq!(s.pi.model.as_ref().unwrap().model_id, "claude-opus-4-6");
    assert_eq!(s.pi.extension_paths.len(), 3);
    assert!(s.pi.extension_paths[0].ends_with("extensions/workspace-guard/index.ts"));
    assert_eq!(s.orchestration.workpad_marker(), "## Symphony Workpad");
    assert_eq!(s.rollout.mode, RolloutMode::Mutate);
    assert_eq!(s.rollout.kill_switch_file, PathBuf::from("/tmp/pi-symphony.pause"));
    assert_eq!(s.workspace.mode, WorkspaceMode::Worktree);
    let prompt = first_prompt(&loaded);
    assert!(prompt.contains("APP-7: Fix the page") && prompt.contains("agent-friendly-design skill"), "{prompt}");
    let keys: Vec<&str> = loaded.unavailable.iter().map(|missing| missing.key).collect();
    assert!(keys.is_empty(), "{keys:?}");
    assert_eq!(s.pi.timeouts.read, Duration::from_secs(60), "its response_timeout_ms");
}

/// The file with its tracker and its agent replaced, and nothing else.
fn replaced(fixture_name: &str) -> String {
    let text = fixture(fixture_name);
    let mut out = String::new();
    let mut skipping = false;
    for line in text.lines() {
        if !line.starts_with([' ', '#']) && !line.is_empty() {
            skipping = line == "tracker:";
            if skipping {
                out.push_str("tracker: {kind: tk}\nexec: {command: ./agent.sh, events: jsonl}\n");
                if !text.contains("\nworker:\n") {
                    out.push_str("worker: {runtime: exec}\n");
                }
            }
        }
        if !skipping {
            out.push_str(&line.replace("runtime: pi", "runtime: exec"));
            out.push('\n');
        }
    }
    out
}

#[test]
fn files_of_the_family_are_not_refused_once_tracker_and_agent_are_replaced() {
    let desk = Desk::with([("HOME", HOME), ("PI_SYMPHONY_WORKSPACE_ROOT", "/work/spaces")]);
    for (name, guards, silent) in [
        (
            "symphony_reference.md",
            &[] as &[&str],
            &["codex.command", "codex.approval_policy", "codex.thread_sandbox", "codex.turn_sandbox_policy"]
                as &[&str],
        ),
        (
            "pi_symphony.md",
            &[],
            &[
                "pi.command",
                "pi.read_timeout_ms",
                "pi.session_dir_name",
                "pi.model",
                "pi.thinking_level",
                "pi.extension_paths",
                "pi.extension_paths[0]",
                "pi.extension_paths[1]",
                "pi.extension_paths[2]",
                "pi.disable_extensions",
                "pi.disable_themes",
            ],
        ),
    ] {
        let loaded = desk.load(&replaced(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(loaded.unavailable.is_empty(), "{name}: {:?}", loaded.unavailable);
        assert_eq!(loaded.settings.guards_not_in_force(), guards, "{name}");
        let said: Vec<&str> = loaded.warnings.iter().map(|warning| warning.key.as_str()).collect();
        assert_eq!(said, silent, "{name}");
        assert!(loaded.prompts.trial().is_empty(), "{name}");
    }
}

#[test]
fn the_other_spellings_mean_the_same() {
    let desk = Desk::new();
    assert_eq!(desk.good("agent: {kind: claude}").settings.worker.runtime, Runtime::Claude);
    let both = desk.good("agent: {kind: claude}\nworker: {runtime: pi}");
    assert_eq!(both.settings.worker.runtime, Runtime::Pi);
    assert!(both.warnings[0].message.contains("`agent.kind`"), "{:?}", both.warnings);
    for (written, meant) in [("gh", "forge"), ("land_skill", "prompt"), ("forge", "forge")] {
        let executor = desk.good(&format!("merge: {{executor: {written}}}")).settings.merge.executor;
        assert_eq!(serde_json::to_value(executor).unwrap(), meant);
    }
    let routed = desk.good(
        "pi:\n  model_routing:\n    - match: {labels: [complex], priority: [1, 2], state: Rework}\n      model: {provider: anthropic, model_id: big}\n      thinking_level: xhigh\nreview:\n  model: {provider: openai, model_id: small}\n  thinking_level: low",
    );
    let route = &routed.settings.agent.routing[0];
    assert_eq!((route.model.as_deref(), route.model_provider.as_deref()), (Some("big"), Some("anthropic")));
    assert_eq!(
        (route.when.priority.as_slice(), route.when.state.as_slice()),
        ([1, 2].as_slice(), ["Rework".to_owned()].as_slice())
    );
    assert_eq!(routed.settings.review.model.as_deref(), Some("small"));
}

#[test]
fn errors_speak_of_the_key_as_it_was_written() {
    let error = Desk::new().load("---\ntracker:\n  kind: linear\n  api_key: [a]\n---\n").map(|_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("WORKFLOW.md:4:12: `tracker.api_key` is a list; it must be text, usually `$NAME`"), "{text}");
}
