//! `doctor`: checks everything that a run needs before a run needs it.

use std::path::Path;

use serde::Serialize;

use crate::config::Settings;
use crate::config::policy::{ForgeKind, RolloutMode};
use crate::config::tracker::TrackerKind;
use crate::config::worker::Runtime;
use crate::config::workspace::WorkspaceMode;
use crate::launcher::{LaunchError, LocalLauncher};
use crate::ledger::LedgerError;
use crate::runtime;
use crate::workflow::Loaded;
use crate::workspace::Workspaces;

use super::Failure;
use super::args::DoctorArgs;
use super::block_on;
use super::bundle;
use super::context::Context;
use super::github_setup;
use super::init;
use super::landing;
use super::logins;
use super::models;
use super::output;
use super::programs;
use super::scripts;
use crate::runtime::{RunnerFolder, assembly};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warning,
    Problem,
}

#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    verdict: Verdict,
    detail: String,
    fix: Option<String>,
}

pub(super) struct Report(Vec<Finding>);

impl Report {
    pub(super) fn ok(&mut self, what: &'static str, detail: impl Into<String>) {
        self.0.push(Finding { what, verdict: Verdict::Ok, detail: detail.into(), fix: None });
    }

    pub(super) fn warn(&mut self, what: &'static str, detail: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Finding { what, verdict: Verdict::Warning, detail: detail.into(), fix: Some(fix.into()) });
    }

    pub(super) fn problem(&mut self, what: &'static str, detail: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Finding { what, verdict: Verdict::Problem, detail: detail.into(), fix: Some(fix.into()) });
    }

    fn has_problems(&self) -> bool {
        self.0.iter().any(|finding| finding.verdict == Verdict::Problem)
    }
}

pub fn doctor(context: &Context, args: &DoctorArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let mut report = Report(Vec::new());
    workflow(&loaded, &mut report);
    // This check comes first: with too few open files the next checks fail with misleading errors.
    open_files(&loaded, &mut report);
    git(&loaded, &mut report);
    let path = logins::shell(context, &loaded, &mut report);
    agent(&path, &loaded, &mut report);
    models::models(context, &path, &loaded, &mut report);
    programs::gates(&path, &loaded, &mut report);
    programs::reviewer(context.env.vars(), &loaded, &mut report);
    scripts::in_base(&loaded, &mut report);
    programs::runner(&place, &mut report);
    match loaded.settings.tracker.kind {
        TrackerKind::Github => github_setup::board(&loaded, args, &mut report),
        _ => tracker(&loaded, &mut report),
    }
    workspace(&loaded, &place, &mut report);
    logins::same_user(context, &loaded, &mut report);
    rollout(&loaded, &mut report);
    switches(&loaded, &place, &mut report);
    disk(&loaded.settings.workspace.root, &mut report);
    ledger(&loaded, &place, &mut report);
    if let Some(target) = &args.bundle {
        let target = context.cwd.join(target);
        let events = args.events.as_deref().map(|path| context.cwd.join(path));
        let packed = bundle::pack(context, &loaded, &place, &report.0, events.as_deref(), &target)?;
        output::complain(&packed);
    }
    if args.json {
        let passed = !report.has_problems();
        output::print_json(&serde_json::json!({ "passed": passed, "hash": loaded.hash, "findings": report.0 }))?;
    } else {
        print(&report)?;
    }
    if report.has_problems() { Err(Failure::ProblemsFound) } else { Ok(()) }
}

fn print(report: &Report) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for finding in &report.0 {
        let mark = match finding.verdict {
            Verdict::Ok => "ok     ",
            Verdict::Warning => "warning",
            Verdict::Problem => "PROBLEM",
        };
        lines.push(format!("{mark}  {:<12}{}", finding.what, finding.detail));
        if let Some(fix) = &finding.fix {
            lines.push(format!("{:21}fix: {fix}", ""));
        }
    }
    let warnings = report.0.iter().filter(|finding| finding.verdict == Verdict::Warning).count();
    lines.push(if report.has_problems() {
        "\nnot ready: mend the problems above".into()
    } else if warnings > 0 {
        let warnings = output::count(warnings, "warning", "warnings");
        format!("\nready, with {warnings}: start with `dirigent run` (or `dirigent run --once`)")
    } else {
        "\nready: start with `dirigent run` (or `dirigent run --once`)".into()
    });
    output::print(&lines.join("\n"))
}

