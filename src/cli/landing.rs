//! Checks the branch that finished work is merged into, before money is spent on work that could not be merged.

use crate::config::Settings;
use crate::config::policy::ForgeKind;
use crate::config::workspace::WorkspaceMode;
use crate::workspace::Workspaces;

use super::Failure;
use super::block_on;
use crate::runtime::assembly;

pub const FIX: &str = "make the branch, or set pr.base_branch";

/// Says why nothing could be merged in this repository; `None` if the base branch is there, or another forge merges. New branches may
/// start from another branch than the one they are merged into, so checking the former is not enough.
pub fn trouble(settings: &Settings, workspaces: &Workspaces) -> Option<String> {
    if assembly::forge_kind(settings) != ForgeKind::Local {
        return None;
    }
    let base = &settings.pr.base_branch;
    let found = block_on(async { workspaces.base_commit(base).await.map_err(Failure::plain) });
    found.err().map(|failure| failure.text())
}

/// Returns an error where `doctor` would report a problem with the base branch, so that `run` does not start.
pub fn refuse_to_start(settings: &Settings) -> Result<(), Failure> {
    if settings.workspace.mode == WorkspaceMode::Directory {
        return Ok(());
    }
    match trouble(settings, &assembly::workspaces(settings)?) {
        Some(trouble) => Err(Failure::plain(format!("{trouble}\n  fix: {FIX}"))),
        None => Ok(()),
    }
}
