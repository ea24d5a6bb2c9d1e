//! `workspace.mode: directory`: one lasting directory per ticket, filled by the hook `after_create` and reused across runs.
//!
//! A mark file beside the directory tells whether `after_create` has succeeded. A half-filled directory is deleted and filled anew. A
//! directory without a mark was made by another tool and is used as it is.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use git2::{Oid, Repository};
use tokio::sync::OwnedMutexGuard;

use super::error::WorkspaceError;
use super::git::Git;
use super::path::{self, Occupant};
use super::prepare::name_of;
use super::remove;
use super::unsaved::{Unsaved, history, unsaved_work};
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::permit::Permit;

/// Time limit for listing the branches of a remote.
const ASK_REMOTE: Duration = Duration::from_secs(30);
/// The folder of the marks. The name of a ticket's directory never begins with a dot.
const MARKS: &str = ".marks";
/// The folder of the lists, by directory, of runs whose processes may still be at work in it.
const OCCUPIED: &str = ".occupied";
const FILLING: &str = "filling\n";
const FILLED: &str = "filled\n";

/// The directories under one root.
#[derive(Debug, Clone)]
pub struct Directories {
    root: PathBuf,
    /// Locks by directory name. A run that works in a directory, or a call that removes it, holds its lock.
    locks: Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

/// A ticket's directory. It stays locked for this caller until this is dropped.
#[derive(Debug, Clone)]
pub struct DirectoryWorkspace {
    pub path: PathBuf,
    /// Whether it is new: `after_create` has to run, and then [`Directories::filled`] has to be called.
    pub created: bool,
    _lock: Arc<OwnedMutexGuard<()>>,
}

/// The state of the repository in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectoryStanding {
    pub head: Option<CommitId>,
    /// The default branch of its remote, as far as the repository knows it.
    pub base: Option<CommitId>,
    /// Number of commits beyond the base, or beyond the commit that the run began at if the base is unknown.
    pub commits_ahead: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryRemoval {
    Removed,
    /// There was no directory.
    Absent,
    /// It contains work that exists nowhere else, or a run uses it.
    Kept {
        because: String,
    },
}

impl DirectoryWorkspace {
    /// Returns the head of the repository in the directory. `None` if there is no repository or no commit.
    pub fn head(&self) -> Option<CommitId> {
        let head = Repository::open(&self.path).ok()?.head().ok()?.peel_to_commit().ok()?.id();
        Some(CommitId::new(head.to_string()))
    }

