//! Lists the worktrees under the root, and removes old ones that no live run owns.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::error::WorkspaceError;
use super::record::{self, WorktreeRecord};
use super::{Shared, Workspaces, Worktree, detached, prepare, remove, scratch};
use crate::domain::ids::RunId;
use crate::domain::run::Salvage;
use crate::domain::time::Timestamp;

/// A worktree with a record: it was made and not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub worktree: Worktree,
    pub made_at: Timestamp,
    /// The id of the process that made it. `None` if an earlier version made it, which did not record it.
    pub made_by: Option<u32>,
    /// Whether the directory exists. It does not after a crash while it was made or removed.
    pub exists: bool,
}

/// What `gc` did with one directory, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcItem {
    pub path: PathBuf,
    /// The run that the directory belongs to. `None` if Dirigent did not make it.
    pub run: Option<RunId>,
    pub action: GcAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GcAction {
    Removed { salvage: Option<Salvage> },
    WouldRemove,
    Kept { because: String },
}

impl Workspaces {
    pub async fn list(&self) -> Result<Vec<Listed>, WorkspaceError> {
        self.blocking("listing worktrees", |shared| Ok(list(shared))).await
    }

    /// Returns the worktree of a run, even of a run that stopped before it could report where its worktree is.
    pub async fn of_run(&self, run: &RunId) -> Result<Option<Listed>, WorkspaceError> {
        let run = run.clone();
        self.blocking("looking for a worktree", move |shared| {
            Ok(list(shared).into_iter().find(|listed| listed.worktree.run == run))
        })
        .await
    }

    /// Removes worktrees that no live run owns and that are older than `max_age`. Their work is salvaged.
    pub async fn gc(
        &self,
        max_age: Duration,
        dry_run: bool,
        live_runs: &BTreeSet<RunId>,
    ) -> Result<Vec<GcItem>, WorkspaceError> {
        let live_runs = live_runs.clone();
        self.blocking("collecting worktrees", move |shared| Ok(gc(shared, max_age, dry_run, &live_runs))).await
    }
}

fn list(shared: &Shared) -> Vec<Listed> {
    record::all(&shared.root).into_iter().map(|(name, record)| listed(shared, &name, record)).collect()
}

fn listed(shared: &Shared, name: &str, record: WorktreeRecord) -> Listed {
    let path = shared.root.join(name);
    let exists = path.symlink_metadata().is_ok();
    Listed {
        worktree: Worktree {
            path,
            run: record.run,
            key: record.key,
            branch: record.branch,
            base: record.base,
            head_before: record.head_before,
            warning: None,
        },
        made_at: record.made_at,
        made_by: record.made_by,
        exists,
    }
}

fn gc(shared: &Shared, max_age: Duration, dry_run: bool, live_runs: &BTreeSet<RunId>) -> Vec<GcItem> {
    let now = prepare::now();
    let known = list(shared);
    let mut items: Vec<GcItem> = known
        .iter()
        .map(|listed| {
            let worktree = &listed.worktree;
            let action = if live_runs.contains(&worktree.run) {
                GcAction::Kept { because: "its run is alive".to_owned() }
            } else if is_looked_at(listed) {
                let because = "a gate or a review may be at work in it: the process that made it is alive";
                GcAction::Kept { because: because.to_owned() }
            } else if now.since(listed.made_at) < max_age {
                GcAction::Kept { because: "it is not old enough".to_owned() }
            } else if dry_run {
                GcAction::WouldRemove
            } else {
                match remove::remove(shared, &worktree.path, &worktree.run) {
                    Ok(removal) => GcAction::Removed { salvage: removal.salvage },
                    Err(error) => GcAction::Kept { because: error.to_string() },
                }
            };
            GcItem { path: worktree.path.clone(), run: Some(worktree.run.clone()), action }
        })
        .collect();
    let known: BTreeSet<_> = known.into_iter().map(|listed| listed.worktree.path).collect();
    items.extend(strangers(shared, &known));
    items
}

/// Whether a tree is a mere look at a commit whose maker is alive. A gate's run is in no ledger, and the maker removes the tree after the gate.
fn is_looked_at(listed: &Listed) -> bool {
    let maker = listed.made_by.and_then(|pid| i32::try_from(pid).ok());
    detached::is_look(&listed.worktree.path) && maker.is_some_and(scratch::is_alive)
}

/// Lists directories under the root that have no record. They are never removed.
fn strangers(shared: &Shared, known: &BTreeSet<PathBuf>) -> Vec<GcItem> {
    let Ok(entries) = std::fs::read_dir(&shared.root) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| !known.contains(path))
        .collect();
    paths.sort();
    let because = "it was not made by this version of Dirigent for this root; remove it yourself".to_owned();
    paths
        .into_iter()
        .map(|path| GcItem { path, run: None, action: GcAction::Kept { because: because.clone() } })
        .collect()
}
