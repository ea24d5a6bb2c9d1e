//! Makes a fresh worktree for a run, on its job's branch.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use git2::{Oid, Repository};

use super::error::WorkspaceError;
use super::record::{self, WorktreeRecord};
use super::repo::{self, RepoPlace};
use super::{Shared, Workspaces, Worktree, base, commit_at, commit_id, locks, path, remove};
use crate::domain::ids::{RunId, TicketKey};
use crate::domain::permit::Permit;
use crate::domain::time::Timestamp;
use base::{BaseSide, Upstream};

/// The parameters of a new worktree.
struct Order {
    run: RunId,
    key: TicketKey,
    branch: String,
    base: String,
    /// What went wrong with the fetch. `None` if nothing did.
    warning: Option<String>,
    upstream: Option<Upstream>,
}

/// A worktree that is linked to the repository but has no files yet.
struct Made {
    worktree: Worktree,
    /// Whether this call created the branch.
    new_branch: bool,
}

impl Workspaces {
    /// Makes `<root>/<key>-<run>` on `branch`. A branch with commits of its own, here or at the remote, is used where it is. Any other
    /// branch starts at the current `base`.
    pub async fn prepare(
        &self,
        _permit: &Permit,
        run: &RunId,
        key: &TicketKey,
        branch: &str,
        base: &str,
    ) -> Result<Worktree, WorkspaceError> {
        repo::branch_ref(branch)?;
        let upstream = self.upstream_of(base).await?;
        let warning = match &upstream {
            Some(upstream) => self.fetch(upstream, branch).await,
            None => None,
        };
        let order = Order {
            run: run.clone(),
            key: key.clone(),
            branch: branch.to_owned(),
            base: base.to_owned(),
            warning,
            upstream,
        };
        let made = self.blocking("making the worktree", move |shared| make(shared, order)).await?;
        failpoint!("worktree.linked");
        let fill = ["read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD"];
        let pinned = self.pinned_filters().await?;
        if let Err(error) = self.shared.git.run_with(&made.worktree.path, fill, &pinned).await {
            self.blocking("taking the worktree back", move |shared| {
                take_back(shared, &made);
                Ok(())
            })
            .await?;
            return Err(error.into());
        }
        Ok(made.worktree)
    }