    /// Returns the head compared with its base, or with `before` if the base is unknown.
    pub fn standing(&self, before: Option<&CommitId>) -> DirectoryStanding {
        let Some(head) = self.head() else { return DirectoryStanding::default() };
        let counted = Repository::open(&self.path).map(|repo| {
            let base = repo.find_reference("refs/remotes/origin/HEAD").and_then(|base| base.peel_to_commit());
            let base = base.ok().map(|base| base.id());
            let from = base.or_else(|| before.and_then(|before| Oid::from_str(before.as_str()).ok()));
            // With nothing to compare with, no commit counts as new.
            let ahead = from.map_or(0, |from| {
                let before = history(&repo, &[from]);
                Oid::from_str(head.as_str()).map_or(0, |head| history(&repo, &[head]).difference(&before).count())
            });
            (base, ahead)
        });
        let (base, ahead) = counted.unwrap_or_default();
        DirectoryStanding {
            head: Some(head),
            base: base.map(|base| CommitId::new(base.to_string())),
            commits_ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
        }
    }
}

impl Directories {
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let root = path::open_root(root)?;
        remove::empty_trash(&root);
        Ok(Self { root, locks: Arc::default() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of the ticket's directory. It is always the same for the same key.
    pub fn path_of(&self, key: &TicketKey) -> PathBuf {
        self.root.join(path::sanitise(key.as_str()))
    }

    /// Finds or makes the ticket's directory. One whose `after_create` never succeeded is deleted and made anew, empty.
    pub async fn prepare(&self, _permit: &Permit, key: &TicketKey) -> Result<DirectoryWorkspace, WorkspaceError> {
        let path = self.path_of(key);
        let lock = Arc::new(self.lock_of(&path).lock_owned().await);
        if path::contained(&self.root, &path)? == Occupant::Directory {
            if !self.is_half_filled(&path) {
                return Ok(DirectoryWorkspace { path, created: false, _lock: lock });
            }
            let (root, half) = (self.root.clone(), path.clone());
            blocking(move || discard(&root, &half)).await?;
        }
        // The mark comes first, because a directory without a mark counts as another tool's.
        self.mark(&path, FILLING)?;
        fs::create_dir(&path).map_err(|source| WorkspaceError::io("make", &path, source))?;
        Ok(DirectoryWorkspace { path, created: true, _lock: lock })
    }

    /// Records that `after_create` has succeeded: from now on the directory is reused.
    pub fn filled(&self, workspace: &DirectoryWorkspace) -> Result<(), WorkspaceError> {
        self.mark(&workspace.path, FILLED)
    }

    /// Deletes a directory whose `after_create` did not succeed. Returns whether it was such a directory.
    pub async fn discard_half_filled(&self, workspace: &DirectoryWorkspace) -> Result<bool, WorkspaceError> {
        if !self.is_half_filled(&workspace.path) {
            return Ok(false);
        }
        let (root, path) = (self.root.clone(), workspace.path.clone());
        blocking(move || discard(&root, &path)).await?;
        Ok(true)
    }

    /// Returns the ticket's directory, locked for its removal. `None` if there is none. The inner error says why it has to stay.
    pub async fn leave(&self, key: &TicketKey) -> Result<Result<Option<DirectoryWorkspace>, String>, WorkspaceError> {
        let path = self.path_of(key);
        let Ok(lock) = self.lock_of(&path).try_lock_owned() else {
            return Ok(Err(format!("a run works in {}", path.display())));
        };
        if path::contained(&self.root, &path)? == Occupant::Nothing {
            self.forget(&path);
            return Ok(Ok(None));
        }
        let workspace = DirectoryWorkspace { path, created: false, _lock: Arc::new(lock) };
        Ok(match self.unsaved(&workspace).await? {
            None => Ok(Some(workspace)),
            Some(because) => Err(because),
        })
    }

    /// Returns why the directory must stay, or `None`. A clone of one branch does not record what was pushed to other branches, so its
    /// remotes are queried in that case.
    async fn unsaved(&self, workspace: &DirectoryWorkspace) -> Result<Option<String>, WorkspaceError> {
        // A directory that `after_create` only began to fill contains no work.
        if self.is_half_filled(&workspace.path) {
            return Ok(None);
        }
        let look = |pushed: Vec<Oid>| {
            let path = workspace.path.clone();
            blocking(move || Ok(unsaved_work(&path, &pushed)))
        };
        match look(Vec::new()).await? {
            Some(Unsaved { because, remotes }) if !remotes.is_empty() => {
                let pushed = self.heads_of(&remotes).await;
                Ok(if pushed.is_empty() { Some(because) } else { look(pushed).await?.map(|still| still.because) })
            }
            found => Ok(found.map(|unsaved| unsaved.because)),
        }
    }

    /// Returns the heads of all refs of these remotes; those that cannot be reached are skipped. Git runs outside the directory, whose
    /// configuration an agent may have written.
    async fn heads_of(&self, remotes: &[String]) -> Vec<Oid> {
        let git = Git::new(ASK_REMOTE);
        let mut heads = Vec::new();
        for url in remotes {
            match git.run(&self.root, ["ls-remote", "--", url.as_str()]).await {
                Ok(listed) => heads.extend(
                    String::from_utf8_lossy(&listed)
                        .lines()
                        .filter_map(|line| Oid::from_str(line.split_whitespace().next()?).ok()),
                ),
                Err(error) => tracing::warn!(%error, "whether everything is pushed cannot be told"),
            }
        }
        heads
    }

    /// Removes the directory, unless it contains uncommitted or unpushed work by now.
    pub async fn remove(
        &self,
        _permit: &Permit,
        workspace: &DirectoryWorkspace,
    ) -> Result<DirectoryRemoval, WorkspaceError> {
        if let Some(because) = self.unsaved(workspace).await? {
            return Ok(DirectoryRemoval::Kept { because });
        }
        let (root, path) = (self.root.clone(), workspace.path.clone());
        blocking(move || discard(&root, &path)).await?;
        self.forget(&workspace.path);
        Ok(DirectoryRemoval::Removed)
    }

    /// Records that processes of a run may still be at work in the ticket's directory.
    pub fn occupy(&self, key: &TicketKey, run: &RunId) -> Result<(), WorkspaceError> {
        let mut runs = self.occupants(key)?;
        if !runs.contains(run) {
            runs.push(run.clone());
        }
        let list: String = runs.iter().map(|run| format!("{run}\n")).collect();
        write_atomically(&self.occupants_of(key), &list)
    }

    /// Returns the runs whose processes may still be at work in the ticket's directory.
    pub fn occupants(&self, key: &TicketKey) -> Result<Vec<RunId>, WorkspaceError> {
        let list = self.occupants_of(key);
        match fs::read_to_string(&list) {
            Ok(text) => Ok(text.lines().map(RunId::new).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(WorkspaceError::io("read", &list, source)),
        }
    }

    /// Records that all of these processes are gone.
    pub fn vacated(&self, key: &TicketKey) -> Result<(), WorkspaceError> {
        let list = self.occupants_of(key);
        fs::remove_file(&list).map_err(|source| WorkspaceError::io("remove", &list, source))
    }

    fn occupants_of(&self, key: &TicketKey) -> PathBuf {
        self.root.join(OCCUPIED).join(name_of(&self.path_of(key)))
    }

    fn lock_of(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.entry(name_of(path)).or_default().clone()
    }

    fn mark_of(&self, path: &Path) -> PathBuf {
        self.root.join(MARKS).join(name_of(path))
    }

    /// Whether `after_create` has not succeeded in this directory.
    pub fn is_half_filled(&self, path: &Path) -> bool {
        fs::read_to_string(self.mark_of(path)).is_ok_and(|mark| mark != FILLED)
    }

    fn mark(&self, path: &Path, says: &str) -> Result<(), WorkspaceError> {
        write_atomically(&self.mark_of(path), says)
    }

    fn forget(&self, path: &Path) {
        // A mark that is left has no meaning without its directory.
        let _ = fs::remove_file(self.mark_of(path));
    }
}

/// Writes a file atomically, in a folder that is made if it is missing.
fn write_atomically(path: &Path, text: &str) -> Result<(), WorkspaceError> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder)
        .and_then(|()| tempfile::NamedTempFile::new_in(folder))
        .and_then(|file| fs::write(file.path(), text).map(|()| file))
        .and_then(|file| file.persist(path).map_err(|error| error.error));
    written.map(drop).map_err(|source| WorkspaceError::io("write", path, source))
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
