//! What all runs of one life share, and the worker that a workflow asks for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Failure, forge_kind, tracker, workspaces};
use crate::cli::place::{Context, Place};
use crate::config::Settings;
use crate::config::policy::ForgeKind;
use crate::config::tracker::TrackerKind;
use crate::config::worker::Runtime;
use crate::config::workspace::WorkspaceMode;
use crate::domain::ids::CommitId;
use crate::launcher::environment::{Secrets, install_tk};
use crate::launcher::{Launcher, LocalLauncher};
use crate::tracker::Tracker;
use crate::worker::{PromptRequest, Worker, Workplace, desk};
use crate::workflow::prompt::{Previous, PromptInput, Prompts, RunFacts};
use crate::workflow::{Loaded, ValueSource};
use crate::workspace::directory::Directories;

/// Everything that is shared by the runs of one life.
pub struct Workshop {
    place: Place,
    context_env: Arc<BTreeMap<String, String>>,
    pub tracker: Arc<dyn Tracker>,
    launcher: Arc<dyn Launcher>,
    pub workplace: Workplace,
    tools: PathBuf,
    sockets: PathBuf,
}

impl Workshop {
    pub fn open(context: &Context, loaded: &Loaded, place: &Place) -> Result<Self, Failure> {
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
    pub fn worker(&self, loaded: &Loaded) -> Worker {
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
        undelivered: request.words,
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
