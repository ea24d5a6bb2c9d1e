//! Builds the adapters (tracker, forge, workspaces) and the policy that the settings describe.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::folder::RunnerFolder;
use super::super::now;
use super::AssemblyError;
use super::github::{github_access, github_board};
use super::linear::linear_board;
use crate::config::Settings;
use crate::config::policy::{ForgeKind, Policy};
use crate::config::pr::ForgeProvider;
use crate::config::tracker::{Provider, TrackerKind};
use crate::config::workspace::WorkspaceMode;
use crate::domain::time::{LocalDays, Timestamp};
use crate::forge::Forge;
use crate::forge::github::{GithubForge, GithubSettings};
use crate::forge::local::LocalForge;
use crate::github::Github;
use crate::ledger::{LedgerError, LedgerReader};
use crate::tracker::Tracker;
use crate::tracker::tk::TkTracker;
use crate::workflow::Loaded;
use crate::workspace::commits::Commits;
use crate::workspace::remote::{Remote, RemoteConfig};
use crate::workspace::{BaseSide, NewClone, WorkspaceConfig, Workspaces};

/// Returns the kind of forge that the settings select. Where `pr.forge` is not set, the address of the repository's remote decides.
pub fn forge_kind(settings: &Settings) -> ForgeKind {
    // In `directory` mode the hooks decide what a directory contains, so there is no branch of Dirigent's to open a pull request from.
    if settings.workspace.mode == WorkspaceMode::Directory {
        return ForgeKind::None;
    }
    settings.pr.resolve_forge(origin(settings).as_deref())
}

/// Returns the address that the repository was cloned from. `None` if it has no remote.
pub(super) fn origin(settings: &Settings) -> Option<String> {
    let workspace = &settings.workspace;
    workspace.clone_of.clone().or_else(|| Workspaces::remote_url(&workspace.repo))
}

/// Clones the repository if `workspace.repo` is an address and there is no clone yet. Does nothing for a local repository.
pub async fn clone_repository(settings: &Settings) -> Result<(), AssemblyError> {
    let workspace = &settings.workspace;
    let Some(url) = workspace.clone_of.as_deref().filter(|_| workspace.mode == WorkspaceMode::Worktree) else {
        return Ok(());
    };
    let forge = forge_kind(settings);
    if forge == ForgeKind::Local {
        return Err(AssemblyError::NothingToMergeInto(url.to_owned()));
    }
    let Some(clone) = NewClone::begin(&workspace.repo, url)? else { return Ok(()) };
    let remote = match forge {
        ForgeKind::Github => Some(remote_of(settings, &github(&settings.pr.provider)?, clone.folder())?),
        ForgeKind::Local | ForgeKind::None => None,
    };
    Ok(clone.fill(&workspace.base, remote.as_ref(), WorkspaceConfig::GIT_TIMEOUT).await?)
}

/// Returns what worktrees are made from, apart from the access to the remote.
pub(super) fn workspace_config(settings: &Settings) -> WorkspaceConfig {
    let mut config =
        WorkspaceConfig::new(&settings.workspace.repo, &settings.workspace.root, settings.workspace.base.clone());
    config.branch_prefix.clone_from(&settings.workspace.branch_prefix);
    config.commits = Commits::new(&settings.workspace.commit);
    config.base_side = match forge_kind(settings) {
        ForgeKind::Local => BaseSide::Local,
        ForgeKind::Github | ForgeKind::None => BaseSide::Remote,
    };
    config
}

pub fn workspaces(settings: &Settings) -> Result<Workspaces, AssemblyError> {
    let mut config = workspace_config(settings);
    // Without access there is no remote here. That is enough to read worktrees; where access is needed, opening the forge reports the
    // error.
    config.remote = match forge_kind(settings) {
        ForgeKind::Github => github(&settings.pr.provider).and_then(|github| remote(settings, &github)).ok(),
        ForgeKind::Local | ForgeKind::None => None,
    };
    Ok(Workspaces::open(config)?)
}

/// Returns a GitHub client with the forge's access, which is configured with the same keys as a board's access.
fn github(access: &ForgeProvider) -> Result<Github, AssemblyError> {
    if access.token.is_none() && access.app_id.is_none() {
        return Err(AssemblyError::NoGithubAccess);
    }
    let provider = Provider {
        token: access.token.clone(),
        api_url: access.api_url.clone(),
        app_id: access.app_id,
        private_key: access.private_key.clone(),
        installation_id: access.installation_id,
        ..Provider::default()
    };
    Github::in_step(github_access(&provider)?).map_err(|error| AssemblyError::Github(error.to_string()))
}

fn slug(settings: &Settings) -> Result<String, AssemblyError> {
    settings.pr.slug(origin(settings).as_deref()).ok_or(AssemblyError::NoSlug)
}

/// Returns `owner/name` of the repository. `None` if the forge is not GitHub or the repository is not known.
pub fn github_repository(settings: &Settings) -> Option<String> {
    (forge_kind(settings) == ForgeKind::Github).then(|| slug(settings).ok()).flatten()
}

/// Opens the GitHub repository as a git remote. Its address is built from the API's address; the remotes of the clone are not used.
fn remote(settings: &Settings, github: &Github) -> Result<Remote, AssemblyError> {
    remote_of(settings, github, &settings.workspace.repo)
}

