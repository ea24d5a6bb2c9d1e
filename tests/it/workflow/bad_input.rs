//! Files that are wrong or doubtful: one clear sentence each, with place and fix.

use super::{Desk, fixture};
use dirigent::workflow;

#[test]
fn spec_5_a_missing_file_and_a_directory_are_told_apart() {
    let desk = Desk::new();
    let missing = workflow::load(&desk.dir().join("nothing.md"), &desk.env).map(|_| ()).unwrap_err();
    assert_eq!(missing.class(), "missing_workflow_file");
    assert!(missing.to_string().contains("there is no workflow file at"), "{missing}");
    let directory = workflow::load(&desk.dir(), &desk.env).map(|_| ()).unwrap_err();
    assert!(directory.to_string().ends_with("is a directory; a workflow file is expected"), "{directory}");
}

#[test]
fn bad_values_are_named_with_place_path_found_and_allowed() {
    let desk = Desk::new();
    for (yaml, sentence) in [
        (
            "polling:\n  interval_ms: soon",
            "4:16: `polling.interval_ms` is \"soon\"; it must be a whole number of milliseconds of at least 1, or a duration such as `30s`, `5m`, `2h`",
        ),
        (
            "polling:\n  interval_ms: 0",
            "4:16: `polling.interval_ms` is `0`; it must be a whole number of milliseconds of at least 1, or a duration such as `30s`, `5m`, `2h`",
        ),
        ("polling: 5", "3:10: `polling` is `5`; it must be a map of settings"),
        ("agent:\n  max_turns: -1", "4:14: `agent.max_turns` is `-1`; it must be a whole number from 1 to 4294967295"),
        (
            "agent:\n  max_turns: 99999999999",
            "4:14: `agent.max_turns` is `99999999999`; it must be a whole number from 1 to 4294967295",
        ),
        (
            "agent:\n  max_turns: many",
            "4:14: `agent.max_turns` is \"many\"; it must be a whole number from 1 to 4294967295",
        ),
        ("server:\n  port: 70000", "4:9: `server.port` is `70000`; it must be a whole number from 0 to 65535"),
        (
            "merge:\n  method: sqaush",
            "4:11: `merge.method` is \"sqaush\"; it must be one of squash, merge, rebase (did you mean `squash`?)",
        ),
        ("rollout:\n  mode: yolo", "4:9: `rollout.mode` is \"yolo\"; it must be one of observe, mutate, merge"),
        (
            "rollout:\n  preflight_required: maybe",
            "4:23: `rollout.preflight_required` is \"maybe\"; it must be `true` or `false`",
        ),
        ("other_tool: 1\npr:\n  forge: [github]", "5:10: `pr.forge` is a list; it must be one of github, local, none"),
        ("pr:\n  reviewers: ada", "4:14: `pr.reviewers` is \"ada\"; it must be a list"),
        ("merge:\n  metod: squash", "4:3: `merge.metod` is not a key of `merge` (did you mean `merge.method`?)"),
        (
            "budget:\n  daily:\n    max_cost: 3",
            "5:5: `budget.daily.max_cost` is not a key of `budget.daily` (did you mean `budget.daily.max_cost_usd`?)",
        ),
        (
            "budget:\n  max_cost_usd: -3",
            "4:17: `budget.max_cost_usd` is `-3`; it must be a number of at least 0.000001",
        ),
        ("waves:\n  xyz: 3", "4:3: `waves.xyz` is not a key of `waves` (known are enabled)"),
        (
            "orchestration:\n  states:\n    implementin: x",
            "5:5: `orchestration.states.implementin` is not a key of `orchestration.states` (did you mean `orchestration.states.implementing`?)",
        ),
        (
            "orchestration:\n  max_rework_cycles: 0",
            "4:22: `orchestration.max_rework_cycles` is `0`; it must be a whole number from 1 to 4294967295",
        ),
        (
            "orchestration:\n  passive_phases: [implementing]",
            "4:19: phase `implementing` is not passive: the phases are built in (passive are waiting_for_checks, waiting_for_human, blocked, ready_to_merge, merging)",
        ),
        (
            "orchestration:\n  ownership: {required_label: ' '}",
            "4:31: `orchestration.ownership.required_label` is empty (an empty value never means permission; name one, or remove the key)",
        ),
        (
            "worker:\n  runtime: exec",
            "4:12: `worker.runtime` is `exec`, but `exec.command` is not set (say under `exec:` which `command` to run)",
        ),
        ("worker:\n  runtime: exec\nexec:\n  command: [a]", "6:12: `exec.command` is a list; it must be text"),
        (
            "worker:\n  env_pass: ['A B']",
            "4:13: `A B` in `worker.env_pass` is not a variable name (write a name such as `CARGO_HOME`, or a prefix such as `AWS_*`)",
        ),
        ("gates:\n  task: ['']", "4:10: `gates.task[0]` has no command (write a string, or a map with `run`)"),
        (
            "gates:\n  task: [make, make]",
            "4:16: `gates.task[1]` has the name `make` a second time (give each command its own `name`)",
        ),
        (
            "gates:\n  required_evidence: [tests]",
            "4:23: `gates.required_evidence[0]` is \"tests\"; it must be one of command, file, test, note (did you mean `test`?)",
        ),
        (
            "merge:\n  strategy: immediate\n  method: rebase",
            "4:13: `merge.strategy: immediate` does not go with `merge.method: rebase` (its commits would land on a base that they were not checked on: use `strategy: queue`, or `method: squash` or `merge`)",
        ),
        (
            "merge:\n  executor: local\npr:\n  forge: github",
            "4:13: `merge.executor: local` does not go with `pr.forge: github` (a pull request is merged by its forge: write `executor: forge`)",
        ),
        ("pr:\n  repo_slug: nope", "4:14: `pr.repo_slug` `nope` is not a repository (write it as `owner/name`)"),
        (
            "agent:\n  deny: [{pattern: x}]",
            "4:10: `agent.deny[0]` (x) names no tool (write `tool: \"*\"` for any tool)",
        ),
        (
            "agent:\n  routing: [{match: {labels: a}}]",
            "4:13: `agent.routing[0]` changes nothing (give it one of runtime, model, thinking_level, prompt)",
        ),
        (
            "workspace:\n  branch_prefix: 'a b/'",
            "4:18: `workspace.branch_prefix` `a b/` cannot start a branch name: git forbids spaces and any of ~^:?*[\\",
        ),
        ("workspace:\n  mode: clone", "4:9: `workspace.mode` is \"clone\"; it must be one of worktree, directory"),
        (
            "rollout:\n  kill_switch_label: ''",
            "4:22: `rollout.kill_switch_label` is empty (name a label, or remove the key to get `dirigent-pause`)",
        ),
    ] {
        assert_eq!(desk.bad(yaml), sentence, "{yaml}");
    }
}

