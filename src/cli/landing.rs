//! Where finished work is merged: checked before anybody is paid for work that could not land.

use crate::config::Settings;
use crate::config::policy::ForgeKind;
use crate::config::workspace::WorkspaceMode;
use crate::workspace::Workspaces;

use super::Failure;
use super::block_on;
use crate::runtime::assembly;

pub const FIX: &str = "make the branch, or set pr.base_branch";

/// Why nothing could be merged here, if so. New branches may start elsewhere than where they are merged.
pub fn trouble(settings: &Settings, workspaces: &Workspaces) -> Option<String> {
    if assembly::forge_kind(settings) != ForgeKind::Local {
        return None;
    }
    let base = &settings.pr.base_branch;
    let found = block_on(async { workspaces.base_commit(base).await.map_err(Failure::plain) });
    found.err().map(|failure| failure.text())
}

/// `run` does not start what `doctor` calls a problem.
pub fn refuse_to_start(settings: &Settings) -> Result<(), Failure> {
    if settings.workspace.mode == WorkspaceMode::Directory {
        return Ok(());
    }
    match trouble(settings, &assembly::workspaces(settings)?) {
        Some(trouble) => Err(Failure::plain(format!("{trouble}\n  fix: {FIX}"))),
        None => Ok(()),
    }
}
