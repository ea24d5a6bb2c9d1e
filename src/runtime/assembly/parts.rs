//! What all runs of one runner process share, and how a worker is made from it for a workflow.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;
use tokio::sync::Semaphore;

use super::super::folder::RunnerFolder;
use super::super::lanes::Lanes;
use super::super::ticket_source::TrackerTickets;
use super::AssemblyError;
use super::adapters::{forge_kind, tracker, workspaces};
use super::github::host;
use crate::config::Settings;
use crate::config::policy::ForgeKind;
use crate::config::tracker::TrackerKind;
use crate::config::workspace::WorkspaceMode;
use crate::launcher::environment::{Secrets, install_tools};
use crate::launcher::login::LoginEnvironment;
use crate::launcher::{Launcher, LocalLauncher, gh_token};
use crate::tracker::Tracker;
use crate::worker::{Worker, Workplace, desk, preparation_lane};
use crate::workflow::{Env, Loaded, ValueSource};
use crate::workspace::directory::Directories;

/// Everything that workers are made from besides the settings, made once per runner process.
pub struct WorkerParts {
    pub tracker: Arc<dyn Tracker>,
    pub workplace: Workplace,
    launcher: Arc<dyn Launcher>,
    login: LoginEnvironment,
    lanes: Arc<Lanes>,
    preparing: Arc<Semaphore>,
    state_dir: PathBuf,
    tools: PathBuf,
    sockets: PathBuf,
}

impl WorkerParts {
    pub fn open(env: &Env, loaded: &Loaded, folder: &RunnerFolder, lanes: Arc<Lanes>) -> Result<Self, AssemblyError> {
        let settings = &loaded.settings;
        let workplace = match settings.workspace.mode {
            WorkspaceMode::Worktree => Workplace::Worktrees(workspaces(settings)?),
            WorkspaceMode::Directory => Workplace::Directories(Directories::open(&settings.workspace.root)?),
        };
        let tools = folder.state_dir.join("tools");
        let binary = std::env::current_exe().map_err(AssemblyError::OwnProgram)?;
        let launcher = LocalLauncher::start_shielded(&folder.state_dir.join("scratch"), &folder.shield(&binary))?;
        install_tools(&tools, &binary).map_err(|source| AssemblyError::Tools { path: tools.clone(), source })?;
        let runtime_dir = env.vars().get("XDG_RUNTIME_DIR").map(PathBuf::from);
        Ok(Self {
            tracker: tracker(settings)?,
            workplace,
            launcher: Arc::new(launcher),
            login: LoginEnvironment::of(env.vars()),
            lanes,
            preparing: preparation_lane(),
            state_dir: folder.state_dir.clone(),
            tools,
            sockets: desk::socket_directory(runtime_dir.as_deref())?,
        })
    }

    /// Returns a worker for these settings, with the login environment as it is now. A reload makes a new worker; runs under way keep
    /// theirs.
    pub async fn worker(&mut self, loaded: &Loaded) -> Worker {
        let from_gh = match gh_host(&loaded.settings) {
            Some(host) => tokio::task::spawn_blocking(move || gh_token(&host).ok()).await.ok().flatten(),
            None => None,
        };
        let secrets = secrets_with(loaded, from_gh);
        self.login.read(&secrets).await;
        Worker {
            settings: Arc::new(loaded.settings.clone()),
            workplace: self.workplace.clone(),
            launcher: self.launcher.clone(),
            prompts: loaded.prompts.clone(),
            tickets: Arc::new(TrackerTickets::new(self.tracker.clone(), self.lanes.tracker.clone())),
            preparing: self.preparing.clone(),
            environment: self.login.get(),
            secrets: Arc::new(secrets),
            state_dir: self.state_dir.clone(),
            tools: self.tools.clone(),
            sockets: self.sockets.clone(),
        }
    }
}

/// Returns the secrets that must never reach a worker, a gate or a hook: names of variables and values. It may wait for `gh`.
pub fn secrets(loaded: &Loaded) -> Secrets {
    // If `gh` gives no token to the runner, it gives none to a worker either.
    let from_gh = gh_host(&loaded.settings).and_then(|host| gh_token(&host).ok());
    secrets_with(loaded, from_gh)
}

/// Returns the host that `gh` is asked about for the board's token. `None` if it is not asked.
fn gh_host(settings: &Settings) -> Option<String> {
    let (tracker, provider) = (&settings.tracker, &settings.tracker.provider);
    (tracker.kind == TrackerKind::Github && provider.asks_gh()).then(|| host(provider))
}

fn secrets_with(loaded: &Loaded, from_gh: Option<SecretString>) -> Secrets {
    let mut values = loaded.settings.secrets();
    values.extend(from_gh);
    // Only the value is withheld, not the variable's name: the user's own hooks keep a token of theirs.
    if forge_kind(&loaded.settings) == ForgeKind::Github {
        values.extend(loaded.settings.pr.provider.token.clone());
    }
    Secrets { names: secret_names(loaded), values }
}

/// Returns the variables that hold a secret of a tracker, forge or server: those that the workflow file refers to, and those that the
/// services' own tools read.
fn secret_names(loaded: &Loaded) -> Vec<String> {
    let settings = &loaded.settings;
    let holds_secret = |path: &str| {
        let key = path.rsplit('.').next().unwrap_or(path);
        let is_address = path.starts_with("observability.notify") && key == "url";
        let is_named_so = matches!(key, "token" | "api_key" | "private_key" | "secret");
        is_address || path.starts_with("server.tokens.") || (!path.starts_with("worker.env.") && is_named_so)
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
