//! Workflow files as people write them: loaded, refused with a sentence, shown with their sources.

mod bad_input;
mod behaviour;
mod dialects;
mod not_in_force;
mod overrides;
mod reload;
mod schema_walk;
mod texts;

use std::path::{Path, PathBuf};
use std::time::Duration;

use dirigent::config::Settings;
use dirigent::config::agent::{AskDefault, OnRequest};
use dirigent::config::policy::{ForgeKind, Order, RolloutMode};
use dirigent::config::tracker::UntrustedText;
use dirigent::config::worker::Runtime;
use dirigent::config::workspace::{Keep, ModeReason, OnDirty, WorkspaceMode};
use dirigent::domain::job::Work;
use dirigent::domain::ticket::Ticket;
use dirigent::workflow::{self, Env, Loaded, PromptInput, RunFacts, ValueSource, WorkflowError, schema};
use secrecy::ExposeSecret;

const HOME: &str = "/home/somebody";

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/workflow").join(name);
    std::fs::read_to_string(path).expect("fixture")
}

struct Desk {
    dir: tempfile::TempDir,
    env: Env,
}

impl Desk {
    fn new() -> Self {
        Self::with([("HOME", HOME)])
    }

    fn with<const N: usize>(vars: [(&str, &str); N]) -> Self {
        let dir = tempfile::tempdir().expect("temp dir");
        // A repository of its own, whatever lies above the directory for temporary files.
        std::fs::create_dir(dir.path().join(".git")).expect("mkdir");
        std::fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/main\n").expect("write");
        Self { dir, env: Env::of(vars) }
    }

    fn dir(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("temp dir exists")
    }

    fn load(&self, text: &str) -> Result<Loaded, WorkflowError> {
        let path = self.dir().join("WORKFLOW.md");
        std::fs::write(&path, text).expect("write");
        workflow::load(&path, &self.env)
    }

    /// A front matter with `tracker.kind: tk` and an agent that exists.
    fn front(&self, yaml: &str) -> Result<Loaded, WorkflowError> {
        self.load(&format!("---\ntracker: {{kind: tk}}\n{yaml}\n---\nDo {{{{issue.title}}}}\n"))
    }