fn remote_of(settings: &Settings, github: &Github, repo: &Path) -> Result<Remote, AssemblyError> {
    let config = RemoteConfig {
        repo: repo.to_owned(),
        url: format!("{}/{}.git", settings.pr.git_address(), slug(settings)?),
        askpass: std::env::current_exe().map_err(AssemblyError::OwnProgram)?,
        timeout: WorkspaceConfig::GIT_TIMEOUT,
    };
    Ok(Remote::open(config, Arc::new(github.clone()))?)
}

pub fn github_forge(settings: &Settings) -> Result<GithubForge, AssemblyError> {
    let github = github(&settings.pr.provider)?;
    let remote = remote(settings, &github)?;
    Ok(GithubForge::new(github, github_settings(settings)?, remote))
}

/// Returns what the forge on GitHub is made from, apart from the access to it.
pub(super) fn github_settings(settings: &Settings) -> Result<GithubSettings, AssemblyError> {
    let board = &settings.tracker;
    let own_account = board.kind == TrackerKind::Github && !board.provider.is_shared_account();
    Ok(GithubSettings { slug: slug(settings)?, own_account, reuse: settings.pr.reuse_branch_pr })
}

pub fn tracker(settings: &Settings) -> Result<Arc<dyn Tracker>, AssemblyError> {
    match settings.tracker.kind {
        TrackerKind::Tk => {
            let dir = settings.tracker.provider.dir.clone().unwrap_or_else(|| settings.workspace.home.join(".tickets"));
            Ok(Arc::new(TkTracker::new(dir)))
        }
        TrackerKind::Github => Ok(Arc::new(github_board(settings)?)),
        TrackerKind::Linear => Ok(Arc::new(linear_board(settings)?)),
        kind @ TrackerKind::Memory => Err(AssemblyError::NoTracker(kind.name())),
    }
}

/// The forge that is in use.
pub(super) enum ForgeInUse {
    /// `pr.forge: none`.
    None,
    /// The forge inside the local repository. It reports the results of Dirigent's gates as its checks, so those results are recorded with
    /// it.
    Local(Arc<LocalForge>),
    Github(Arc<GithubForge>),
}

impl ForgeInUse {
    pub fn open(settings: &Settings, folder: &RunnerFolder) -> Result<Self, AssemblyError> {
        match forge_kind(settings) {
            ForgeKind::None => Ok(Self::None),
            ForgeKind::Local => {
                let forge = LocalForge::open(&settings.workspace.repo, &folder.ledger, WorkspaceConfig::GIT_TIMEOUT)?;
                forge.commit_as(Commits::new(&settings.workspace.commit));
                Ok(Self::Local(Arc::new(forge)))
            }
            ForgeKind::Github => Ok(Self::Github(Arc::new(github_forge(settings)?))),
        }
    }

    pub fn as_forge(&self) -> Option<Arc<dyn Forge>> {
        match self {
            Self::None => None,
            Self::Local(forge) => Some(forge.clone()),
            Self::Github(forge) => Some(forge.clone()),
        }
    }

    pub fn local(&self) -> Option<Arc<LocalForge>> {
        match self {
            Self::None | Self::Github(_) => None,
            Self::Local(forge) => Some(forge.clone()),
        }
    }
}

/// Returns the policy for the engine: with the forge that is really used, and with the result of the preflight that `doctor` recorded.
pub fn policy(loaded: &Loaded, ledger: &dyn LedgerReader) -> Result<Policy, LedgerError> {
    let checked = ledger.has_preflight(&loaded.hash)?;
    Ok(policy_here(&loaded.settings, &loaded.hash, !checked))
}

/// Returns the policy as it is on this machine: with the forge that is really used, and with local days. For views of tickets that wait for
/// no preflight, `preflight_missing` is false.
pub fn policy_here(settings: &Settings, content_hash: &str, preflight_missing: bool) -> Policy {
    let mut policy = settings.policy(content_hash, preflight_missing);
    policy.pr.forge = forge_kind(settings);
    policy.budget.days = local_days(now());
    if policy.pr.forge == ForgeKind::Local {
        // The checks of the local forge are Dirigent's own gates: no check will appear later by itself.
        policy.merge.checks_grace = Duration::ZERO;
    }
    policy
}

/// Returns the offsets of the machine's time zone from `now` on, for about ten years.
fn local_days(now: Timestamp) -> LocalDays {
    /// Ten years of a zone that changes its offset twice a year.
    const CHANGES: usize = 20;
    let Ok(at) = jiff::Timestamp::from_millisecond(now.0) else { return LocalDays::default() };
    let zone = jiff::tz::TimeZone::system();
    let millis = |offset: jiff::tz::Offset| i64::from(offset.seconds()) * 1000;
    let holds = (now, millis(zone.to_offset(at)));
    let changes = zone.following(at).take(CHANGES);
    let changes = changes.map(|change| (Timestamp(change.timestamp().as_millisecond()), millis(change.offset())));
    LocalDays::new([holds].into_iter().chain(changes).collect())
}

/// Returns the directories that only one runner at a time may use.
pub fn locked_places(settings: &Settings, folder: &RunnerFolder) -> Vec<PathBuf> {
    let mut places = vec![folder.state_dir.clone(), settings.workspace.root.clone()];
    if let (TrackerKind::Tk, Some(dir)) = (settings.tracker.kind, &settings.tracker.provider.dir)
        && dir.is_dir()
    {
        places.push(dir.clone());
    }
    places
}
