//! Reads what a run left in its worktree and on its branch, and commits the uncommitted rest of a successful run.

use std::path::PathBuf;

use git2::{Oid, Repository};

use super::error::WorkspaceError;
use super::prepare::git_dir_of;
use super::repo::{self, Head};
use super::uncommitted::{Embedded, Look};
use super::{Shared, Workspaces, Worktree, commit_at, commit_id, oid, path};
use crate::domain::ids::CommitId;

/// The state of a worktree and its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkStatus {
    /// The branch's head. `None` if the branch was deleted.
    pub head: Option<CommitId>,
    /// Number of commits on the branch beyond the base.
    pub commits_ahead: u32,
    /// Uncommitted paths, staged or not. Ignored files are not included.
    pub dirty: Vec<PathBuf>,
    /// Whether the branch and the base have a common ancestor and merge without a conflict.
    pub merge_base_clean: bool,
    /// The commit that the tree is at, if the agent moved it off its branch.
    pub stray_head: Option<CommitId>,
}

/// The commit of the uncommitted rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedRest {
    pub commit: CommitId,
    pub files: u32,
    pub left_out: Vec<String>,
}

impl Workspaces {
    pub async fn work_status(&self, worktree: &Worktree) -> Result<WorkStatus, WorkspaceError> {
        let worktree = worktree.clone();
        self.blocking("looking at the worktree", move |shared| work_status(shared, &worktree)).await
    }

    /// Commits uncommitted and untracked work on the job's branch. Returns `None` if there is none.
    ///
    /// If the agent made commits on top of the branch but not on it, the branch is moved to them.
    pub async fn commit_dirty(
        &self,
        worktree: &Worktree,
        message: &str,
    ) -> Result<Option<CommittedRest>, WorkspaceError> {
        let (worktree, message) = (worktree.clone(), message.to_owned());
        self.blocking("committing the work", move |shared| commit_dirty(shared, &worktree, &message)).await
    }
}

fn work_status(shared: &Shared, worktree: &Worktree) -> Result<WorkStatus, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("compare the branch with its base", &shared.place.git_dir, source);
    path::contained(&shared.root, &worktree.path)?;
    let repo = shared.place.open()?;
    let git_dir = git_dir_of(&shared.place, &worktree.path);
    let branch_head = commit_at(&repo, &repo::branch_ref(&worktree.branch)?);
    let tree_head = repo::read_head(&repo, &git_dir);
    let at = tree_head.as_ref().and_then(Head::commit);
    let base = oid(&worktree.base).map_err(failed)?;
    let (commits_ahead, merge_base_clean) = match branch_head {
        Some(head) => {
            let (ahead, _) = repo.graph_ahead_behind(head, base).map_err(failed)?;
            (u32::try_from(ahead).unwrap_or(u32::MAX), merges_cleanly(&repo, base, head).map_err(failed)?)
        }
        None => (0, false),
    };
    Ok(WorkStatus {
        head: branch_head.map(commit_id),
        commits_ahead,
        dirty: Look::at(shared, &worktree.path, &git_dir, at.or(branch_head))?.dirty()?,
        merge_base_clean,
        stray_head: at.filter(|at| Some(*at) != branch_head).map(commit_id),
    })
}

fn merges_cleanly(repo: &Repository, base: Oid, head: Oid) -> Result<bool, git2::Error> {
    match repo.merge_base(base, head) {
        Ok(ancestor) if ancestor == base || ancestor == head => Ok(true),
        Ok(_) => {
            let merged = repo.merge_commits(&repo.find_commit(base)?, &repo.find_commit(head)?, None)?;
            Ok(!merged.has_conflicts())
        }
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn commit_dirty(shared: &Shared, worktree: &Worktree, message: &str) -> Result<Option<CommittedRest>, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("commit the work", &worktree.path, source);
    path::contained(&shared.root, &worktree.path)?;
    let repo = shared.place.open()?;
    let git_dir = git_dir_of(&shared.place, &worktree.path);
    if let Some(operation) = repo::unfinished_operation(&git_dir) {
        return Err(WorkspaceError::Unfinished { path: worktree.path.clone(), operation });
    }
    let name = repo::branch_ref(&worktree.branch)?;
    let branch_head = commit_at(&repo, &name);
    let head = repo::read_head(&repo, &git_dir);
    let at = head.as_ref().and_then(Head::commit).or(branch_head);
    let stray = || WorkspaceError::StrayHead {
        path: worktree.path.clone(),
        branch: worktree.branch.clone(),
        found: head.as_ref().map_or_else(|| "nothing".to_owned(), Head::describe),
    };
    let Some(at) = at else { return Err(stray()) };
    let on_top = branch_head.is_none_or(|branch| branch == at || repo.graph_descendant_of(at, branch).unwrap_or(false));
    if !on_top {
        return Err(stray());
    }
    let (taken, index) =
        Look::at(shared, &worktree.path, &git_dir, Some(at))?.take(shared.config.salvage_limit, Embedded::Name)?;
    let parent = repo.find_commit(at).map_err(failed)?;
    let target = if taken.tree == parent.tree_id() {
        at
    } else {
        let tree = repo.find_tree(taken.tree).map_err(failed)?;
        shared.config.commits.write(&repo, None, message, &tree, &[&parent]).map_err(failed)?
    };
    if branch_head != Some(target) {
        move_branch(&repo, &name, branch_head, target).map_err(failed)?;
    }
    if target == at {
        return Ok(None);
    }
    if !head.is_some_and(|head| head.is_branch(&worktree.branch)) {
        repo::set_head_to_branch(&git_dir, &worktree.branch)?;
    }
    index.install(&git_dir)?;
    Ok(Some(CommittedRest { commit: commit_id(target), files: taken.files, left_out: taken.left_out }))
}

fn move_branch(repo: &Repository, name: &str, from: Option<Oid>, to: Oid) -> Result<(), git2::Error> {
    const WHY: &str = "dirigent: work of a run";
    match from {
        Some(from) => repo.reference_matching(name, to, true, from, WHY).map(|_| ()),
        None => repo.reference(name, to, false, WHY).map(|_| ()),
    }
}
