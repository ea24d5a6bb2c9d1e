//! Joins two sides of one branch: the commits of a run, and commits that a person pushed in between. They are merged in memory, and the
//! local branch is moved to the result.

use git2::{Oid, Repository};

use super::commits::Commits;
use super::error::WorkspaceError;
use super::repo::{self, RepoPlace};
use super::restore::conflicting_files;
use super::{commit_at, commit_id, locks, oid};
use crate::domain::ids::CommitId;

/// A run's commits that conflict with a person's push stay reachable under this prefix.
const KEPT_REFS: &str = "refs/dirigent/kept/";

/// The result of joining. The local branch was moved accordingly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// The run's commits contain the person's.
    Ours,
    /// The person's commits contain the run's.
    Theirs,
    /// This merge commit contains both.
    Both(CommitId),
    /// The two sides conflict in these files. The branch points to the person's commits; the run's stay reachable under the ref `kept`.
    Conflict { files: Vec<String>, kept: String },
}

/// Joins `ours`, the local branch's commit, and `theirs`, which was pushed elsewhere. Both must be in the repository. Repeatable. Must be
/// called from a blocking thread of the runtime, because `commits` may have to sign.
pub fn join(
    place: &RepoPlace,
    commits: &Commits,
    branch: &str,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<Joined, WorkspaceError> {
    join_from(place, commits, branch, [ours, theirs], ours)
}

/// Like [`join`], for the case that the local branch itself was moved from `ours` to `theirs`.
pub fn join_moved(
    place: &RepoPlace,
    commits: &Commits,
    branch: &str,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<Joined, WorkspaceError> {
    join_from(place, commits, branch, [ours, theirs], theirs)
}

fn join_from(
    place: &RepoPlace,
    commits: &Commits,
    branch: &str,
    [ours, theirs]: [&CommitId; 2],
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
    // An interrupted earlier call may have joined them already.
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
    let message = format!("Merge what was pushed to {branch} meanwhile\n");
    let both = commits.write(&repo, None, &message, &tree, &[&mine, &other]).map_err(failed)?;
    follow(both)?;
    Ok(Joined::Both(commit_id(both)))
}

/// Moves the local branch from `from` to `to`. Fails without a change if the branch is checked out, or was moved elsewhere.
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
