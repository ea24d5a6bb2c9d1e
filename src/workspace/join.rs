//! Two sides of one branch: what a run made, and what a person pushed meanwhile. They are merged in memory, and the local branch follows.

use git2::{Oid, Repository};

use super::error::WorkspaceError;
use super::repo::{self, RepoPlace};
use super::restore::conflicting_files;
use super::{commit_at, commit_id, locks, oid};
use crate::domain::ids::CommitId;

/// Work that a person's push stands in the way of stays reachable here.
const KEPT_REFS: &str = "refs/dirigent/kept/";

/// How the two sides stand to each other, after the local branch was put where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// Ours has all of theirs.
    Ours,
    /// Theirs has all of ours.
    Theirs,
    /// This commit has both.
    Both(CommitId),
    /// They contradict each other in these files. The branch is at theirs, and ours stays reachable as `kept`.
    Conflict { files: Vec<String>, kept: String },
}

/// Joins `ours`, which the local branch is at, and `theirs`, which was pushed elsewhere. Both must be here. Done again, it comes to the same.
pub fn join(place: &RepoPlace, branch: &str, ours: &CommitId, theirs: &CommitId) -> Result<Joined, WorkspaceError> {
    join_from(place, branch, ours, theirs, ours)
}

/// The same where the local branch itself was moved from `ours` to `theirs`.
pub fn join_moved(
    place: &RepoPlace,
    branch: &str,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<Joined, WorkspaceError> {
    join_from(place, branch, ours, theirs, theirs)
}

fn join_from(
    place: &RepoPlace,
    branch: &str,
    ours: &CommitId,
    theirs: &CommitId,
    from: &CommitId,
) -> Result<Joined, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("join two sides of a branch", &place.git_dir, source);
    let repo = place.open()?;
    let name = repo::branch_ref(branch)?;
    let (ours, theirs, from) = (oid(ours).map_err(failed)?, oid(theirs).map_err(failed)?, oid(from).map_err(failed)?);
    if is_in(&repo, theirs, ours).map_err(failed)? {
        return Ok(Joined::Ours);
    }
    let local = commit_at(&repo, &name);
    let follow = |to: Oid| follow(place, &repo, branch, from, to);
    if is_in(&repo, ours, theirs).map_err(failed)? {
        follow(theirs)?;
        return Ok(Joined::Theirs);
    }
    // A try that was interrupted may have joined them already.
    if let Some(local) = local
        && is_in(&repo, ours, local).map_err(failed)?
        && is_in(&repo, theirs, local).map_err(failed)?
    {
        return Ok(Joined::Both(commit_id(local)));
    }
    let (mine, other) = (repo.find_commit(ours).map_err(failed)?, repo.find_commit(theirs).map_err(failed)?);
    let mut merged = repo.merge_commits(&mine, &other, None).map_err(failed)?;
    if merged.has_conflicts() {
        let kept = format!("{KEPT_REFS}{branch}/{}", commit_id(ours).short());
        repo.reference(&kept, ours, true, "dirigent: kept beside a person's push").map_err(failed)?;
        let files = conflicting_files(&merged).map_err(failed)?;
        follow(theirs)?;
        return Ok(Joined::Conflict { files, kept });
    }
    let tree = merged.write_tree_to(&repo).and_then(|tree| repo.find_tree(tree)).map_err(failed)?;
    let who = repo::signature(&repo).map_err(failed)?;
    let message = format!("Merge what was pushed to {branch} meanwhile\n");
    let both = repo.commit(None, &who, &who, &message, &tree, &[&mine, &other]).map_err(failed)?;
    follow(both)?;
    Ok(Joined::Both(commit_id(both)))
}

/// Moves the local branch from what the run made. Where somebody has it checked out, or moved it elsewhere, it is left alone and that is said.
fn follow(place: &RepoPlace, repo: &Repository, branch: &str, from: Oid, to: Oid) -> Result<(), WorkspaceError> {
    let name = repo::branch_ref(branch)?;
    match commit_at(repo, &name) {
        Some(at) if at == to => return Ok(()),
        Some(at) if at != from => {
            return Err(WorkspaceError::BranchMoved {
                branch: branch.to_owned(),
                expected: commit_id(from).short().to_owned(),
                actual: commit_id(at).short().to_owned(),
            });
        }
        _ => {}
    }
    if let Some(user) = place.user_of_branch(repo, branch) {
        return Err(WorkspaceError::BranchInUse { branch: branch.to_owned(), path: user.path });
    }
    locks::release_stale(&place.git_dir, &name)?;
    let why = "dirigent: joined with what somebody pushed";
    let failed = |source| WorkspaceError::libgit("move the branch", &place.git_dir, source);
    match commit_at(repo, &name) {
        Some(at) => repo.reference_matching(&name, to, true, at, why).map_err(failed)?,
        None => repo.reference(&name, to, false, why).map_err(failed)?,
    };
    Ok(())
}

fn is_in(repo: &Repository, commit: Oid, tip: Oid) -> Result<bool, git2::Error> {
    Ok(commit == tip || repo.graph_descendant_of(tip, commit)?)
}
