//! Builds the adapters that a workflow asks for and puts a runner together from them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::config::Settings;
use crate::config::policy::{ForgeKind, Policy};
use crate::config::tracker::TrackerKind;
use crate::config::worker::Runtime;
use crate::config::workspace::WorkspaceMode;
use crate::domain::ids::CommitId;
use crate::engine::event::Event;
use crate::engine::state::State;
use crate::forge::Forge;
use crate::forge::local::LocalForge;
use crate::gates::Gates;
use crate::launcher::environment::{Secrets, install_tk};
use crate::launcher::{Launcher, LocalLauncher};
use crate::ledger::Ledger;
use crate::runtime::{
    self, Adapters, BurialOrder, Buried, Crew, Driver, DriverParts, Gatekeeper, Handle, Message, PollerParts, Recorder,
    Until, Words,
};
use crate::tracker::Tracker;
use crate::tracker::tk::TkTracker;
use crate::worker::{LostRun, PromptRequest, Worker, Workplace, desk};
use crate::workflow::prompt::{Previous, PromptInput, Prompts, RunFacts};
use crate::workflow::templates::{TemplateName, Templates};
use crate::workflow::watch::{Reload, Watch};
use crate::workflow::{Loaded, ValueSource};
use crate::workspace::directory::Directories;
use crate::workspace::{BaseSide, WorkspaceConfig, Workspaces};

use super::Failure;
use super::place::{Context, Place};

/// A small runtime for commands that only ask something.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// The forge that the settings mean, by the repository's remote where they do not say.
pub fn forge_kind(settings: &Settings) -> ForgeKind {
    // What lies in such a directory is its hook's affair: there is no branch of ours to open a pull request from.
    if settings.workspace.mode == WorkspaceMode::Directory {
        return ForgeKind::None;
    }
    let url = Workspaces::remote_url(&settings.workspace.repo);
    settings.pr.resolve_forge(url.as_deref())
}

pub fn workspaces(settings: &Settings) -> Result<Workspaces, Failure> {
    let mut config =
        WorkspaceConfig::new(&settings.workspace.repo, &settings.workspace.root, settings.workspace.base.clone());
    config.branch_prefix.clone_from(&settings.workspace.branch_prefix);
    config.base_side = match forge_kind(settings) {
        ForgeKind::Local => BaseSide::Local,
        ForgeKind::Github | ForgeKind::None => BaseSide::Remote,
    };
    Workspaces::open(config).map_err(Failure::plain)
}

pub fn tracker(settings: &Settings) -> Result<Arc<dyn Tracker>, Failure> {
    match settings.tracker.kind {
        TrackerKind::Tk => {
            let dir = settings.tracker.provider.dir.clone().unwrap_or_else(|| settings.workspace.repo.join(".tickets"));
            Ok(Arc::new(TkTracker::new(dir)))
        }
        kind @ (TrackerKind::Github | TrackerKind::Linear | TrackerKind::Memory) => {
            Err(Failure::plain(format!("tracker.kind {} is not available in this version", kind.name())))
        }
    }
}

/// The policy as the engine gets it: by the forge that is really used, and with what `doctor` recorded.
pub fn policy(loaded: &Loaded, ledger: &dyn Ledger) -> Result<Policy, Failure> {
    let checked = ledger.has_preflight(&loaded.hash)?;
    let mut policy = loaded.settings.policy(&loaded.hash, !checked);
    policy.pr.forge = forge_kind(&loaded.settings);
    if policy.pr.forge == ForgeKind::Local {
        // The local forge's checks are our own gates: none will turn up later by themselves.
        policy.merge.checks_grace = Duration::ZERO;
    }
    Ok(policy)
}

/// Everything that is shared by the runs of one life.
struct Workshop {
    place: Place,
    context_env: Arc<std::collections::BTreeMap<String, String>>,
    tracker: Arc<dyn Tracker>,
    launcher: Arc<dyn Launcher>,
    workplace: Workplace,
    tools: PathBuf,
    sockets: PathBuf,
}

