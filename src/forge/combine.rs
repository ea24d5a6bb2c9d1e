//! Computes merges with libgit2: the commit that a merge would make, without a work tree and without moving a ref.

use git2::{Commit, DiffFormat, Index, Oid, Repository, Sort};
use sha2::{Digest, Sha256};

use super::ForgeError;
use crate::domain::ids::CommitId;
use crate::domain::pr::MergeMethod;
use crate::workspace::commits::Commits;
use crate::workspace::conflicting_files;
use crate::workspace::repo::RepoPlace;

/// The result of combining a head with a base.
#[derive(Debug, PartialEq, Eq)]
pub enum Combined {
    /// The commit to put at the tip of the base branch. It is written to the object database; no ref points to it yet.
    Commit(Oid),
    /// The base already contains the work; there is nothing to merge.
    Nothing,
    Conflict(Vec<String>),
}

/// The commits to combine, and how the new commit is written.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub base: Oid,
    pub head: Oid,
    pub message: &'a str,
    /// Author, committer and signing of new commits.
    pub commits: &'a Commits,
}

pub fn combine(repo: &Repository, wanted: &Wanted<'_>, method: MergeMethod) -> Result<Combined, git2::Error> {
    if is_in(repo, wanted.head, wanted.base)? {
        return Ok(Combined::Nothing);
    }
    match method {
        MergeMethod::Squash => join(repo, wanted, false),
        MergeMethod::Merge => join(repo, wanted, true),
        MergeMethod::Rebase => rebase(repo, wanted),
    }
}

/// Whether `commit` is `tip` or an ancestor of it.
pub fn is_in(repo: &Repository, commit: Oid, tip: Oid) -> Result<bool, git2::Error> {
    Ok(commit == tip || repo.graph_descendant_of(tip, commit)?)
}

/// Whether the base contains the branch's work under other commits, for example after a squash or rebase by a person.
pub fn is_in_otherwise(repo: &Repository, head: Oid, base: Oid) -> Result<bool, git2::Error> {
    let (head, base) = (repo.find_commit(head)?, repo.find_commit(base)?);
    let common = repo.find_commit(repo.merge_base(base.id(), head.id())?)?;
    if common.tree_id() == head.tree_id() || common.id() == base.id() {
        return Ok(false);
    }
    let mut merged = repo.merge_commits(&base, &head, None)?;
    Ok(settled(repo, &mut merged)? == Some(base.tree_id()))
}

/// Whether a commit contains the work of a head, no matter how that was merged. `None` if the head or the commit is not in the repository.
pub fn holds_work(place: &RepoPlace, commit: &CommitId, head: &CommitId) -> Result<Option<bool>, ForgeError> {
    let failed = |error: git2::Error| ForgeError::Git(error.message().to_owned());
    let repo = place.open().map_err(|error| ForgeError::Git(error.to_string()))?;
    let id = |commit: &CommitId| Oid::from_str(commit.as_str()).ok().filter(|id| repo.find_commit(*id).is_ok());
    let (Some(commit), Some(head)) = (id(commit), id(head)) else { return Ok(None) };
    let held = is_in(&repo, head, commit).map_err(failed)? || is_in_otherwise(&repo, head, commit).map_err(failed)?;
    Ok(Some(held))
}

/// Returns the files in which the two commits conflict.
pub fn conflicts(repo: &Repository, base: Oid, head: Oid) -> Result<Vec<String>, git2::Error> {
    let merged = repo.merge_commits(&repo.find_commit(base)?, &repo.find_commit(head)?, None)?;
    if merged.has_conflicts() { conflicting_files(&merged) } else { Ok(Vec::new()) }
}