fn workflow(loaded: &Loaded, report: &mut Report) {
    report.ok("workflow", format!("{} ({})", loaded.path.display(), &loaded.hash[..12.min(loaded.hash.len())]));
    let broken = loaded.broken_prompt.as_ref().map(ToString::to_string);
    for warning in loaded.warnings.iter().filter(|warning| Some(warning.to_string()) != broken) {
        report.warn("workflow", warning.to_string(), "correct or remove the key");
    }
    for missing in &loaded.unavailable {
        report.problem("workflow", missing.to_string(), "remove it, or choose what this version has");
    }
    match &loaded.broken_prompt {
        Some(finding) => {
            report.problem("prompt", finding.to_string(), "correct the template; every attempt fails with it")
        }
        None => report.ok("prompt", loaded.prompts.origin()),
    }
}

fn git(loaded: &Loaded, report: &mut Report) {
    let settings = &loaded.settings;
    if settings.workspace.mode == WorkspaceMode::Directory {
        report.ok("git", "not used: workspace.mode is directory");
        pushes(loaded, report);
        return;
    }
    if let Err(failure) = block_on(async { Ok(assembly::clone_repository(settings).await?) }) {
        report.problem("git", failure.text(), "see workspace.repo");
        return;
    }
    match assembly::workspaces(settings) {
        Ok(workspaces) => {
            let base =
                block_on(async { workspaces.base_commit(&settings.workspace.base).await.map_err(Failure::plain) });
            match base {
                Ok(commit) => report.ok(
                    "git",
                    format!(
                        "{}, base {} at {}",
                        settings.workspace.repo.display(),
                        settings.workspace.base,
                        commit.short()
                    ),
                ),
                Err(failure) => report.problem("git", failure.text(), "make the branch, or set workspace.base"),
            }
            if let Err(failure) = block_on(async { workspaces.try_signing().await.map_err(Failure::plain) }) {
                report.problem("git", failure.text(), "see above");
            }
            receipts(settings, &workspaces, report);
            if settings.pr.base_branch != settings.workspace.base
                && let Some(trouble) = landing::trouble(settings, &workspaces)
            {
                report.problem("git", trouble, landing::FIX);
            }
        }
        Err(error) => report.problem("git", error.to_string(), "see above"),
    }
    match assembly::forge_kind(settings) {
        ForgeKind::Local => report.ok("forge", "local: branches are merged in this repository"),
        ForgeKind::None => report.ok("forge", "none: branches are left for you"),
        ForgeKind::Github => github_forge(loaded, report),
    }
    if assembly::forge_kind(settings) == ForgeKind::Local && !settings.gates.judges_tasks() {
        report.warn(
            "gates",
            "gates.task is empty: nothing checks the work before it is offered for merging",
            "name the command that tests your project under gates.task",
        );
    }
}

/// Reports whether the agent has credentials to push with. In directory mode the runner does not push; the agent or a hook has to.
fn pushes(loaded: &Loaded, report: &mut Report) {
    const NEEDED: [&str; 4] = ["SSH_AUTH_SOCK", "GH_TOKEN", "GITHUB_TOKEN", "GIT_ASKPASS"];
    let worker = &loaded.settings.worker;
    let has = |name: &&str| {
        let passes = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => pattern == *name,
        };
        worker.env.contains_key(*name) || worker.env_pass.iter().any(passes)
    };
    match NEEDED.iter().find(|name| has(name)) {
        Some(name) => report.ok("push", format!("the agent pushes, with {name}; the runner does not (workspace.mode: directory)")),
        None => report.warn(
            "push",
            "whatever the prompt has pushed, the agent pushes, and it has neither SSH_AUTH_SOCK nor a token; the runner does not push \
             (workspace.mode: directory)",
            "let the agent push: worker.env_pass: [SSH_AUTH_SOCK], or a token of its own in worker.env; or let the runner push: no clone in \
             hooks.after_create, workspace.repo, and a `pr` section",
        ),
    }
}

