//! `workspace.mode: directory`: one lasting directory per ticket, filled by `after_create`, reused across runs.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository, StatusOptions};

use super::error::WorkspaceError;
use super::path::{self, Occupant};
use super::remove;
use crate::domain::ids::{CommitId, TicketKey};
use crate::domain::permit::Permit;

/// How deep repositories are looked for. Deeper ones keep the directory too: they were not looked at.
const DEEPEST: usize = 32;

/// The directories under one root.
#[derive(Debug, Clone)]
pub struct Directories {
    root: PathBuf,
}

/// A ticket's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryWorkspace {
    pub path: PathBuf,
    /// It is new: `after_create` has to run.
    pub created: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryRemoval {
    Removed,
    /// There was none.
    Absent,
    /// It holds work that is nowhere else.
    Kept {
        because: String,
    },
}

impl DirectoryWorkspace {
    /// Where the repository in it stands, if it holds one.
    pub fn head(&self) -> Option<CommitId> {
        let head = Repository::open(&self.path).ok()?.head().ok()?.peel_to_commit().ok()?.id();
        Some(CommitId::new(head.to_string()))
    }
}

impl Directories {
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let root = path::open_root(root)?;
        remove::empty_trash(&root);
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The same path for the same key, always.
    pub fn path_of(&self, key: &TicketKey) -> PathBuf {
        self.root.join(path::sanitise(key.as_str()))
    }

    /// Makes the ticket's directory, or finds it. After a failed `after_create` call [`Directories::discard_new`].
    pub async fn prepare(&self, _permit: &Permit, key: &TicketKey) -> Result<DirectoryWorkspace, WorkspaceError> {
        let path = self.path_of(key);
        if path::contained(&self.root, &path)? == Occupant::Directory {
            return Ok(DirectoryWorkspace { path, created: false });
        }
        fs::create_dir(&path).map_err(|source| WorkspaceError::io("make", &path, source))?;
        Ok(DirectoryWorkspace { path, created: true })
    }

    /// Takes back a directory whose `after_create` failed, so that the next run tries it again.
    pub async fn discard_new(&self, workspace: &DirectoryWorkspace) -> Result<(), WorkspaceError> {
        if !workspace.created {
            return Ok(());
        }
        let (root, path) = (self.root.clone(), workspace.path.clone());
        blocking(move || discard(&root, &path)).await
    }

    /// Removes the ticket's directory unless it holds uncommitted or unpushed work.
    pub async fn remove(&self, _permit: &Permit, key: &TicketKey) -> Result<DirectoryRemoval, WorkspaceError> {
        let (root, path) = (self.root.clone(), self.path_of(key));
        blocking(move || {
            if path::contained(&root, &path)? == Occupant::Nothing {
                return Ok(DirectoryRemoval::Absent);
            }
            if let Some(because) = unsaved_work(&path, DEEPEST) {
                return Ok(DirectoryRemoval::Kept { because });
            }
            discard(&root, &path)?;
            Ok(DirectoryRemoval::Removed)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(WorkspaceError::Interrupted { doing: "removing the workspace" }),
    }
}

fn discard(root: &Path, path: &Path) -> Result<(), WorkspaceError> {
    path::contained(root, path)?;
    let trashed = remove::to_trash(root, path)?;
    remove::remove_tree(&trashed)
}

/// Why the directory must stay, if it must. Anything that cannot be told keeps it.
fn unsaved_work(dir: &Path, depth: usize) -> Option<String> {
    if depth == 0 {
        return Some(format!("{} is too deep to be looked at", dir.display()));
    }
    let dot_git = dir.join(".git");
    if dot_git.symlink_metadata().is_ok() {
        match unsaved_in(dir, &dot_git) {
            Ok(None) => {}
            Ok(Some(because)) => return Some(because),
            Err(error) => return Some(format!("git cannot read {}: {}", dir.display(), error.message())),
        }
    }
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return Some(format!("{} cannot be read: {error}", dir.display())),
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git")
        .find_map(|entry| unsaved_work(&entry.path(), depth - 1))
}

fn unsaved_in(dir: &Path, dot_git: &Path) -> Result<Option<String>, git2::Error> {
    // The work tree is the directory itself, whatever the repository's own configuration says.
    let repo = if dot_git.is_dir() { Repository::open_bare(dot_git)? } else { Repository::open(dir)? };
    repo.set_workdir(dir, false)?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).include_ignored(false);
    if let Some(entry) = repo.statuses(Some(&mut options))?.iter().next() {
        let path = String::from_utf8_lossy(entry.path_bytes()).into_owned();
        return Ok(Some(format!("{} has uncommitted work ({path})", dir.display())));
    }
    let pushed = tips(&repo, "refs/remotes/*")?;
    let mut own = tips(&repo, "refs/heads/*")?;
    own.extend(tips(&repo, "refs/stash")?);
    own.extend(repo.head().ok().and_then(|head| head.target()).map(|head| ("HEAD".to_owned(), head)));
    for (name, tip) in own {
        let mut walk = repo.revwalk()?;
        walk.push(tip)?;
        for (_, remote) in &pushed {
            walk.hide(*remote)?;
        }
        if walk.next().is_some() {
            let name = name.strip_prefix("refs/heads/").unwrap_or(&name);
            return Ok(Some(format!("{} has commits on `{name}` that are not pushed", dir.display())));
        }
    }
    Ok(None)
}

fn tips(repo: &Repository, glob: &str) -> Result<Vec<(String, Oid)>, git2::Error> {
    let found = repo.references_glob(glob)?.flatten();
    Ok(found
        .filter_map(|reference| Some((reference.name().ok()?.to_owned(), reference.peel_to_commit().ok()?.id())))
        .collect())
}