#[test]
fn a_workspace_root_inside_the_repository_is_refused() {
    let desk = Desk::new();
    let sentence = desk.bad("workspace:\n  root: ./spaces");
    assert!(sentence.contains("`workspace.root`") && sentence.contains("lies inside the repository"), "{sentence}");
    // A symbolic link does not hide it.
    let link = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(desk.dir(), link.path().join("in")).unwrap();
    let sentence = desk.bad(&format!("workspace:\n  root: {}/in/spaces", link.path().display()));
    assert!(sentence.contains("lies inside the repository"), "{sentence}");
    desk.good("workspace:\n  root: ../elsewhere");
}

#[test]
fn all_problems_are_reported_at_once_and_in_order() {
    let error = Desk::new()
        .load("---\ntracker:\n  kind: jira\npolling:\n  interval_ms: x\nmerge:\n  metod: a\n  mode: on\npr:\n  repo_slug: x\n---\n")
        .map(|_| ())
        .unwrap_err();
    let keys: Vec<(&str, u32)> =
        error.findings().iter().map(|finding| (finding.key.as_str(), finding.line().unwrap())).collect();
    let expected =
        [("tracker.kind", 3), ("polling.interval_ms", 5), ("merge.metod", 7), ("merge.mode", 8), ("pr.repo_slug", 10)];
    assert_eq!(keys, expected);
    assert!(error.to_string().starts_with("5 problems in the workflow file:\n  "), "{error}");
}

