//! Saves the uncommitted work of a run that did not end well as a commit under `refs/dirigent/salvage/<run>`.

use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use super::error::WorkspaceError;
use super::prepare::{git_dir_of, name_of};
use super::record::{self, WorktreeRecord};
use super::repo::{self, Head};
use super::uncommitted::{Embedded, Look, Taken};
use super::{Shared, Workspaces, commit_at, commit_id, locks, path};
use crate::domain::ids::RunId;
use crate::domain::run::Salvage;

pub(super) const SALVAGE_REFS: &str = "refs/dirigent/salvage/";
const LEFT_OUT: &str = "Left out: ";
/// The line of the message with the commit that the salvaged work is shown against.
pub(super) const AGAINST: &str = "Dirigent-Against: ";

pub(super) fn reference_of(run: &RunId) -> String {
    format!("{SALVAGE_REFS}{}", path::sanitise(run.as_str()))
}

impl Workspaces {
    /// Saves uncommitted work, and commits that are not on the job's branch. Returns `None` if there is neither.
    ///
    /// A repeated call without new work returns the same salvage. With new work, the earlier salvage stays reachable.
    pub async fn salvage(&self, worktree: &Path, run: &RunId) -> Result<Option<Salvage>, WorkspaceError> {
        let (worktree, run): (PathBuf, RunId) = (worktree.to_owned(), run.clone());
        self.blocking("salvaging", move |shared| salvage(shared, &worktree, &run)).await
    }

    /// Reads an earlier salvage of this run, for a caller whose record of it was lost. `None` if there is none.
    pub async fn salvaged(&self, run: &RunId) -> Result<Option<Salvage>, WorkspaceError> {
        let run = run.clone();
        self.blocking("looking for saved work", move |shared| salvaged(shared, &run)).await
    }
}

fn salvaged(shared: &Shared, run: &RunId) -> Result<Option<Salvage>, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("read the saved work", &shared.root, source);
    let repo = shared.place.open()?;
    let reference = reference_of(run);
    let Some(id) = commit_at(&repo, &reference) else { return Ok(None) };
    let commit = repo.find_commit(id).map_err(failed)?;
    let before = commit.parent(0).and_then(|parent| parent.tree()).ok();
    let tree = commit.tree().map_err(failed)?;
    let changed = repo.diff_tree_to_tree(before.as_ref(), Some(&tree), None).map_err(failed)?;
    let said = commit.message().unwrap_or_default().lines();
    let left_out = said.filter_map(|line| line.strip_prefix(LEFT_OUT)).map(str::to_owned).collect();
    let files = u32::try_from(changed.deltas().len()).unwrap_or(u32::MAX);
    Ok(Some(Salvage { reference, commit: commit_id(id), files, left_out }))
}

pub(super) fn salvage(shared: &Shared, tree_dir: &Path, run: &RunId) -> Result<Option<Salvage>, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("salvage the work", tree_dir, source);
    let occupant = path::contained(&shared.root, tree_dir)?;
    let repo = shared.place.open()?;
    let git_dir = git_dir_of(&shared.place, tree_dir);
    let record = record::read(&shared.root, &name_of(tree_dir));
    let branch_head = record.as_ref().and_then(|record| commit_at(&repo, &format!("refs/heads/{}", record.branch)));
    // If the agent removed or broke the worktree's entry, the work is compared with its branch instead.
    let head = match repo::read_head(&repo, &git_dir) {
        Some(Head::Ref { commit: None, .. }) => None,
        Some(head) => head.commit().filter(|commit| repo.find_commit(*commit).is_ok()),
        None => branch_head,
    };
    let taken = match occupant {
        path::Occupant::Nothing => None,
        path::Occupant::Directory => {
            let look = Look::at(shared, tree_dir, &git_dir, head)?;
            Some(look.take(shared.config.salvage_limit, Embedded::TakeFiles)?.0)
        }
    };
    let head_commit = head.map(|head| repo.find_commit(head)).transpose().map_err(failed)?;
    let dirty = taken.as_ref().is_some_and(|taken| is_dirty(taken, head_commit.as_ref()));
    let stray = match (head, branch_head) {
        (Some(head), Some(branch)) => head != branch && !repo.graph_descendant_of(branch, head).map_err(failed)?,
        (Some(_), None) => true,
        (None, _) => false,
    };
    if !dirty && !stray {
        return Ok(None);
    }
    let tree = match (&taken, &head_commit) {
        (Some(taken), _) => taken.tree,
        (None, Some(head)) => head.tree_id(),
        (None, None) => return Ok(None),
    };
    let found = Found { tree, head, taken, record, stray };
    let reference = reference_of(run);
    locks::release_stale(&shared.place.git_dir, &reference)?;
    let commit = write_salvage(&repo, &reference, run, &found).map_err(failed)?;
    let (files, left_out) = found.taken.map(|taken| (taken.files, taken.left_out)).unwrap_or_default();
    Ok(Some(Salvage { reference, commit: commit_id(commit), files, left_out }))
}