/// Reports whether receipts will be signed.
fn receipts(settings: &Settings, workspaces: &Workspaces, report: &mut Report) {
    if assembly::forge_kind(settings) == ForgeKind::None {
        return;
    }
    match block_on(async { Ok(workspaces.try_receipt_key().await) }) {
        Ok(Ok(Some(_))) => report.ok("receipts", "signed with git's key (user.signingkey)"),
        Ok(Ok(None)) => report.ok("receipts", "not signed: git has no user.signingkey"),
        Ok(Err(error)) => report.warn(
            "receipts",
            format!("they will not be signed: {error}"),
            "mend user.signingkey, load the key into its agent, or use one without a passphrase",
        ),
        Err(failure) => report.warn("receipts", failure.text(), "see above"),
    }
}

/// Reports what the token may do, according to GitHub.
fn github_forge(loaded: &Loaded, report: &mut Report) {
    let settings = &loaded.settings;
    let probed = assembly::github_forge(settings)
        .map_err(Failure::from)
        .and_then(|forge| block_on(async { forge.probe(&settings.pr.base_branch).await.map_err(Failure::plain) }));
    match probed {
        Ok(probe) => {
            report.ok("forge", probe.words);
            for missing in probe.missing {
                report.warn("forge", missing.what, missing.fix);
            }
        }
        Err(failure) => report.problem("forge", failure.text(), "see pr.provider and pr.repo_slug in WORKFLOW.md"),
    }
}

fn agent(path: &str, loaded: &Loaded, report: &mut Report) {
    let settings = &loaded.settings;
    let runtime = settings.worker.runtime;
    let command = settings.command(runtime);
    match programs::program_of(command) {
        _ if command == init::STAND_IN => report.warn(
            "agent",
            "the stand-in that `init` wrote: it goes the whole way and writes a note instead of the work",
            format!("name a real agent in {}.command; `dirigent agents` lists what is installed", runtime.name()),
        ),
        None => report.problem(
            "agent",
            format!("{}.command is empty", runtime.name()),
            "name the command that does the work",
        ),
        Some(program) if programs::can_be_run(program, path) => {
            report.ok("agent", format!("{}: {command}", runtime.name()));
        }
        Some(program) => report.problem(
            "agent",
            format!("`{program}` is not there, or no program ({}.command)", runtime.name()),
            "install it, or correct the command",
        ),
    }
    if runtime == Runtime::Exec && settings.exec.timeouts.stall.as_secs() > 0 {
        report.ok(
            "liveness",
            format!(
                "an agent that prints nothing for {} s is stopped (exec.stall_timeout_ms)",
                settings.exec.timeouts.stall.as_secs()
            ),
        );
    }
}

fn tracker(loaded: &Loaded, report: &mut Report) {
    let kind = loaded.settings.tracker.kind.name();
    let probed = assembly::tracker(&loaded.settings).map_err(Failure::from).and_then(|tracker| {
        let words = block_on(async { tracker.probe().await.map_err(Failure::plain) })?;
        Ok((words, tracker.left_out()))
    });
    match probed {
        Ok((words, left_out)) => {
            report.ok("tracker", format!("{kind}: {words}"));
            for ticket in left_out {
                report.warn("tracker", format!("left out: {ticket}"), "mend or remove the file");
            }
        }
        Err(failure) => {
            let fix = match loaded.settings.tracker.kind {
                TrackerKind::Tk => {
                    "make the first ticket with `dirigent tk create \"...\"`, or set tracker.provider.dir"
                }
                _ => "check tracker in WORKFLOW.md",
            };
            report.problem("tracker", format!("{kind}: {}", failure.text()), fix);
        }
    }
}

fn workspace(loaded: &Loaded, place: &RunnerFolder, report: &mut Report) {
    let workspace = &loaded.settings.workspace;
    let made = std::fs::create_dir_all(&workspace.root).and_then(|()| tempfile::tempfile_in(&workspace.root));
    let mode = format!("{} ({})", workspace.mode.name(), workspace.mode_reason.sentence());
    match made {
        Ok(_) => report.ok("workspace", format!("{mode} under {}", workspace.root.display())),
        Err(error) => report.problem(
            "workspace",
            format!("{} cannot be written: {error}", workspace.root.display()),
            "check its permissions, or set workspace.root",
        ),
    }
    match containment(place) {
        Ok(words) => report.ok("processes", words),
        Err(error) => report.problem("processes", error.to_string(), "check the permissions of the state folder"),
    }
}