    /// Fetches a branch and its base from the forge, to show them. Failures are only logged.
    pub async fn fetch_branch(&self, branch: &str, base: &str) {
        let warning = match self.upstream_of(base).await {
            Ok(Some(upstream)) => self.fetch(&upstream, branch).await,
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(warning) = warning {
            tracing::warn!(branch, warning, "the branch could not be fetched");
        }
    }

    /// Fetches the base and the branch. Returns what went wrong, or `None`.
    async fn fetch(&self, upstream: &Upstream, branch: &str) -> Option<String> {
        let shared = &self.shared;
        match &shared.config.remote {
            Some(remote) => shared.fetcher.fetch_from_forge(remote, upstream, branch).await,
            None => shared.fetcher.fetch(&shared.git, &shared.place, upstream, &shared.config.branch_prefix).await,
        }
    }

    /// Returns the settings that restrict which filters run when files are written.
    pub(super) async fn pinned_filters(&self) -> Result<Vec<(String, String)>, WorkspaceError> {
        self.blocking("reading the filters", |shared| Ok(shared.filters.pinned(&shared.place.open()?))).await
    }

    /// Returns where the base is fetched from. `None` if merges happen in this repository.
    async fn upstream_of(&self, base: &str) -> Result<Option<Upstream>, WorkspaceError> {
        let base = base.to_owned();
        self.blocking("looking up the base", move |shared| {
            let repo = shared.place.open()?;
            let local = commit_at(&repo, &format!("refs/heads/{base}")).is_some();
            if shared.config.remote.is_some() {
                return Ok(Some(Upstream::on_forge(&base)));
            }
            Ok(match shared.config.base_side {
                BaseSide::Local if local => None,
                _ => base::upstream(&repo, &base),
            })
        })
        .await
    }
}

fn make(shared: &Shared, order: Order) -> Result<Made, WorkspaceError> {
    let name = format!("{}-{}", path::sanitise(order.key.as_str()), path::sanitise(order.run.as_str()));
    let target = shared.root.join(&name);
    let repo = shared.place.open()?;
    let base = base::resolve(&repo, &shared.place, &order.base, shared.config.base_side).map_err(|error| {
        match (&order.warning, error) {
            (Some(warning), WorkspaceError::NoBase { path, base, .. }) => {
                WorkspaceError::BaseNotFetched { path, base, warning: warning.clone() }
            }
            (_, error) => error,
        }
    })?;
    locks::release_stale(&shared.place.git_dir, &repo::branch_ref(&order.branch)?)?;
    let _admin = shared.admin.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    free_branch(shared, &repo, &order.branch)?;
    make_room(&shared.root, &target)?;
    let (head, new_branch, warning) = set_branch(&shared.place, &repo, &order, base)?;
    let record = WorktreeRecord {
        run: order.run.clone(),
        key: order.key.clone(),
        branch: order.branch.clone(),
        base: commit_id(base),
        head_before: commit_id(head),
        made_at: now(),
        made_by: Some(std::process::id()),
    };
    let made = Made {
        worktree: Worktree {
            path: target.clone(),
            run: order.run,
            key: order.key,
            branch: order.branch.clone(),
            base: commit_id(base),
            head_before: commit_id(head),
            warning,
        },
        new_branch,
    };
    record::write(&shared.root, &name, &record)?;
    failpoint!("worktree.recorded");
    let linked = link_worktree(&shared.place, &name, &target)
        .and_then(|git_dir| repo::set_head_to_branch(&git_dir, &order.branch));
    if let Err(error) = linked {
        take_back(shared, &made);
        return Err(error);
    }
    Ok(made)
}

/// Checks that the branch is checked out nowhere. An entry of the runner whose tree is gone is removed.
fn free_branch(shared: &Shared, repo: &Repository, branch: &str) -> Result<(), WorkspaceError> {
    while let Some(user) = shared.place.user_of_branch(repo, branch) {
        let ours = user.path.parent() == Some(shared.root.as_path());
        if !ours || user.path.symlink_metadata().is_ok() {
            return Err(WorkspaceError::BranchInUse { branch: branch.to_owned(), path: user.path });
        }
        remove::drop_admin_entry(&user.git_dir)?;
    }
    Ok(())
}

pub(super) fn make_room(root: &Path, target: &Path) -> Result<(), WorkspaceError> {
    if path::contained(root, target)? == path::Occupant::Nothing {
        return Ok(());
    }
    // `remove_dir` removes only an empty directory.
    std::fs::remove_dir(target).map_err(|_| WorkspaceError::Occupied { path: target.to_owned() })
}

/// Returns the branch's head, whether the branch is new, and a warning. Creates a missing branch, and follows its remote if that is ahead.
fn set_branch(
    place: &RepoPlace,
    repo: &Repository,
    order: &Order,
    base: Oid,
) -> Result<(Oid, bool, Option<String>), WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("set the branch", &place.git_dir, source);
    let name = repo::branch_ref(&order.branch)?;
    let mut warning = order.warning.clone();
    let remote = order.upstream.as_ref().and_then(|upstream| {
        let tracking = Upstream { branch: order.branch.clone(), ..upstream.clone() }.tracking_ref();
        commit_at(repo, &tracking)
    });
    let Some(local) = commit_at(repo, &name) else {
        let start = remote.unwrap_or(base);
        repo.reference(&name, start, false, "dirigent: branch for a ticket").map_err(failed)?;
        return Ok((start, true, warning));
    };
    let head = match remote {
        Some(remote) if remote != local && repo.graph_descendant_of(remote, local).map_err(failed)? => {
            repo.reference_matching(&name, remote, true, local, "dirigent: follow the remote").map_err(failed)?;
            remote
        }
        Some(remote) if remote != local && !repo.graph_descendant_of(local, remote).map_err(failed)? => {
            let apart = format!("`{}` and its remote have gone apart; the local one is used", order.branch);
            warning = Some(warning.map_or(apart.clone(), |first| format!("{first}; {apart}")));
            local
        }
        // The branch has no commits of its own yet: start again at the current base.
        None if local != base && repo.graph_descendant_of(base, local).map_err(failed)? => {
            repo.reference_matching(&name, base, true, local, "dirigent: follow the base").map_err(failed)?;
            base
        }
        _ => local,
    };
    Ok((head, false, warning))
}

/// Links an empty directory to the repository, as gitrepository-layout describes it. The tree comes first, so that a concurrent `git
/// worktree prune` does not take the entry for a stale one. The caller still has to set its HEAD, and to write the files with the user's
/// own git, which knows the user's filters.
pub(super) fn link_worktree(place: &RepoPlace, name: &str, target: &Path) -> Result<PathBuf, WorkspaceError> {
    let git_dir = place.admin_dir(name);
    let make = |dir: &Path| fs::create_dir(dir).map_err(|source| WorkspaceError::io("make", dir, source));
    let write = |path: PathBuf, text: &[u8]| fs::write(&path, text).map_err(|s| WorkspaceError::io("write", &path, s));
    let dot_git = target.join(".git");
    make(target)?;
    write(dot_git.clone(), &[b"gitdir: ", git_dir.as_os_str().as_bytes(), b"\n"].concat())?;
    let worktrees = place.git_dir.join("worktrees");
    fs::create_dir_all(&worktrees).map_err(|source| WorkspaceError::io("make", &worktrees, source))?;
    make(&git_dir)?;
    write(git_dir.join("gitdir"), &[dot_git.as_os_str().as_bytes(), b"\n"].concat())?;
    write(git_dir.join("commondir"), b"../..\n")?;
    Ok(git_dir)
}

/// Undoes a worktree that no agent has used yet.
fn take_back(shared: &Shared, made: &Made) {
    let worktree = &made.worktree;
    let undone = remove::discard_unused(shared, &worktree.path);
    if undone.is_ok() && made.new_branch {
        let _ = super::delete_branch(&shared.place, &worktree.branch, &worktree.head_before);
    }
}

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the worktree's name under the root, which is also the name of its administrative entry.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(super) fn git_dir_of(place: &RepoPlace, path: &Path) -> PathBuf {
    place.admin_dir(&name_of(path))
}
