//! `agents test`: one whole run of the worker with the installed client, a scripted model and a temporary repository. It checks what can be
//! observed from outside (requests, commit, usage, end), not what the client reports about itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::config::Settings;
use crate::config::pi::PiModel;
use crate::config::worker::Runtime;
use crate::domain::comment::{Author, TrustLevel};
use crate::domain::ids::{RunId, TicketId};
use crate::domain::job::{Reviews, Work};
use crate::domain::route::Route;
use crate::domain::run::{Activity, RunOutcome, RunReport, StopReason};
use crate::domain::ticket::{Dispatchable, Ticket};
use crate::domain::usage::Usage;
use crate::engine::permit::by_hand;
use crate::launcher::LocalLauncher;
use crate::launcher::environment::{Secrets, install_tools};
use crate::worker::{
    Control, Inbox, RunOrder, TicketSource, Worker, WorkerEvent, Workplace, desk, preparation_lane, transcript_path,
};
use crate::workflow::resolve::dirigent_home;
use crate::workflow::{Prompts, Templates};
use crate::workspace::{WorkspaceConfig, Workspaces};

use super::super::Failure;
use super::super::context::Context;
use super::catalogue::{Family, Preset};
use super::home;
use super::model::{COMMITTED_FILE, Model};

/// The conversation takes only seconds; a client that hangs is stopped after this time.
const PATIENCE: Duration = Duration::from_secs(180);
const BRANCH: &str = "dirigent/self-test";
/// The prompt of the run. The ticket's title says what to make.
const PROMPT: &str = "{{issue.title}} and commit it.";

/// The variables that the client gets from this process. Proxy settings are left out, because the model is on loopback.
const VARIABLES: [&str; 7] = ["PATH", "USER", "LANG", "TERM", "TMPDIR", "SHELL", "TZ"];

#[derive(Debug, Serialize)]
pub struct SelfTestCheck {
    pub what: &'static str,
    pub passed: bool,
    pub detail: String,
}

#[derive(Debug, Serialize)]
pub struct SelfTestResult {
    pub name: &'static str,
    pub passed: bool,
    pub checks: Vec<SelfTestCheck>,
    /// The transcript of the run, kept only if a check failed.
    pub transcript: Option<PathBuf>,
}

pub async fn run(context: &Context, preset: &Preset, family: Family) -> Result<SelfTestResult, Failure> {
    let parent = dirigent_home(&context.env).join("self-test");
    std::fs::create_dir_all(&parent)
        .map_err(|error| Failure::plain(format!("cannot make {}: {error}", parent.display())))?;
    let folder = tempfile::Builder::new().prefix("run-").tempdir_in(&parent)?;
    let model = Model::start().await?;
    let run = RunId::new(ulid::Ulid::generate().to_string());
    let env = home::prepare(family, &folder.path().join("home"), &model.url())?;
    let worker = worker(context, folder.path(), settings(preset, env))?;
    let transcript = transcript_path(&worker.state_dir, &run);
    let (report, usage) = converse(&worker, order(run, &worker.settings)).await;
    let checks = checks(&model, &report, usage);
    let passed = checks.iter().all(|check| check.passed);
    let transcript = (!passed).then_some(transcript);
    if !passed {
        // The folder is kept for the user to look at.
        let _ = folder.keep();
    }
    Ok(SelfTestResult { name: preset.name, passed, checks, transcript })
}

fn settings(preset: &Preset, env: Vec<(String, String)>) -> Settings {
    let mut settings = Settings::default();
    settings.worker.runtime = preset.runtime;
    settings.worker.env = env.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect();
    settings.tracker.active_states = vec!["open".into()];
    settings.tracker.terminal_states = vec!["closed".into()];
    settings.tracker.trusted = vec![TrustLevel::Admin];
    settings.agent.max_turns = 1;
    let command = preset.command.to_owned();
    // The timeout is generous: the test is about what works, not about how fast the machine is.
    let mut timeouts = settings.codex.timeouts;
    timeouts.read = Duration::from_secs(60);
    match preset.runtime {
        Runtime::Codex => (settings.codex.command, settings.codex.timeouts) = (command, timeouts),
        Runtime::Claude => (settings.claude.command, settings.claude.timeouts) = (command, timeouts),
        Runtime::Pi => {
            (settings.pi.command, settings.pi.timeouts) = (command, timeouts);
            settings.pi.model = Some(PiModel { provider: Some("mock".into()), model_id: "mock-model".into() });
        }
        Runtime::Acp => (settings.acp.command, settings.acp.timeouts) = (command, timeouts),
        Runtime::Exec => {
            let model = if preset.family == Some(Family::Pi) { " --provider mock --model mock-model" } else { "" };
            (settings.exec.command, settings.exec.timeouts) = (format!("{command}{model}"), timeouts);
        }
    }
    settings
}