    fn good(&self, yaml: &str) -> Loaded {
        self.front(yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"))
    }

    /// The single sentence that a bad front matter gives, without its file name.
    fn bad(&self, yaml: &str) -> String {
        let error = self.front(yaml).map(|_| ()).expect_err(yaml);
        assert_eq!(error.class(), "invalid_config", "{yaml}");
        assert_eq!(error.findings().len(), 1, "{yaml}: {error}");
        let text = error.to_string();
        text.split_once("WORKFLOW.md:").expect("names the file").1.to_owned()
    }
}

fn first_prompt(loaded: &Loaded) -> String {
    try_first_prompt(loaded).expect("renders")
}

fn try_first_prompt(loaded: &Loaded) -> Result<String, String> {
    let ticket: Ticket = serde_json::from_value(serde_json::json!({
        "id": "7", "key": "APP-7", "title": "Fix the page", "description": "It is broken.", "priority": 2, "state": "open",
        "branch_name": null, "url": null, "assignee": null, "author": null, "labels": ["ui", "bug"], "blocked_by": [],
        "parent": null, "dispatchable": {"is": "yes"}, "created_at": null, "updated_at": null, "native_ref": null, "comments": [],
        "state_changed": null, "labelled": [],
    }))
    .expect("a ticket");
    let run = RunFacts {
        id: "run",
        phase: "implementing",
        turn: 1,
        branch: "dirigent/APP-7",
        base: "main",
        worktree: Path::new("/w"),
        ticket_tools: false,
        desk_tools: false,
    };
    let input = PromptInput {
        ticket: &ticket,
        attempt: 1,
        work: &Work::Implement,
        run,
        undelivered: &[],
        attached: &[],
        review: None,
        previous: None,
    };
    loaded.prompts.first(&input, &loaded.settings, None).map_err(|error| error.to_string())
}

fn default_settings() -> Settings {
    Desk::new().good("").settings
}

#[test]
fn spec_6_defaults() {
    let settings = default_settings();
    assert_eq!(settings.polling.interval, Duration::from_millis(30_000));
    assert_eq!(settings.hooks.timeout, Duration::from_millis(60_000));
    assert_eq!(settings.agent.max_concurrent_agents, 10);
    assert_eq!(settings.agent.max_turns, 20);
    assert_eq!(settings.agent.max_retry_backoff, Duration::from_millis(300_000));
    assert_eq!(settings.codex.command, "codex app-server");
    for runtime in Runtime::ALL {
        let timeouts = settings.timeouts(runtime);
        assert_eq!(timeouts.turn, Duration::from_millis(3_600_000));
        assert_eq!(timeouts.read, Duration::from_millis(5_000));
        assert_eq!(timeouts.stall, Duration::from_millis(300_000));
    }
    assert_eq!(settings.rollout.mode, RolloutMode::Observe);
    assert_eq!(settings.agent.tool_timeout, Duration::from_secs(1800));
    assert_eq!(settings.orchestration.max_rework_cycles, 3);
    assert_eq!(settings.merge.checks_grace, Duration::from_secs(120));
}

#[test]
fn defaults_that_depend_on_the_place() {
    let desk = Desk::new();
    let settings = desk.good("").settings;
    let repo = desk.dir();
    let name = repo.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(settings.workspace.repo, repo);
    assert_eq!(settings.tracker.provider.dir, Some(repo.join(".tickets")));
    assert_eq!(settings.rollout.kill_switch_file, repo.join(".dirigent/pause"));
    assert_eq!(settings.observability.agent_state_file, repo.join(".bkit/agent-state.json"));
    let root = settings.workspace.root.to_string_lossy().into_owned();
    let prefix = format!("{HOME}/.dirigent/workspaces/{name}-");
    assert!(root.starts_with(&prefix) && root.len() == prefix.len() + 8, "{root}");
    let other = Desk::new().good("").settings.workspace.root;
    assert_ne!(other, settings.workspace.root, "two repositories do not share a root");
}

#[test]
fn a_workflow_file_in_a_subdirectory_belongs_to_its_repository() {
    let desk = Desk::new();
    let sub = desk.dir().join("ops");
    std::fs::create_dir_all(&sub).unwrap();
    std::fs::write(sub.join("WORKFLOW.md"), "---\ntracker: {kind: tk}\n---\n").unwrap();
    let loaded = workflow::load(&sub.join("WORKFLOW.md"), &desk.env).unwrap();
    assert_eq!(loaded.settings.workspace.repo, desk.dir());
}

#[test]
fn every_section_is_read() {
    let desk = Desk::with([("HOME", HOME), ("WORKSPACES", "~/w"), ("TOOL_TOKEN", "t0k3n")]);
    let loaded = desk.load(&fixture("every_section.md")).unwrap();
    let silent: Vec<&str> = loaded.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(
        silent,
        [
            "agent.on_request",
            "agent.allow",
            "agent.deny",
            "agent.ask_timeout_ms",
            "agent.ask_default",
            "exec.read_timeout_ms",
            "review.max_passes",
            "merge.checks_grace_ms",
        ],
        "{:?}",
        loaded.warnings
    );
    assert!(loaded.unavailable.is_empty(), "{:?}", loaded.unavailable);
    let s = &loaded.settings;
    let dir = desk.dir();
    assert_eq!(s.tracker.provider.dir, Some(dir.join("tickets")));
    assert_eq!(s.tracker.untrusted_text, UntrustedText::Fence);
    assert_eq!(s.tracker.trusted.len(), 2);
    assert_eq!(s.polling.interval, Duration::from_secs(10));
    assert_eq!(s.workspace.root, PathBuf::from("/home/somebody/w"));
    assert_eq!((s.workspace.keep, s.workspace.on_dirty), (Keep::OnFailure, OnDirty::Fail));
    assert_eq!(s.workspace.base, "trunk", "workspace.base follows pr.base_branch");
    assert_eq!(s.worker.env["TOKEN_FOR_TOOL"].expose_secret(), "t0k3n");
    assert_eq!(s.agent.max_run, Duration::from_secs(7200));
    assert_eq!((s.agent.on_request, s.agent.ask_default), (OnRequest::Ask, AskDefault::Approve));
    assert!(s.agent.allow[0].matches("read", "anything") && s.agent.allow[1].matches("shell", "git push"));
    assert_eq!(s.exec.command, "./agent.sh \"$HOME\" $UNTOUCHED", "commands are never rewritten");
    assert_eq!(s.exec.timeouts.read, Duration::from_secs(9));
    assert_eq!(s.exec.timeouts.stall, Duration::from_secs(420), "falls back to codex");
    assert_eq!(s.rollout.kill_switch_file, dir.join("pause"));
    assert_eq!(s.hooks.before_run.as_deref(), Some("echo $HOME ~"));
    assert_eq!(s.gates.task[0].title(), "cargo test");
    assert_eq!(s.gates.timeout_of(&s.gates.task[0]), Duration::from_secs(1200));
    assert_eq!((s.gates.task[1].title(), s.gates.timeout_of(&s.gates.task[1])), ("lint", Duration::from_secs(600)));

    let policy = s.policy(&loaded.hash, true);
    assert_eq!(policy.tracker.required_labels, ["agent"]);
    assert_eq!(policy.tracker.completion_state.as_deref(), Some("shipped"));
    assert_eq!(policy.orchestration.required_label.as_deref(), Some("dirigent"));
    assert!(policy.rollout.preflight_missing);
    assert_eq!(policy.rollout.kill_switch_label.as_deref(), Some("stop"));
    assert_eq!(policy.agent.order, Order::CriticalPath);
    let route = &policy.agent.routes.last().unwrap().route;
    assert_eq!(route.pool.as_str(), "shared");
    assert_eq!(policy.agent.timeouts[&route.runtime].stall, Duration::from_secs(420));
    assert_eq!(policy.budget.ticket.max_cost_microusd, Some(2_500_000));
    assert_eq!(policy.budget.daily.max_cost_microusd, Some(20_000_000));
    assert_eq!(policy.pr.forge, ForgeKind::Local);
    assert!(policy.gates.has_task_gates && policy.merge.no_checks_pass && policy.merge.queue);
}

#[test]
fn spec_6_empty_secret_is_missing() {
    let text = "---\ntracker:\n  kind: linear\n  provider: {team_key: ENG, api_key: $LINEAR_API_KEY}\n---\n";
    for desk in [Desk::new(), Desk::with([("HOME", HOME), ("LINEAR_API_KEY", "")])] {
        let loaded = desk.load(text).unwrap();
        assert!(loaded.settings.tracker.provider.api_key.is_none());
        let unset = "reads `$LINEAR_API_KEY`, which is not set or empty";
        assert!(loaded.warnings.iter().any(|warning| warning.message.contains(unset)), "{:?}", loaded.warnings);
    }
    let literal =
        Desk::new().load("---\ntracker:\n  kind: linear\n  provider: {team_key: ENG, api_key: ''}\n---\n").unwrap();
    assert!(literal.settings.tracker.provider.api_key.is_none());
}

#[test]
fn an_account_that_the_file_names_is_not_replaced_by_another() {
    let access = |settings: &Settings| {
        let exposed =
            |secret: &Option<secrecy::SecretString>| secret.as_ref().map(|one| one.expose_secret().to_owned());
        let provider = &settings.tracker.provider;
        [&provider.token, &provider.api_key, &settings.pr.provider.token].map(exposed)
    };
    let load = |text: &str| {
        let desk = Desk::with([("HOME", HOME), ("GITHUB_TOKEN", "personal"), ("LINEAR_API_KEY", "personal")]);
        access(&desk.load(&format!("---\ntracker: {text}\n---\n")).unwrap().settings)
    };
    let personal = || Some("personal".to_owned());
    let github = "{kind: github, required_labels: [x], provider: {repo: a/b";
    assert_eq!(load(&format!("{github}}}}}")), [personal(), None, personal()], "the file names none");
    assert_eq!(load(&format!("{github}, token: ''}}}}")), [personal(), None, personal()], "nor does an empty one");
    assert_eq!(load(&format!("{github}, token: $BOT_TOKEN}}}}")), [None, None, None]);
    assert_eq!(load(&format!("{github}}}}}\npr: {{provider: {{token: $BOT_TOKEN}}}}")), [personal(), None, None]);
    let linear = "{kind: linear, provider: {team_key: ENG";
    assert_eq!(load(&format!("{linear}}}}}")), [None, personal(), personal()]);
    assert_eq!(load(&format!("{linear}, api_key: $BOT_KEY}}}}")), [None, None, personal()]);
}

#[test]
fn a_secret_that_is_written_in_the_file_is_pointed_out_wherever_it_stands() {
    for text in [
        "pr: {provider: {token: canary}}",
        "observability: {notify: [{to: slack, when: [done], url: \"https://hooks.example.com/T0\"}]}",
    ] {
        let loaded = Desk::new().good(text);
        let warned = loaded.warnings.iter().any(|warning| warning.message.contains("is written in the file itself"));
        assert!(warned, "{text}: {:?}", loaded.warnings);
    }
    let for_the_worker = Desk::new().good("worker: {env: {NAME: value}}");
    assert!(for_the_worker.warnings.is_empty(), "{:?}", for_the_worker.warnings);
}

#[test]
fn spec_6_variables_expand_only_where_a_value_names_one() {
    let desk = Desk::with([("HOME", HOME), ("X", "/x"), ("KEY", "v")]);
    let settings = desk
        .good("workspace: {root: $X/sub, base: $X}\nworker: {env: {A: $KEY, B: pre$KEY}}\nhooks: {before_run: $X}")
        .settings;
    assert_eq!(settings.workspace.root, PathBuf::from("/x/sub"));
    assert_eq!(settings.workspace.base, "$X");
    assert_eq!(settings.worker.env["A"].expose_secret(), "v");
    assert_eq!(settings.worker.env["B"].expose_secret(), "pre$KEY");
    assert_eq!(settings.hooks.before_run.as_deref(), Some("$X"));
}

#[test]
fn an_unset_path_variable_falls_back_to_the_default_and_says_so() {
    let loaded = Desk::new().good("workspace: {root: $NOWHERE}");
    assert!(loaded.settings.workspace.root.starts_with(format!("{HOME}/.dirigent/workspaces")));
    assert!(loaded.warnings[0].message.contains("`workspace.root` reads `$NOWHERE`"), "{:?}", loaded.warnings);
    let homeless = Desk::with([]);
    assert!(homeless.bad("workspace: {root: ~/x}").contains("there is no home directory"));
}

#[test]
fn null_means_default() {
    let settings =
        Desk::new().good("polling:\n  interval_ms: null\nagent:\npr:\n  forge: ~\nmerge: {method: }").settings;
    assert_eq!(settings.polling.interval, Duration::from_secs(30));
    assert_eq!(settings.pr.forge, None);
}

#[test]
fn the_workspace_mode_is_chosen_with_a_reason() {
    let desk = Desk::new();
    let clones = "hooks:\n  after_create: git clone x .\n";
    for (yaml, mode, reason) in [
        ("", WorkspaceMode::Worktree, ModeReason::Default),
        (clones, WorkspaceMode::Directory, ModeReason::HookClones),
        ("hooks: {after_create: npm ci}", WorkspaceMode::Worktree, ModeReason::Default),
        ("hooks: {after_create: git clone x .}\nworkspace: {repo: .}", WorkspaceMode::Worktree, ModeReason::Default),
        (
            "hooks: {after_create: git clone x .}\nworkspace: {mode: worktree}",
            WorkspaceMode::Worktree,
            ModeReason::Written,
        ),
        ("workspace: {mode: directory}", WorkspaceMode::Directory, ModeReason::Written),
    ] {
        let workspace = desk.good(yaml).settings.workspace;
        assert_eq!((workspace.mode, workspace.mode_reason), (mode, reason), "{yaml}");
    }
}

#[test]
fn effective_values_carry_their_source_and_no_secret() {
    let desk = Desk::with([("HOME", HOME), ("WORKSPACES", "/w"), ("TOOL_TOKEN", "canary-7f3a")]);
    let loaded = desk.load(&fixture("every_section.md")).unwrap();
    let find = |path: &str| loaded.values.iter().find(|value| value.path == path).unwrap_or_else(|| panic!("{path}"));
    assert_eq!(find("polling.interval_ms").value, 10_000);
    assert_eq!(find("polling.interval_ms").source, ValueSource::File { line: 11 });
    assert_eq!(find("workspace.root").source, ValueSource::Env { name: "WORKSPACES".into(), line: 13 });
    assert_eq!(find("worker.place").source, ValueSource::Default);
    assert_eq!(find("exec.stall_timeout_ms").source, ValueSource::Key { key: "codex.stall_timeout_ms".into() });
    assert_eq!(find("worker.env.TOKEN_FOR_TOOL").value, "***");
    let text = workflow::show::plain_text(&loaded.values);
    assert!(!text.contains("canary-7f3a") && !format!("{loaded:?}").contains("canary-7f3a"));
    assert!(text.contains("merge.method") && text.contains("rebase  (line "), "{text}");
}

#[test]
fn the_schema_in_the_repository_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/workflow.schema.json");
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let current = schema::json_schema_text();
    if kept != current && std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &current).unwrap();
        return;
    }
    assert!(kept == current, "schema/workflow.schema.json is out of date: run this test with UPDATE_SCHEMA=1");
}