#[test]
fn an_unknown_key_in_a_section_of_ours_is_an_error_with_the_nearest_one() {
    let desk = Desk::new();
    for (yaml, sentence) in [
        (
            "agent:\n  max_concurent_agents: 2",
            "4:3: `agent.max_concurent_agents` is not a key of `agent` (did you mean `agent.max_concurrent_agents`?)",
        ),
        (
            "polling:\n  interval: 2",
            "4:3: `polling.interval` is not a key of `polling` (did you mean `polling.interval_ms`?)",
        ),
        (
            "worker:\n  env_passs: []",
            "4:3: `worker.env_passs` is not a key of `worker` (did you mean `worker.env_pass`?)",
        ),
        (
            "pi:\n  model: {model: x}",
            "4:11: `pi.model.model` is not a key of `pi.model` (did you mean `pi.model.model_id`?)",
        ),
        (
            "agent:\n  routing: [{match: {label: a}, model: m}]",
            "4:22: `agent.routing[0].match.label` is not a key of `agent.routing[0].match` (did you mean `agent.routing[0].match.labels`?)",
        ),
    ] {
        assert_eq!(desk.bad(yaml), sentence, "{yaml}");
    }
    let hooks = desk.bad("hooks:\n  zzz: 1");
    assert!(hooks.starts_with("4:3: `hooks.zzz` is not a key of `hooks` (known are after_create, "), "{hooks}");
    let label = desk.load("---\ntracker:\n  kind: tk\n  required_label: [agent]\n---\n").map(|_| ()).unwrap_err();
    assert!(label.to_string().contains("did you mean `tracker.required_labels`?"), "{label}");
}

#[test]
fn another_tools_section_is_a_warning_and_a_misspelt_one_of_ours_an_error() {
    let loaded = Desk::new().good("deploy: {enabled: true}\nx_notes: 1");
    let warnings: Vec<String> =
        loaded.warnings.iter().map(|warning| format!("{}: {}", warning.line().unwrap(), warning.message)).collect();
    assert_eq!(
        warnings,
        [
            "3: `deploy` is not a section of the workflow file; it is ignored",
            "4: `x_notes` is not a section of the workflow file; it is ignored"
        ]
    );
    for (slip, meant) in [
        ("gate: {}", "gates"),
        ("roll_out: {}", "rollout"),
        ("budgets: {}", "budget"),
        ("trakcer: {}", "tracker"),
        ("workspaces: {}", "workspace"),
        ("Agent: {}", "agent"),
        ("tracker_x: 1", "tracker"),
        ("orchestrator: {}", "orchestration"),
    ] {
        let error = Desk::new().load(&format!("---\ntracker: {{kind: tk}}\n{slip}\n---\n")).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(&format!("did you mean `{meant}`?")), "{error}");
    }
}

#[test]
fn a_key_of_absurd_length_is_named_shortly() {
    let error = Desk::new().bad(&format!("agent:\n  {}: 1", "a".repeat(1_000)));
    assert!(error.len() < 1_000, "{} characters", error.len());
}

#[test]
fn keys_that_other_tools_define_are_known_and_said_not_to_be_in_force() {
    let loaded = Desk::new().good(
        "workspace: {cleanup_on_shutdown: true, cleanup_after_merge: true, retention_hours: 12.5}\nagent: {min_retry_interval_ms: 1000, short_run_threshold_ms: 5000}\nrecovery: {enabled: true, max_attempts: 5}",
    );
    let keys: Vec<&str> = loaded.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "workspace.cleanup_on_shutdown",
            "workspace.cleanup_after_merge",
            "workspace.retention_hours",
            "agent.min_retry_interval_ms",
            "agent.short_run_threshold_ms",
            "recovery"
        ]
    );
    for warning in &loaded.warnings {
        assert!(warning.message.contains("is not in force: it is a key of pi-symphony; "), "{}", warning.message);
    }
}