fn worker(context: &Context, folder: &Path, settings: Settings) -> Result<Worker, Failure> {
    let repo = folder.join("repo");
    std::fs::create_dir(&repo)?;
    std::fs::write(repo.join("README.md"), "A repository for a self-test.\n")?;
    Workspaces::init_repository(&repo, "main", "Begin").map_err(Failure::plain)?;
    let workspaces = Workspaces::open(WorkspaceConfig::new(&repo, folder.join("worktrees"), "main"));
    let tools = folder.join("tools");
    install_tools(&tools, &std::env::current_exe()?).map_err(Failure::plain)?;
    let vars = context.env.vars();
    let environment: BTreeMap<String, String> = vars
        .iter()
        .filter(|(name, _)| VARIABLES.contains(&name.as_str()))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let runtime_dir = vars.get("XDG_RUNTIME_DIR").map(PathBuf::from);
    Ok(Worker {
        settings: Arc::new(settings),
        workplace: Workplace::Worktrees(workspaces.map_err(Failure::plain)?),
        launcher: Arc::new(LocalLauncher::start(&folder.join("scratch")).map_err(Failure::plain)?),
        prompts: Prompts::new(PROMPT, "the self-test's prompt", 0, Templates::load(None).map_err(Failure::plain)?),
        tickets: Arc::new(OnlyTicket),
        preparing: preparation_lane(),
        environment: Arc::new(environment),
        secrets: Arc::new(Secrets::default()),
        state_dir: folder.join("state"),
        tools,
        sockets: desk::socket_directory(runtime_dir.as_deref()).map_err(Failure::plain)?,
    })
}

/// A board that holds only the self-test's ticket and never changes.
struct OnlyTicket;

#[async_trait]
impl TicketSource for OnlyTicket {
    async fn read(&self, _: &TicketId) -> Result<Option<Ticket>, String> {
        Ok(Some(ticket()))
    }
}

fn ticket() -> Ticket {
    Ticket {
        id: "self-test".into(),
        key: "self-test".into(),
        title: format!("Make {COMMITTED_FILE}"),
        description: None,
        priority: None,
        state: "open".into(),
        branch_name: None,
        url: None,
        assignee: None,
        author: Some(Author::new("dirigent", TrustLevel::Admin)),
        labels: Vec::new(),
        blocked_by: Vec::new(),
        parent: None,
        dispatchable: Dispatchable::Yes,
        created_at: None,
        updated_at: None,
        native_ref: None,
        comments: Some(Vec::new()),
        state_changed: None,
        history: Default::default(),
    }
}

fn order(run: RunId, settings: &Settings) -> RunOrder {
    let policy = Arc::new(settings.policy("self-test", false));
    let route = Route {
        runtime: settings.worker.runtime.name().to_owned(),
        model: None,
        model_provider: None,
        thinking_level: None,
        prompt: None,
        pool: settings.pool(settings.worker.runtime),
    };
    let route = policy.agent.routes.last().map_or(route, |last| last.route.clone());
    RunOrder {
        run,
        ticket: ticket(),
        work: Work::Implement,
        attempt: 1,
        branch: BRANCH.into(),
        base_branch: "main".into(),
        resume: None,
        route,
        undelivered: Vec::new(),
        previous: None,
        policy,
        rework_cycles: 0,
        reviews: Reviews::default(),
        base: None,
        cost_left: None,
        service: None,
    }
}

/// Runs the worker to its end. Returns its report and all usage.
async fn converse(worker: &Worker, order: RunOrder) -> (RunReport, Usage) {
    let (control, heard) = mpsc::channel(4);
    let (teller, mut told) = mpsc::channel(64);
    let listening = tokio::spawn(async move {
        let mut usage = Usage::default();
        while let Some(event) = told.recv().await {
            if let WorkerEvent::Activity(Activity::Agent { usage: more, .. }) = event {
                usage += more;
            }
        }
        usage
    });
    let running = worker.run(by_hand(), order, Inbox::new(heard), teller);
    tokio::pin!(running);
    let report = tokio::select! {
        report = &mut running => report,
        () = tokio::time::sleep(PATIENCE) => {
            let _ = control.send(Control::Stop(StopReason::Operator)).await;
            running.await
        }
    };
    let mut usage = listening.await.unwrap_or_default();
    usage += report.unreported_usage;
    (report, usage)
}

fn checks(model: &Model, report: &RunReport, usage: Usage) -> Vec<SelfTestCheck> {
    let check = |what, passed: bool, good: String, bad: &str| SelfTestCheck {
        what,
        passed,
        detail: if passed { good } else { bad.to_owned() },
    };
    let requests = model.seen.requests.load(Ordering::Relaxed);
    let ended = match &report.outcome {
        RunOutcome::Done => String::new(),
        RunOutcome::Failed { failure } => failure.to_string(),
        RunOutcome::Killed { .. } => format!("no end after {} s; it was stopped", PATIENCE.as_secs()),
    };
    vec![
        check(
            "started",
            report.session.is_some(),
            report.session.as_ref().map(|id| format!("conversation {}", id.as_str())).unwrap_or_default(),
            "it never named a conversation",
        ),
        check("model", requests > 0, format!("{requests} requests"), "the scripted model was never asked"),
        check(
            "tool",
            model.seen.results.load(Ordering::Relaxed) > 0,
            "the shell command was run and its result sent back".into(),
            "the result of the shell command never came back",
        ),
        check(
            "commit",
            report.commits_ahead == 1,
            format!("{COMMITTED_FILE} is committed on its branch"),
            "the branch has no commit: the command was refused, or could not write to the repository",
        ),
        check(
            "usage",
            usage.tokens() > 0,
            format!("{} input, {} cached, {} output", usage.fresh_input, usage.cached_input, usage.output),
            "no tokens were counted",
        ),
        check("ended", ended.is_empty(), "the turn ended and its processes are gone".into(), &ended),
    ]
}