struct Found {
    tree: Oid,
    head: Option<Oid>,
    taken: Option<Taken>,
    record: Option<WorktreeRecord>,
    stray: bool,
}

fn is_dirty(taken: &Taken, head: Option<&git2::Commit<'_>>) -> bool {
    let Some(head) = head else { return taken.files > 0 || !taken.left_out.is_empty() };
    // An index that still equals the parent of the last commit contains nothing new.
    let behind = |staged: Oid| head.parent(0).is_ok_and(|parent| parent.tree_id() == staged);
    taken.tree != head.tree_id() || !taken.left_out.is_empty() || taken.staged.is_some_and(|staged| !behind(staged))
}

fn write_salvage(repo: &Repository, reference: &str, run: &RunId, found: &Found) -> Result<Oid, git2::Error> {
    let previous = commit_at(repo, reference);
    let message = message(run, found);
    if let Some(previous) = previous {
        let commit = repo.find_commit(previous)?;
        let same = commit.tree_id() == found.tree
            && commit.parent_ids().next() == found.head
            && commit.message().ok() == Some(message.as_str());
        if same {
            return Ok(previous);
        }
    }
    let who = repo::signature(repo)?;
    let mut parents: Vec<git2::Commit<'_>> = Vec::new();
    if let Some(head) = found.head {
        parents.push(repo.find_commit(head)?);
    }
    if let Some(staged) = found.taken.as_ref().and_then(|taken| taken.staged) {
        let staged = repo.find_tree(staged)?;
        let on: Vec<&git2::Commit<'_>> = parents.iter().collect();
        let id = repo.commit(None, &who, &who, &format!("What run {run} had staged\n"), &staged, &on)?;
        parents.push(repo.find_commit(id)?);
    }
    if let Some(previous) = previous {
        parents.push(repo.find_commit(previous)?);
    }
    let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
    let tree = repo.find_tree(found.tree)?;
    let commit = repo.commit(None, &who, &who, &message, &tree, &parents)?;
    failpoint!("salvage.before_ref");
    match previous {
        Some(previous) => repo.reference_matching(reference, commit, true, previous, "dirigent: salvage")?,
        None => repo.reference(reference, commit, false, "dirigent: salvage")?,
    };
    failpoint!("salvage.ref_written");
    Ok(commit)
}

fn message(run: &RunId, found: &Found) -> String {
    let mut text = match &found.record {
        Some(record) => format!("Salvaged work on {} (run {run})\n\nBranch: {}\n", record.key, record.branch),
        None => format!("Salvaged work of run {run}\n\n"),
    };
    if found.stray {
        text.push_str("The run had left its branch; the commits it made are in this history.\n");
    }
    for left_out in found.taken.iter().flat_map(|taken| &taken.left_out) {
        text.push_str(&format!("{LEFT_OUT}{}\n", left_out.replace('\n', "?")));
    }
    if let Some(record) = &found.record {
        text.push_str(&format!("\n{AGAINST}{}\n", record.head_before));
    }
    text
}