impl Workshop {
    fn open(context: &Context, loaded: &Loaded, place: &Place) -> Result<Self, Failure> {
        let settings = &loaded.settings;
        let launcher = LocalLauncher::start(&place.state_dir.join("scratch")).map_err(Failure::plain)?;
        let workplace = match settings.workspace.mode {
            WorkspaceMode::Worktree => Workplace::Worktrees(workspaces(settings)?),
            WorkspaceMode::Directory => {
                Workplace::Directories(Directories::open(&settings.workspace.root).map_err(Failure::plain)?)
            }
        };
        let tools = place.state_dir.join("tools");
        let binary = std::env::current_exe().map_err(Failure::plain)?;
        install_tk(&tools, &binary).map_err(Failure::plain)?;
        let runtime_dir = context.env.vars().get("XDG_RUNTIME_DIR").map(PathBuf::from);
        Ok(Self {
            place: place.clone(),
            context_env: Arc::new(context.env.vars().clone()),
            tracker: tracker(settings)?,
            launcher: Arc::new(launcher),
            workplace,
            tools,
            sockets: desk::socket_directory(runtime_dir.as_deref()).map_err(Failure::plain)?,
        })
    }

    /// A worker for these settings. A reload makes a new one; runs under way keep theirs.
    fn worker(&self, loaded: &Loaded) -> Worker {
        let tracker = self.tracker.clone();
        let prompts = loaded.prompts.clone();
        let settings = Arc::new(loaded.settings.clone());
        let for_prompt = settings.clone();
        Worker {
            settings,
            workplace: self.workplace.clone(),
            launcher: self.launcher.clone(),
            render: Arc::new(move |request| prompt(&prompts, &for_prompt, request)),
            read_ticket: Arc::new(move |id| {
                let tracker = tracker.clone();
                Box::pin(async move {
                    let tickets =
                        tracker.fetch_by_ids(std::slice::from_ref(&id)).await.map_err(|error| error.to_string())?;
                    Ok(tickets.into_iter().find(|ticket| ticket.id == id))
                })
            }),
            environment: self.context_env.clone(),
            secrets: Arc::new(Secrets { names: secret_names(loaded), values: loaded.settings.secrets() }),
            state_dir: self.place.state_dir.clone(),
            tools: self.tools.clone(),
            sockets: self.sockets.clone(),
        }
    }
}

fn prompt(prompts: &Prompts, settings: &Settings, request: &PromptRequest<'_>) -> Result<String, String> {
    let order = request.order;
    let previous = order.previous.as_ref();
    let failure = previous.and_then(|previous| previous.failure.as_ref()).map(ToString::to_string);
    let input = PromptInput {
        ticket: request.ticket,
        attempt: order.attempt,
        work: &order.work,
        run: RunFacts {
            id: order.run.as_str(),
            phase: order.work.phase().name(),
            turn: request.turn,
            branch: &order.branch,
            base: &order.base_branch,
            worktree: request.worktree,
            // The sandbox of Codex lets no unix socket through; there the same words are tools.
            ticket_tools: request.runtime == Runtime::Codex,
        },
        unheard: request.words,
        previous: previous.map(|previous| Previous {
            summary: previous.summary.as_deref(),
            failure: failure.as_deref(),
            head: previous.head.as_ref().map(CommitId::as_str),
            salvage: previous.salvage.as_deref(),
        }),
    };
    let rendered = match request.turn {
        1 => prompts.first(&input, settings, request.template),
        _ => prompts.continuation(&input, settings),
    };
    rendered.map_err(|error| error.to_string())
}

/// Variables that hold a tracker's, forge's or server's secret: those that the file names, and those that their tools read.
fn secret_names(loaded: &Loaded) -> Vec<String> {
    let settings = &loaded.settings;
    let holds_secret = |path: &str| {
        let key = path.rsplit('.').next().unwrap_or(path);
        !path.starts_with("worker.env.") && matches!(key, "token" | "api_key" | "private_key" | "secret")
    };
    let named =
        loaded.values.iter().filter(|value| holds_secret(&value.path)).filter_map(|value| match &value.source {
            ValueSource::Env { name, .. } => Some(name.clone()),
            _ => None,
        });
    let mut names: Vec<String> = named.collect();
    if settings.tracker.kind == TrackerKind::Github || forge_kind(settings) == ForgeKind::Github {
        names.extend(["GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"].map(str::to_owned));
    }
    if settings.tracker.kind == TrackerKind::Linear {
        names.push("LINEAR_API_KEY".to_owned());
    }
    names
}