#[test]
fn names_may_not_leave_their_folder_and_missing_extensions_are_said() {
    let desk = Desk::new();
    for name in ["../../x", "/x", "a/b", "..", "."] {
        let sentence = desk.bad(&format!("pi:\n  session_dir_name: {name}"));
        assert!(
            sentence.starts_with("4:21: `pi.session_dir_name` `") && sentence.contains("leaves the folder"),
            "{sentence}"
        );
    }
    desk.good("pi:\n  session_dir_name: .pi-rpc-sessions");
    for path in ["../state.json", "/tmp/state.json"] {
        let sentence = desk.bad(&format!("observability:\n  agent_state_file: {path}"));
        assert!(sentence.contains("lies outside the repository"), "{sentence}");
    }
    desk.good("observability:\n  agent_state_file: .bkit/agent-state.json");
    std::fs::write(desk.dir().join("there.ts"), "").unwrap();
    let loaded = desk.good("agent: {kind: pi}\npi:\n  extension_paths: [./there.ts, ../not/there.ts]");
    let warned: Vec<&str> = loaded.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(warned, ["pi.extension_paths[1]"], "{:?}", loaded.warnings);
    assert_eq!(loaded.warnings[0].line(), Some(5));
    desk.good("review: {fix_consideration_severities: [P0, P4]}");
}

#[test]
fn the_tracker_kind_is_required_and_owns_its_provider_keys() {
    let desk = Desk::new();
    let none = desk.load("Just a prompt.\n").map(|_| ()).unwrap_err();
    assert!(none.to_string().contains("`tracker.kind` is required"), "{none}");
    for key in ["dri", "directory"] {
        let text = format!("---\ntracker:\n  kind: tk\n  provider: {{{key}: x}}\n---\n");
        let unknown = desk.load(&text).map(|_| ()).unwrap_err();
        assert!(unknown.to_string().contains("did you mean `tracker.provider.dir`?"), "{unknown}");
    }
    let kept = desk.load("---\ntracker:\n  kind: tk\n  team_key: ENG\n  provider: {colour: red}\n---\n").unwrap();
    let warnings: Vec<&str> = kept.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warnings,
        [
            "`tracker.provider.team_key` is not in force: it is a key of the linear tracker, not of tk",
            "`tracker.provider.colour` is not a key of the tk tracker; it is not in force"
        ]
    );
}

#[test]
fn a_secret_in_the_file_is_not_shown_when_the_file_is_wrong() {
    let error = Desk::new()
        .load("---\ntracker:\n  kind: github\n  token: canary-7f3a\n  provider: {token: canary-9b, tokn: x}\n---\n")
        .map(|_| ())
        .unwrap_err();
    let report = format!("{:?}", miette::Report::new(error));
    assert!(report.contains("did you mean `tracker.provider.token`?"), "{report}");
    assert!(!report.contains("canary-7f3a") && !report.contains("canary-9b"), "{report}");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_loader_panic(text in "(---\n)?[-a-z:{}\\[\\]|>%#&*!'\"\t \r\né$]{0,200}(\n---\n)?[{}%#/a-z. |\n]{0,80}") {
        let desk = Desk::new();
        let _ = desk.load(&text).map(|loaded| loaded.prompts.trial());
    }

    #[test]
    fn no_damage_to_a_good_file_makes_the_loader_panic(at in 0usize..4000, cut in 0usize..60, put in "[-:{}\\[\\]|>%\n \t\"'é0]{0,6}") {
        let desk = Desk::new();
        let mut text: Vec<char> = fixture("every_section.md").chars().collect();
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, put.chars());
        if let Err(error) = desk.load(&text.into_iter().collect::<String>()) {
            let report = format!("{:?}", miette::Report::new(error));
            proptest::prop_assert!(!report.is_empty());
        }
    }
}
