//! Lists salvaged work, shows it as a diff, and puts it on a branch.

use git2::{DiffFormat, Oid, Repository};

use super::error::WorkspaceError;
use super::repo;
use super::salvage::{AGAINST, SALVAGE_REFS, reference_of};
use super::{Shared, Workspaces, commit_at, commit_id};
use crate::domain::ids::{CommitId, RunId};
use crate::domain::permit::Permit;
use crate::domain::time::Timestamp;

/// One salvage in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvageEntry {
    pub run: RunId,
    pub reference: String,
    pub commit: CommitId,
    pub subject: String,
    pub at: Timestamp,
}

/// The branch that salvaged work is put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreTo {
    /// A branch that must not exist yet. It starts at the commit that the run's tree was at.
    NewBranch(String),
    /// An existing branch that is checked out nowhere. It gets one more commit.
    Branch(String),
}

impl Workspaces {
    /// Lists all salvages, oldest first.
    pub async fn salvage_list(&self) -> Result<Vec<SalvageEntry>, WorkspaceError> {
        self.blocking("listing salvages", list).await
    }

    /// Returns the salvaged work as a patch against the commit that the run began at.
    pub async fn salvage_show(&self, run: &RunId) -> Result<String, WorkspaceError> {
        let run = run.clone();
        self.blocking("showing a salvage", move |shared| show(shared, &run)).await
    }

    /// Puts the salvaged work on a branch and returns the branch's new head. The salvage itself stays.
    pub async fn salvage_restore(
        &self,
        _permit: &Permit,
        run: &RunId,
        to: RestoreTo,
    ) -> Result<CommitId, WorkspaceError> {
        let run = run.clone();
        self.blocking("restoring a salvage", move |shared| restore(shared, &run, &to)).await
    }
}

fn list(shared: &Shared) -> Result<Vec<SalvageEntry>, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("list salvages", &shared.place.git_dir, source);
    let repo = shared.place.open()?;
    let mut entries = Vec::new();
    for reference in repo.references_glob(&format!("{SALVAGE_REFS}*")).map_err(failed)?.flatten() {
        let Ok(name) = reference.name() else { continue };
        let Ok(commit) = reference.peel_to_commit() else { continue };
        entries.push(SalvageEntry {
            run: RunId::new(name.strip_prefix(SALVAGE_REFS).unwrap_or(name)),
            reference: name.to_owned(),
            commit: commit_id(commit.id()),
            subject: String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned(),
            at: Timestamp(commit.time().seconds().saturating_mul(1000)),
        });
    }
    entries.sort_by(|a, b| (a.at, &a.run).cmp(&(b.at, &b.run)));
    Ok(entries)
}

fn find(repo: &Repository, run: &RunId) -> Result<Oid, WorkspaceError> {
    commit_at(repo, &reference_of(run)).ok_or_else(|| WorkspaceError::NoSalvage { run: run.to_string() })
}

fn show(shared: &Shared, run: &RunId) -> Result<String, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("show the salvage", &shared.place.git_dir, source);
    let repo = shared.place.open()?;
    let commit = repo.find_commit(find(&repo, run)?).map_err(failed)?;
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    let against = message
        .lines()
        .find_map(|line| Oid::from_str(line.strip_prefix(AGAINST)?.trim()).ok())
        .and_then(|against| repo.merge_base(against, commit.id()).ok())
        .or_else(|| commit.parent_id(0).ok());
    let old = against
        .map(|against| repo.find_commit(against).and_then(|commit| commit.tree()))
        .transpose()
        .map_err(failed)?;
    let new = commit.tree().map_err(failed)?;
    let diff = repo.diff_tree_to_tree(old.as_ref(), Some(&new), None).map_err(failed)?;
    let mut text: Vec<u8> = Vec::new();
    text.extend_from_slice(message.trim_end().as_bytes());
    text.extend_from_slice(b"\n\n");
    diff.print(DiffFormat::Patch, |_, _, line| {
        if matches!(line.origin(), '+' | '-' | ' ') {
            text.push(line.origin() as u8);
        }
        text.extend_from_slice(line.content());
        true
    })
    .map_err(failed)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn restore(shared: &Shared, run: &RunId, to: &RestoreTo) -> Result<CommitId, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("restore the salvage", &shared.place.git_dir, source);
    let repo = shared.place.open()?;
    let salvage = repo.find_commit(find(&repo, run)?).map_err(failed)?;
    let commits = &shared.config.commits;
    let message = format!("Restore salvaged work of run {run}\n");
    match to {
        RestoreTo::NewBranch(branch) => {
            let name = repo::branch_ref(branch)?;
            if commit_at(&repo, &name).is_some() {
                return Err(WorkspaceError::BranchExists { branch: branch.clone() });
            }
            // The first parent is the commit that the run's tree was at. The others only keep older salvages reachable.
            let parent = salvage.parent(0).ok();
            let tree = salvage.tree().map_err(failed)?;
            let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
            let commit = commits.write(&repo, None, &message, &tree, &parents).map_err(failed)?;
            repo.reference(&name, commit, false, "dirigent: restore").map_err(failed)?;
            Ok(commit_id(commit))
        }
        RestoreTo::Branch(branch) => {
            let name = repo::branch_ref(branch)?;
            let Some(head) = commit_at(&repo, &name) else {
                return Err(WorkspaceError::NoBase {
                    path: shared.place.git_dir.clone(),
                    base: branch.clone(),
                    existing: Vec::new(),
                });
            };
            if let Some(user) = shared.place.user_of_branch(&repo, branch) {
                return Err(WorkspaceError::BranchInUse { branch: branch.clone(), path: user.path });
            }
            let head = repo.find_commit(head).map_err(failed)?;
            let mut index = repo.merge_commits(&head, &salvage, None).map_err(failed)?;
            if index.has_conflicts() {
                let files = conflicting_files(&index).map_err(failed)?;
                return Err(WorkspaceError::SalvageConflict { run: run.to_string(), branch: branch.clone(), files });
            }
            let tree = index.write_tree_to(&repo).map_err(failed)?;
            let tree = repo.find_tree(tree).map_err(failed)?;
            let commit = commits.write(&repo, None, &message, &tree, &[&head]).map_err(failed)?;
            repo.reference_matching(&name, commit, true, head.id(), "dirigent: restore").map_err(failed)?;
            Ok(commit_id(commit))
        }
    }
}

/// Returns the paths in conflict after an in-memory merge.
pub fn conflicting_files(index: &git2::Index) -> Result<Vec<String>, git2::Error> {
    let mut files: Vec<String> = index
        .conflicts()?
        .flatten()
        .filter_map(|conflict| conflict.our.or(conflict.their).or(conflict.ancestor))
        .map(|entry| String::from_utf8_lossy(&entry.path).into_owned())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