/// The worker of the newest settings.
type Current = Arc<RwLock<Arc<Worker>>>;

fn current(worker: &Current) -> Arc<Worker> {
    worker.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn crew(worker: &Current, local_forge: Option<Arc<LocalForge>>) -> Crew {
    let (for_runs, for_burials, for_gates, for_base, for_cleaning) =
        (worker.clone(), worker.clone(), worker.clone(), worker.clone(), worker.clone());
    Crew {
        run: Arc::new(move |permit, order, control, events| {
            let worker = current(&for_runs);
            Box::pin(async move { worker.run(permit, order, control, events).await })
        }),
        bury: Arc::new(move |order| {
            let worker = current(&for_burials);
            Box::pin(async move {
                let lost = LostRun {
                    run: order.run,
                    key: order.key,
                    branch: order.branch,
                    process: order.process,
                    worktree: order.worktree,
                };
                let buried = worker.bury(&lost).await;
                if let Some(trouble) = &buried.trouble {
                    tracing::warn!(run = %lost.run, trouble, "something of an earlier run stays");
                }
                Buried { salvage: buried.salvage, head: buried.head }
            })
        }),
        gate: Arc::new(move |permit, order, stopped| {
            let worker = current(&for_gates);
            let local_forge = local_forge.clone();
            Box::pin(async move {
                let gates = gates_of(&worker)?;
                let results = gates
                    .run_task(&permit, &order.key, &order.branch, &order.head, stopped)
                    .await
                    .map_err(|error| error.to_string())?;
                if let Some(forge) = local_forge {
                    forge.record_checks(&order.head, results.clone()).await.map_err(|error| error.to_string())?;
                }
                Ok(results)
            })
        }),
        base: Arc::new(move || {
            let worker = current(&for_base);
            Box::pin(async move { base_commit(&worker).await })
        }),
        clean: Arc::new(move |permit, key| {
            let worker = current(&for_cleaning);
            Box::pin(async move {
                let Workplace::Directories(directories) = &worker.workplace else { return Ok(()) };
                directories.remove(&permit, &key).await.map(|_| ()).map_err(|error| error.to_string())
            })
        }),
    }
}

fn gates_of(worker: &Worker) -> Result<Gates, String> {
    let Workplace::Worktrees(workspaces) = &worker.workplace else {
        return Err("gates.task needs workspace.mode: worktree".into());
    };
    Ok(Gates {
        settings: worker.settings.gates.clone(),
        workspaces: workspaces.clone(),
        launcher: worker.launcher.clone(),
        environment: worker.environment(worker.settings.worker.runtime, None),
    })
}

async fn base_commit(worker: &Worker) -> Option<CommitId> {
    let Workplace::Worktrees(workspaces) = &worker.workplace else { return None };
    workspaces.base_commit(&worker.settings.workspace.base).await.ok()
}

/// A runner, ready to go.
pub struct Runner {
    pub handle: Handle,
    driver: Driver,
    first: Event,
    socket: PathBuf,
    /// Whoever asked for one round wants to know that it could not be made.
    once: bool,
}

impl Runner {
    /// Builds everything, settles the past, and starts what watches the outside.
    pub async fn start(
        context: &Context,
        loaded: &Loaded,
        place: &Place,
        until: Until,
        record: Option<&Path>,
    ) -> Result<Self, Failure> {
        let settings = &loaded.settings;
        let workshop = Workshop::open(context, loaded, place)?;
        let worker: Current = Arc::new(RwLock::new(Arc::new(workshop.worker(loaded))));
        // The ledger is made first: the local forge keeps its pull requests in it.
        let ledger = place.open_ledger()?;
        let state = ledger.load()?;
        let (forge, local_forge) = forge(settings, place)?;
        if let Some(forge) = &local_forge {
            let in_force = worker.clone();
            forge.count_only(Box::new(move || current(&in_force).settings.gates.task_names()));
        }
        let crew = crew(&worker, local_forge);
        let policy = Arc::new(policy(loaded, ledger.as_ref())?);
        let first = runtime::recover(&state, &crew).await;
        if let Ok(gates) = gates_of(&current(&worker)) {
            gates.clear_leftovers().await.map_err(Failure::plain)?;
        }
        bury_strays(&workshop, &state, ledger.as_ref(), &crew).await?;

        let kill_file = settings.rollout.kill_switch_file.clone();
        let gatekeeper = Arc::new(Gatekeeper::new(&kill_file));
        let templates = Arc::new(RwLock::new(loaded.prompts.templates().clone()));
        let words = Words::new(renderer(templates.clone()), settings.orchestration.workpad_marker());
        let adapters = Adapters { tracker: workshop.tracker.clone(), forge, crew: crew.clone(), words };
        let (plan, plan_seen) = watch::channel(runtime::plan_of(&policy));
        let (kill_sender, kill_seen) = watch::channel(kill_file);
        let (poll_wanted, wanted) = mpsc::channel(1);
        let secrets = current(&worker).secrets.clone();
        let recorder = record.map(|path| Recorder::open(path, secrets)).transpose().map_err(Failure::plain)?;
        let (driver, handle) = Driver::new(DriverParts {
            state,
            policy,
            ledger,
            adapters,
            gatekeeper,
            plan,
            kill_file: kill_sender,
            poll_wanted,
            until,
            recorder,
        });
        let inbox = handle.inbox.clone();
        tokio::spawn(runtime::watch_kill_file(kill_seen, inbox.clone()));
        tokio::spawn(runtime::poll(PollerParts {
            tracker: workshop.tracker.clone(),
            crew,
            plan: plan_seen,
            wanted,
            inbox: inbox.clone(),
        }));
        runtime::serve(&place.socket, handle.clone())?;
        follow_workflow(context, loaded, place.clone(), workshop, worker, templates, inbox)?;
        Ok(Self { handle, driver, first, socket: place.socket.clone(), once: until == Until::Idle })
    }

    /// Works until told to stop, or until idle.
    pub async fn work(self) -> Result<(), Failure> {
        let result = self.driver.run(self.first).await;
        // Nobody listens any more.
        let _ = std::fs::remove_file(&self.socket);
        match result.map_err(Failure::plain)?.tracker.last_error {
            Some(error) if self.once => Err(Failure::plain(format!("the board could not be read: {error}"))),
            _ => Ok(()),
        }
    }
}

/// The forge, and the same one again where it is the local one, whose checks are our gates' results.
type Forges = (Option<Arc<dyn Forge>>, Option<Arc<LocalForge>>);

fn forge(settings: &Settings, place: &Place) -> Result<Forges, Failure> {
    match forge_kind(settings) {
        ForgeKind::None => Ok((None, None)),
        ForgeKind::Local => {
            let forge = LocalForge::open(&settings.workspace.repo, &place.ledger, WorkspaceConfig::GIT_TIMEOUT)
                .map_err(Failure::plain)?;
            let forge = Arc::new(forge);
            Ok((Some(forge.clone()), Some(forge)))
        }
        ForgeKind::Github => Err(Failure::plain(
            "the remote is on GitHub, and the GitHub forge is not available in this version\n  fix: set pr.forge: local (merge here) or pr.forge: none (leave branches) in WORKFLOW.md",
        )),
    }
}

type Render = Arc<dyn Fn(&str, &serde_json::Value) -> Result<String, String> + Send + Sync>;

fn renderer(templates: Arc<RwLock<Templates>>) -> Render {
    Arc::new(move |name, data| {
        let templates = templates.read().unwrap_or_else(PoisonError::into_inner);
        let text = match name {
            "pr_body" => templates.pr_body(data),
            "workpad" => templates.get(TemplateName::Workpad).render(data),
            kind => templates.comment(kind, data),
        };
        text.map_err(|error| error.to_string())
    })
}

/// Worktrees of runs that the ledger has never heard of: made by a life that ended before it could write that down.
async fn bury_strays(workshop: &Workshop, state: &State, ledger: &dyn Ledger, crew: &Crew) -> Result<(), Failure> {
    let Workplace::Worktrees(workspaces) = &workshop.workplace else { return Ok(()) };
    for listed in workspaces.list().await.map_err(Failure::plain)? {
        let worktree = listed.worktree;
        if state.runs.contains_key(&worktree.run) || ledger.finished_run(&worktree.run)?.is_some() {
            continue;
        }
        tracing::info!(run = %worktree.run, path = %worktree.path.display(), "a worktree of an earlier life is buried");
        let order = BurialOrder {
            run: worktree.run,
            key: worktree.key,
            branch: worktree.branch,
            process: None,
            worktree: Some(worktree.path),
        };
        (crew.bury)(order).await;
    }
    Ok(())
}

/// A changed workflow is put in force between ticks; a broken one is reported and the last good one stays.
fn follow_workflow(
    context: &Context,
    loaded: &Loaded,
    place: Place,
    workshop: Workshop,
    worker: Current,
    templates: Arc<RwLock<Templates>>,
    inbox: mpsc::Sender<Message>,
) -> Result<(), Failure> {
    let at_start = adapters_of(&loaded.settings);
    let (sender, mut changes) = mpsc::unbounded_channel();
    let watch = Watch::start(loaded, context.env.clone(), sender).map_err(Failure::plain)?;
    tokio::spawn(async move {
        // The watch lives as long as somebody listens to it.
        let _watch = watch;
        while let Some(reload) = changes.recv().await {
            let message = match reload {
                Reload::Accepted { loaded, needs_restart } => {
                    match in_force(&loaded, &place, &needs_restart, &at_start) {
                        Ok(policy) => {
                            *templates.write().unwrap_or_else(PoisonError::into_inner) =
                                loaded.prompts.templates().clone();
                            *worker.write().unwrap_or_else(PoisonError::into_inner) =
                                Arc::new(workshop.worker(&loaded));
                            let kill_file = loaded.settings.rollout.kill_switch_file.clone();
                            Message::Reload { policy: Arc::new(policy), kill_file }
                        }
                        Err(error) => Message::ReloadFailed { error: Some(error) },
                    }
                }
                Reload::Rejected(error) => Message::ReloadFailed { error: Some(error.to_string()) },
            };
            if let Message::ReloadFailed { error: Some(error) } = &message {
                tracing::error!(error, "WORKFLOW.md as it is now is not in force; the last good one stays");
            }
            if inbox.send(message).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// What the adapters were built from: another value needs another start.
fn adapters_of(settings: &Settings) -> [(&'static str, String); 4] {
    let workspace = &settings.workspace;
    [
        ("pr.forge", format!("{:?}", forge_kind(settings))),
        ("workspace.mode", workspace.mode.name().to_owned()),
        ("workspace.repo", workspace.repo.display().to_string()),
        ("tracker.provider.dir", format!("{:?}", settings.tracker.provider.dir)),
    ]
}

fn in_force(
    loaded: &Loaded,
    place: &Place,
    needs_restart: &[&str],
    at_start: &[(&'static str, String)],
) -> Result<Policy, String> {
    let now = adapters_of(&loaded.settings);
    let changed = at_start.iter().zip(&now).filter(|(before, now)| before.1 != now.1).map(|(before, _)| before.0);
    let mut needs_restart: Vec<&str> = needs_restart.iter().copied().chain(changed).collect();
    needs_restart.dedup();
    if !needs_restart.is_empty() {
        return Err(format!("a restart is needed for {}", needs_restart.join(", ")));
    }
    if let Some(missing) = loaded.unavailable.first() {
        return Err(missing.to_string());
    }
    let ledger = place.open_ledger().map_err(|_| "the ledger cannot be read".to_owned())?;
    policy(loaded, ledger.as_ref()).map_err(|_| "the ledger cannot be read".to_owned())
}

/// The places that only one runner may work on.
pub fn locked_places(settings: &Settings, place: &Place) -> Vec<PathBuf> {
    let mut places = vec![place.state_dir.clone(), settings.workspace.root.clone()];
    if let (TrackerKind::Tk, Some(dir)) = (settings.tracker.kind, &settings.tracker.provider.dir)
        && dir.is_dir()
    {
        places.push(dir.clone());
    }
    places
}

/// Whether a command line's program can be found.
pub fn program_of(command: &str) -> Option<&str> {
    command.split_whitespace().find(|word| !word.contains('='))
}

pub fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(false)
}