fn containment(place: &RunnerFolder) -> Result<String, LaunchError> {
    let scratch = place.state_dir.join("scratch");
    let launcher = match std::env::current_exe() {
        Ok(program) => LocalLauncher::start_shielded(&scratch, &place.shield(&program))?,
        Err(_) => LocalLauncher::start(&scratch)?,
    };
    let ours = if launcher.is_shielded() { "; the runner's state is read-only for runs" } else { "" };
    Ok(format!("{}{ours}", launcher.containment().describe()))
}

fn rollout(loaded: &Loaded, report: &mut Report) {
    let settings = &loaded.settings;
    let words = match settings.rollout.mode {
        RolloutMode::Observe => "observe: shows what it would do, changes nothing (rollout.mode: mutate to begin)",
        RolloutMode::Mutate => "mutate: does everything but merge",
        RolloutMode::Merge => "merge: does everything, merges included",
    };
    report.ok("rollout", words);
    let owned =
        !settings.tracker.required_labels.is_empty() || settings.orchestration.ownership.required_label.is_some();
    if !owned && settings.rollout.mode != RolloutMode::Observe {
        report.warn(
            "ownership",
            "every ticket in an active state is taken: no label is required",
            "set tracker.required_labels if not every ticket is meant for the agent",
        );
    }
}

fn switches(loaded: &Loaded, place: &RunnerFolder, report: &mut Report) {
    let file = &loaded.settings.rollout.kill_switch_file;
    if file.exists() {
        report.warn(
            "switches",
            format!("the kill-switch file {} is there: nothing will run", file.display()),
            "remove it to begin",
        );
    } else {
        let folder = file.parent().filter(|folder| !folder.exists());
        let first = folder.map(|folder| format!("mkdir -p {} && ", folder.display())).unwrap_or_default();
        report.ok("switches", format!("{first}touch {} to stop everything", file.display()));
    }
    if let Ok(state) = place.read_ledger().and_then(|ledger| ledger.load())
        && let Some(pause) = &state.meta.pause_all
    {
        report.warn(
            "switches",
            format!("paused by {} since {}", pause.by, output::time(pause.since)),
            "dirigent resume",
        );
    }
}

fn disk(root: &Path, report: &mut Report) {
    const LOW: u64 = 1 << 30;
    match nix::sys::statvfs::statvfs(root) {
        Ok(stat) => {
            let free = stat.blocks_available() * stat.fragment_size();
            let words = format!("{} MB free under {}", free >> 20, root.display());
            if free < LOW {
                report.warn("disk", words, "make room: every run has a worktree of its own");
            } else {
                report.ok("disk", words);
            }
        }
        Err(error) => report.warn("disk", format!("{}: {error}", root.display()), "check workspace.root"),
    }
}

fn open_files(loaded: &Loaded, report: &mut Report) {
    match super::open_files::allow_for(loaded.settings.agent.max_concurrent_agents, 0) {
        Some(files) if !files.enough_for_one() => report.problem("open files", files.sentence(), files.fix()),
        Some(files) if !files.enough_for_all() => report.warn("open files", files.sentence(), files.fix()),
        Some(files) => report.ok("open files", format!("{} allowed, {} wanted", files.allowed, files.wanted)),
        None => {}
    }
}

fn ledger(loaded: &Loaded, place: &RunnerFolder, report: &mut Report) {
    let passed = !report.has_problems();
    let result = whole_ledger(place).and_then(|known| {
        if passed {
            place.open_ledger()?.record_preflight(&loaded.hash, runtime::now())?;
        }
        Ok(known)
    });
    match result {
        Ok(known) => report.ok("ledger", format!("{} ({known})", place.ledger.display())),
        Err(error) => report.problem("ledger", error.to_string(), "see above"),
    }
}

/// Checks every page of the ledger's database, which no other command does because it takes time. Returns how many tickets it knows.
fn whole_ledger(place: &RunnerFolder) -> Result<String, LedgerError> {
    let ledger = place.read_ledger()?;
    ledger.check()?;
    let known = format!("{} tickets known", ledger.load()?.jobs.len());
    Ok(match ledger.archived_count()? {
        0 => known,
        archived => format!("{known}, {archived} more are over and archived"),
    })
}
