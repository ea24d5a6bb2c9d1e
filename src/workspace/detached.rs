//! Worktrees of exactly one commit, on no branch: for looking at the commit, not for working on it. Their contents are never salvaged.

use std::path::Path;

use super::error::WorkspaceError;
use super::record::{self, WorktreeRecord};
use super::{Shared, Workspaces, Worktree, commit_id, oid, path, prepare, remove, repo};
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::permit::Permit;

/// Prefix of their names. A sanitised key never contains `@`.
const PREFIX: &str = "@look-";

impl Workspaces {
    /// Makes the worktree. `run` is part of its name, and identifies its processes.
    pub async fn prepare_detached(
        &self,
        _permit: &Permit,
        run: &RunId,
        key: &TicketKey,
        branch: &str,
        commit: &CommitId,
    ) -> Result<Worktree, WorkspaceError> {
        let (run, key, branch, commit) = (run.clone(), key.clone(), branch.to_owned(), commit.clone());
        let worktree =
            self.blocking("making a look at a commit", move |shared| make(shared, run, key, branch, &commit)).await?;
        let fill = ["read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD"];
        let pinned = self.pinned_filters().await?;
        if let Err(error) = self.shared.git.run_with(&worktree.path, fill, &pinned).await {
            self.discard_detached(&worktree).await?;
            return Err(error.into());
        }
        Ok(worktree)
    }

    /// Removes the worktree with everything in it. Refuses a tree that was made for work.
    pub async fn discard_detached(&self, worktree: &Worktree) -> Result<(), WorkspaceError> {
        let path = worktree.path.clone();
        self.blocking("removing a look at a commit", move |shared| {
            if !is_look(&path) {
                let because = "it is not a mere look at a commit".to_owned();
                return Err(WorkspaceError::Outside { path, root: shared.root.clone(), because });
            }
            remove::discard_unused(shared, &path)
        })
        .await
    }

    /// Whether a worktree is one of these.
    pub fn is_detached(&self, worktree: &Worktree) -> bool {
        is_look(&worktree.path)
    }

    /// Lists such worktrees, including those that an earlier life of the runner left.
    pub async fn detached(&self) -> Result<Vec<Worktree>, WorkspaceError> {
        let all = self.list().await?;
        Ok(all.into_iter().map(|listed| listed.worktree).filter(|worktree| is_look(&worktree.path)).collect())
    }
}

/// Whether this is the path of such a worktree.
pub fn is_look(path: &Path) -> bool {
    prepare::name_of(path).starts_with(PREFIX)
}

fn make(
    shared: &Shared,
    run: RunId,
    key: TicketKey,
    branch: String,
    commit: &CommitId,
) -> Result<Worktree, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("find the commit", &shared.place.git_dir, source);
    let commit = oid(commit).map_err(failed)?;
    shared.place.open()?.find_commit(commit).map_err(failed)?;
    let name = format!("{PREFIX}{}", path::sanitise(run.as_str()));
    let target = shared.root.join(&name);
    let commit_name = commit_id(commit);
    let worktree = Worktree {
        path: target.clone(),
        run: run.clone(),
        key: key.clone(),
        branch: branch.clone(),
        base: commit_name.clone(),
        head_before: commit_name.clone(),
        warning: None,
    };
    let record = WorktreeRecord {
        run,
        key,
        branch,
        base: commit_name.clone(),
        head_before: commit_name,
        made_at: prepare::now(),
        made_by: Some(std::process::id()),
    };
    let _admin = shared.admin.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    prepare::make_room(&shared.root, &target)?;
    record::write(&shared.root, &name, &record)?;
    let linked =
        prepare::link_worktree(&shared.place, &name, &target).and_then(|git_dir| repo::detach_head(&git_dir, commit));
    if let Err(error) = linked {
        remove::discard_unused(shared, &target)?;
        return Err(error);
    }
    Ok(worktree)
}