fn join(repo: &Repository, wanted: &Wanted<'_>, keep_history: bool) -> Result<Combined, git2::Error> {
    let base = repo.find_commit(wanted.base)?;
    let head = repo.find_commit(wanted.head)?;
    let mut merged = repo.merge_commits(&base, &head, None)?;
    let Some(tree) = settled(repo, &mut merged)? else { return Ok(Combined::Conflict(conflicting_files(&merged)?)) };
    if tree == base.tree_id() && !keep_history {
        return Ok(Combined::Nothing);
    }
    let tree = repo.find_tree(tree)?;
    let parents: &[&Commit<'_>] = if keep_history { &[&base, &head] } else { &[&base] };
    wanted.commits.write(repo, None, wanted.message, &tree, parents).map(Combined::Commit)
}

fn settled(repo: &Repository, index: &mut Index) -> Result<Option<Oid>, git2::Error> {
    if index.has_conflicts() { Ok(None) } else { index.write_tree_to(repo).map(Some) }
}

/// Applies each commit of the branch on top of the base. Merges of the base into the branch are left out.
fn rebase(repo: &Repository, wanted: &Wanted<'_>) -> Result<Combined, git2::Error> {
    let mut walk = repo.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
    walk.push(wanted.head)?;
    walk.hide(wanted.base)?;
    let commits: Vec<Commit<'_>> =
        walk.map(|oid| oid.and_then(|oid| repo.find_commit(oid))).collect::<Result<_, git2::Error>>()?;
    let linear = commits.iter().all(|commit| commit.parent_count() == 1);
    if linear && is_in(repo, wanted.base, wanted.head)? {
        return Ok(Combined::Commit(wanted.head));
    }
    let mut tip = repo.find_commit(wanted.base)?;
    for commit in commits.iter().filter(|commit| commit.parent_count() == 1) {
        let mut picked = repo.cherrypick_commit(commit, &tip, 0, None)?;
        let Some(tree) = settled(repo, &mut picked)? else {
            return Ok(Combined::Conflict(conflicting_files(&picked)?));
        };
        if tree == tip.tree_id() {
            continue;
        }
        let tree = repo.find_tree(tree)?;
        let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
        let made = wanted.commits.write(repo, Some(&commit.author()), &message, &tree, &[&tip])?;
        tip = repo.find_commit(made)?;
    }
    Ok(if tip.id() == wanted.base { Combined::Nothing } else { Combined::Commit(tip.id()) })
}

/// Merges the base into the branch.
pub fn update(repo: &Repository, wanted: &Wanted<'_>) -> Result<Combined, git2::Error> {
    if is_in(repo, wanted.base, wanted.head)? {
        return Ok(Combined::Nothing);
    }
    let turned = Wanted { base: wanted.head, head: wanted.base, ..*wanted };
    join(repo, &turned, true)
}

/// Whether two heads change the base in the same way: the same lines of the same files, with the same lines around them. Where in the file
/// the lines are does not matter.
pub fn is_same_change(repo: &Repository, base: Oid, before: Oid, after: Oid) -> Result<bool, git2::Error> {
    Ok(change(repo, base, before)? == change(repo, base, after)?)
}

/// Returns a hash of what a head changes since it left the base.
fn change(repo: &Repository, base: Oid, head: Oid) -> Result<[u8; 32], git2::Error> {
    let left_at = repo.find_commit(repo.merge_base(base, head)?)?;
    let diff = repo.diff_tree_to_tree(Some(&left_at.tree()?), Some(&repo.find_commit(head)?.tree()?), None)?;
    let mut hash = Sha256::new();
    diff.print(DiffFormat::Patch, |delta, _, line| {
        let (old, new) = (delta.old_file(), delta.new_file());
        match line.origin() {
            // Neither the ids of whole files nor the position of a hunk are part of the change.
            'F' => {
                hash.update(format!("F {:?} {:?} {:?} ", delta.status(), old.mode(), new.mode()));
                hash.update(new.path_bytes().or(old.path_bytes()).unwrap_or_default());
                hash.update([0]);
            }
            'H' => hash.update(b"@"),
            'B' => hash.update(format!("B {}\n", new.id())),
            origin => {
                hash.update([origin as u8]);
                hash.update(line.content());
            }
        }
        true
    })?;
    Ok(hash.finalize().into())
}
