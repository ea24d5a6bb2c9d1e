//! `workspace.mode: directory`: one lasting directory per ticket, filled by `after_create`, reused across runs.
//!
//! A mark beside the directory says whether `after_create` has succeeded: what was only half filled is thrown away and filled anew.
//! A directory without a mark was made by another tool, and is taken as it is.

use std::collections::BTreeMap;
use std::fs;
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
use crate::domain::ids::{CommitId, TicketKey};
use crate::domain::permit::Permit;

/// For a remote to say which branches it has.
const ASK_REMOTE: Duration = Duration::from_secs(30);
/// Holds the marks. No ticket's directory begins with a dot.
const MARKS: &str = ".marks";
const FILLING: &str = "filling\n";
const FILLED: &str = "filled\n";

/// The directories under one root.
#[derive(Debug, Clone)]
pub struct Directories {
    root: PathBuf,
    /// By name. Whoever works in a directory, or removes it, holds its lock.
    locks: Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

/// A ticket's directory, which is ours alone as long as this lives.
#[derive(Debug, Clone)]
pub struct DirectoryWorkspace {
    pub path: PathBuf,
    /// It is new: `after_create` has to run, and [`Directories::filled`] has to be called when it has succeeded.
    pub created: bool,
    _lock: Arc<OwnedMutexGuard<()>>,
}

/// Where the repository in a directory stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectoryStanding {
    pub head: Option<CommitId>,
    /// The default branch of its remote, as far as the repository knows it.
    pub base: Option<CommitId>,
    /// Beyond the base; without one, beyond where the run began.
    pub commits_ahead: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryRemoval {
    Removed,
    /// There was none.
    Absent,
    /// It holds work that is nowhere else, or somebody works in it.
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

    /// The same, compared with its base, or with `before` where it knows none.
    pub fn standing(&self, before: Option<&CommitId>) -> DirectoryStanding {
        let Some(head) = self.head() else { return DirectoryStanding::default() };
        let counted = Repository::open(&self.path).map(|repo| {
            let base = repo.find_reference("refs/remotes/origin/HEAD").and_then(|base| base.peel_to_commit());
            let base = base.ok().map(|base| base.id());
            let from = base.or_else(|| before.and_then(|before| Oid::from_str(before.as_str()).ok()));
            // Nothing is claimed where nothing can be compared.
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

    /// The same path for the same key, always.
    pub fn path_of(&self, key: &TicketKey) -> PathBuf {
        self.root.join(path::sanitise(key.as_str()))
    }

    /// Makes the ticket's directory, or finds it. One whose `after_create` never succeeded is made anew, empty.
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
        // The mark comes first: a directory without one is another tool's.
        self.mark(&path, FILLING)?;
        fs::create_dir(&path).map_err(|source| WorkspaceError::io("make", &path, source))?;
        Ok(DirectoryWorkspace { path, created: true, _lock: lock })
    }

    /// `after_create` has succeeded: from now on the directory is reused.
    pub fn filled(&self, workspace: &DirectoryWorkspace) -> Result<(), WorkspaceError> {
        self.mark(&workspace.path, FILLED)
    }

    /// Takes back a directory whose `after_create` did not succeed. Whether it was such a one.
    pub async fn discard_half_filled(&self, workspace: &DirectoryWorkspace) -> Result<bool, WorkspaceError> {
        if !self.is_half_filled(&workspace.path) {
            return Ok(false);
        }
        let (root, path) = (self.root.clone(), workspace.path.clone());
        blocking(move || discard(&root, &path)).await?;
        Ok(true)
    }

    /// The ticket's directory, to be removed; `None` where there is none. The error says why it has to stay.
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

    /// Why the directory must stay, if it must. A clone of one branch does not note what it pushed to others: then its remotes are asked.
    async fn unsaved(&self, workspace: &DirectoryWorkspace) -> Result<Option<String>, WorkspaceError> {
        // What `after_create` only began holds nobody's work.
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

    /// The branches of these remotes, as far as they answer. Not asked from inside the directory, whose configuration an agent may have
    /// written.
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

    /// Removes a directory that nothing speaks against, unless it holds uncommitted or unpushed work by now.
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

    fn lock_of(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.entry(name_of(path)).or_default().clone()
    }

    fn mark_of(&self, path: &Path) -> PathBuf {
        self.root.join(MARKS).join(name_of(path))
    }

    fn is_half_filled(&self, path: &Path) -> bool {
        fs::read_to_string(self.mark_of(path)).is_ok_and(|mark| mark != FILLED)
    }

    /// Whole or not at all.
    fn mark(&self, path: &Path, says: &str) -> Result<(), WorkspaceError> {
        let mark = self.mark_of(path);
        let marks = self.root.join(MARKS);
        let written = fs::create_dir_all(&marks)
            .and_then(|()| tempfile::NamedTempFile::new_in(&marks))
            .and_then(|file| fs::write(file.path(), says).map(|()| file))
            .and_then(|file| file.persist(&mark).map_err(|error| error.error));
        written.map(drop).map_err(|source| WorkspaceError::io("write", &mark, source))
    }

    fn forget(&self, path: &Path) {
        // One that is left says nothing about a directory that is not there.
        let _ = fs::remove_file(self.mark_of(path));
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
