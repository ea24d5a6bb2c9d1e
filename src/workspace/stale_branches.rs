//! Finds branches of finished tickets, and what they contain that the base does not.

use git2::{Oid, Repository};

use super::error::WorkspaceError;
use super::repo;
use super::{Shared, Workspaces, base, commit_at, commit_id};
use crate::domain::ids::CommitId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleBranch {
    pub branch: String,
    pub head: CommitId,
    /// Number of commits beyond the base. 0 if merging the branch would change nothing: it was merged, squashed or left empty.
    pub unmerged: usize,
}

impl Workspaces {
    /// Compares those of these branches that exist with `base`.
    pub async fn stale_branches(&self, base: &str, branches: &[String]) -> Result<Vec<StaleBranch>, WorkspaceError> {
        let (base, branches) = (base.to_owned(), branches.to_vec());
        self.blocking("looking at branches", move |shared| stale_branches(shared, &base, &branches)).await
    }
}

fn stale_branches(shared: &Shared, base: &str, branches: &[String]) -> Result<Vec<StaleBranch>, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("compare branches with the base", &shared.place.git_dir, source);
    let repo = shared.place.open()?;
    let base = base::resolve(&repo, &shared.place, base, shared.config.base_side)?;
    let mut found = Vec::new();
    for branch in branches {
        let Some(head) = commit_at(&repo, &repo::branch_ref(branch)?) else { continue };
        let unmerged = unmerged(&repo, base, head).map_err(failed)?;
        found.push(StaleBranch { branch: branch.clone(), head: commit_id(head), unmerged });
    }
    Ok(found)
}

fn unmerged(repo: &Repository, base: Oid, head: Oid) -> Result<usize, git2::Error> {
    let (ahead, _) = repo.graph_ahead_behind(head, base)?;
    if ahead == 0 {
        return Ok(0);
    }
    let base = repo.find_commit(base)?;
    // Histories without a common ancestor cannot be merged: everything on the branch counts.
    let Ok(mut merged) = repo.merge_commits(&base, &repo.find_commit(head)?, None) else { return Ok(ahead) };
    let adds_nothing = !merged.has_conflicts() && merged.write_tree_to(repo)? == base.tree_id();
    Ok(if adds_nothing { 0 } else { ahead })
}
