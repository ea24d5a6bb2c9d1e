//! Removes worktrees: checks the path, salvages uncommitted work, then deletes the tree and its administrative entry.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::WorkspaceError;
use super::path::{self, Occupant};
use super::prepare::{git_dir_of, name_of};
use super::repo::{self, Head};
use super::{Shared, Workspaces, Worktree, record, salvage};
use crate::domain::ids::RunId;
use crate::domain::run::Salvage;

/// Trees are moved here before they are deleted, so that a crash half-way never looks like an agent's work.
const TRASH: &str = ".trash";

/// The result of removing a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Uncommitted work that was saved first.
    pub salvage: Option<Salvage>,
}

impl Workspaces {
    /// Removes the tree and its administrative entry. Uncommitted work is salvaged first; if that fails, everything stays. Succeeds if the
    /// tree is gone already.
    pub async fn remove(&self, worktree: &Worktree) -> Result<Removal, WorkspaceError> {
        let (path, run) = (worktree.path.clone(), worktree.run.clone());
        self.blocking("removing the worktree", move |shared| remove(shared, &path, &run)).await
    }

    /// Leaves the tree for a person to look at, but detaches it from its branch, so that the next run can use the branch.
    pub async fn keep(&self, worktree: &Worktree) -> Result<(), WorkspaceError> {
        let path = worktree.path.clone();
        self.blocking("keeping the worktree", move |shared| {
            path::contained(&shared.root, &path)?;
            let git_dir = git_dir_of(&shared.place, &path);
            let _admin = shared.admin.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match repo::read_head(&shared.place.open()?, &git_dir) {
                Some(Head::Ref { commit: Some(commit), .. }) => repo::detach_head(&git_dir, commit),
                _ => Ok(()),
            }
        })
        .await
    }
}

pub(super) fn remove(shared: &Shared, path: &Path, run: &RunId) -> Result<Removal, WorkspaceError> {
    path::contained(&shared.root, path)?;
    let salvage = salvage::salvage(shared, path, run)?;
    discard(shared, path)?;
    Ok(Removal { salvage })
}

/// Removes a tree without salvaging. Only for a tree that no agent has used.
pub(super) fn discard_unused(shared: &Shared, path: &Path) -> Result<(), WorkspaceError> {
    discard(shared, path)
}

fn discard(shared: &Shared, path: &Path) -> Result<(), WorkspaceError> {
    let occupant = path::contained(&shared.root, path)?;
    let name = name_of(path);
    let trashed = match occupant {
        Occupant::Directory => Some(to_trash(&shared.root, path)?),
        Occupant::Nothing => None,
    };
    failpoint!("removal.moved_aside");
    drop_admin_entry(&git_dir_of(&shared.place, path))?;
    failpoint!("removal.entry_gone");
    record::remove(&shared.root, &name)?;
    failpoint!("removal.record_gone");
    match trashed {
        Some(trashed) => remove_tree(&trashed),
        None => Ok(()),
    }
}

pub(super) fn to_trash(root: &Path, path: &Path) -> Result<PathBuf, WorkspaceError> {
    let trash = root.join(TRASH);
    fs::create_dir_all(&trash).map_err(|source| WorkspaceError::io("make", &trash, source))?;
    // A unique name, because the last removal of the same path may not be finished.
    let place = tempfile::Builder::new()
        .prefix("gone-")
        .tempdir_in(&trash)
        .map_err(|source| WorkspaceError::io("make a directory in", &trash, source))?
        .keep();
    let target = place.join(name_of(path));
    fs::rename(path, &target).map_err(|source| WorkspaceError::io("move aside", path, source))?;
    Ok(place)
}

/// Finishes removals that a crash interrupted.
pub(super) fn empty_trash(root: &Path) {
    let trash = root.join(TRASH);
    if trash.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        let _ = remove_tree(&trash);
    }
}

/// Removes the entry of a linked worktree. Refuses anything but a real directory in `worktrees/`.
pub(super) fn drop_admin_entry(git_dir: &Path) -> Result<(), WorkspaceError> {
    let in_worktrees = git_dir.parent().and_then(Path::file_name).is_some_and(|name| name == "worktrees");
    match git_dir.symlink_metadata() {
        Ok(found) if found.is_dir() && in_worktrees => remove_tree(git_dir),
        Ok(_) => Err(WorkspaceError::Outside {
            path: git_dir.to_owned(),
            root: git_dir.parent().unwrap_or(git_dir).to_owned(),
            because: "it is not a worktree's entry".to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(WorkspaceError::io("look at", git_dir, source)),
    }
}

/// Removes a tree without following links. Read-only directories are made writable first.
pub(super) fn remove_tree(path: &Path) -> Result<(), WorkspaceError> {
    let first = match fs::remove_dir_all(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => error,
    };
    if first.kind() == io::ErrorKind::PermissionDenied {
        make_writable(path);
    }
    fs::remove_dir_all(path).map_err(|source| WorkspaceError::io("remove", path, source))
}

fn make_writable(dir: &Path) {
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}
