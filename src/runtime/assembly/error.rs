//! Why a runner could not be put together.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::super::control::ControlError;
use super::super::record::RecordError;
use crate::forge::ForgeError;
use crate::gates::GateError;
use crate::launcher::LaunchError;
use crate::ledger::LedgerError;
use crate::tracker::TrackerError;
use crate::worker::desk::DeskError;
use crate::workflow::watch::WatchError;
use crate::workspace::WorkspaceError;

/// Why a runner could not be put together. Errors of a part are passed through with that part's own message.
#[derive(Debug, Error)]
pub enum AssemblyError {
    #[error("tracker.kind {0} is not available in this version")]
    NoTracker(&'static str),
    #[error(
        "the forge is GitHub, and there is no access to it\n  fix: set $GITHUB_TOKEN, or the variable that the file names in its place (pr.provider.token or tracker.provider.token, or pr.provider.app_id with private_key and installation_id), or choose pr.forge: local or none"
    )]
    NoGithubAccess,
    #[error(
        "the forge is GitHub, and neither the remote nor the file says which repository\n  fix: set pr.repo_slug: owner/name"
    )]
    NoSlug,
    #[error(
        "workspace.repo is the address {0}, and pull requests would be merged in a clone that nobody sees\n  fix: set pr.forge: github (with pr.repo_slug), or pr.forge: none"
    )]
    NothingToMergeInto(String),
    #[error("{0}")]
    Github(String),
    #[error("this program's own file cannot be found: {0}")]
    OwnProgram(io::Error),
    #[error(transparent)]
    Tracker(#[from] TrackerError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Launcher(#[from] LaunchError),
    #[error("`tk` cannot be put into {}: {source}\n  fix: make that folder writable", .path.display())]
    Tools { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Desk(#[from] DeskError),
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Gates(#[from] GateError),
    #[error(transparent)]
    Recording(#[from] RecordError),
    #[error(transparent)]
    Socket(#[from] ControlError),
    #[error(transparent)]
    Watch(#[from] WatchError),
}
