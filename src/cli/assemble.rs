//! Builds the adapters that a workflow asks for.

mod crew;
mod reload;
mod runner;
mod workshop;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::Settings;
use crate::config::policy::{ForgeKind, Policy};
use crate::config::tracker::TrackerKind;
use crate::config::workspace::WorkspaceMode;
use crate::ledger::LedgerReader;
use crate::tracker::Tracker;
use crate::tracker::tk::TkTracker;
use crate::workflow::Loaded;
use crate::workspace::{BaseSide, WorkspaceConfig, Workspaces};

use super::Failure;
use super::place::Place;

pub use runner::Runner;

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
pub fn policy(loaded: &Loaded, ledger: &dyn LedgerReader) -> Result<Policy, Failure> {
    let checked = ledger.has_preflight(&loaded.hash)?;
    let mut policy = loaded.settings.policy(&loaded.hash, !checked);
    policy.pr.forge = forge_kind(&loaded.settings);
    if policy.pr.forge == ForgeKind::Local {
        // The local forge's checks are our own gates: none will turn up later by themselves.
        policy.merge.checks_grace = Duration::ZERO;
    }
    Ok(policy)
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
