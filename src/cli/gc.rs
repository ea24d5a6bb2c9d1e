//! `gc`: removes worktrees that were left behind by their run, branches of tickets that were closed by hand, and folders of runs that the
//! ledger has dropped.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::config::policy::RolloutMode;
use crate::config::workspace::WorkspaceMode;
use crate::domain::ids::RunId;
use crate::domain::job::{Job, ReleaseReason, Stage};
use crate::domain::time::Timestamp;
use crate::engine::permit;
use crate::ledger::LedgerReader;
use crate::runtime::{self, RunnerFolder};
use crate::workflow::Loaded;
use crate::workspace::{GcAction, GcItem, Workspaces};

use super::Failure;
use super::args::GcArgs;
use super::block_on;
use super::context::Context;
use super::output;
use super::review;
use crate::runtime::assembly;

/// The minimum age of what is collected at the start of a runner.
const USUAL_AGE: Duration = Duration::from_secs(24 * 60 * 60);

pub fn gc(context: &Context, args: &GcArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let Collected { items, branches, folders } = collect(&loaded, &place, args.max_age, args.dry_run)?;
    if args.json {
        let all = items.iter().map(as_json).chain(branches.iter().map(BranchItem::as_json));
        return output::print_json(&all.chain(folders.iter().map(RunFolder::as_json)).collect::<Vec<_>>());
    }
    if items.is_empty() && branches.is_empty() && folders.is_empty() {
        return output::print("nothing to collect");
    }
    let rows = items.iter().map(|item| vec![item.path.display().to_string(), words(item)]);
    let rows = rows.chain(branches.iter().map(|item| vec![format!("branch {}", item.branch), item.words()]));
    let rows = rows.chain(folders.iter().map(|folder| vec![folder.path.display().to_string(), folder.words()]));
    output::print(&output::table(&["WHAT", "DONE"], rows).to_string())
}

/// Collects what is left from before, when a runner starts and holds its lock. Returns a message that says what was collected, or `None`
/// if there was nothing. A failure is only logged, so that the runner starts anyway. Does nothing in observe mode, in directory mode, or
/// while the kill-switch file exists.
pub fn at_start(loaded: &Loaded, place: &RunnerFolder) -> Option<String> {
    let stopped = loaded.settings.rollout.kill_switch_file.try_exists().unwrap_or(true);
    let looks_only = loaded.settings.rollout.mode == RolloutMode::Observe || stopped;
    if loaded.settings.workspace.mode == WorkspaceMode::Directory || looks_only {
        return None;
    }
    match collect(loaded, place, USUAL_AGE, false) {
        Ok(collected) => collected.sentence(),
        Err(failure) => {
            tracing::warn!(error = failure.text(), "what is left from before could not be collected");
            None
        }
    }
}

/// What `gc` removed, or would remove.
struct Collected {
    items: Vec<GcItem>,
    branches: Vec<BranchItem>,
    folders: Vec<RunFolder>,
}

impl Collected {
    fn sentence(&self) -> Option<String> {
        let trees = self.items.iter().filter(|item| matches!(item.action, GcAction::Removed { .. })).count();
        let branches = self.branches.iter().filter(|branch| branch.fate == Ok("removed")).count();
        let parts = [
            (trees, "worktree", "worktrees"),
            (branches, "branch of a closed ticket", "branches of closed tickets"),
            (self.folders.len(), "folder of a forgotten run", "folders of forgotten runs"),
        ];
        let counted = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = counted.map(|(count, one, many)| output::count(count, one, many)).collect();
        (!parts.is_empty()).then(|| format!("collected from before: {}", parts.join(", ")))
    }
}

fn collect(loaded: &Loaded, place: &RunnerFolder, max_age: Duration, dry_run: bool) -> Result<Collected, Failure> {
    let workspaces = assembly::workspaces(&loaded.settings)?;
    // Runs that the ledger shows as live are left alone, even if no runner is up: recovery reclaims the runs of a dead runner.
    let ledger = place.read_ledger()?;
    let state = ledger.load()?;
    let live: BTreeSet<_> = state.runs.keys().cloned().collect();
    let mut items = block_on(async { workspaces.gc(max_age, dry_run, &live).await.map_err(Failure::plain) })?;
    // Trees that `try` made belong to no run, so none of them counts as live.
    if let Some(tries) = review::tries_if_any(&loaded.settings)? {
        items.extend(block_on(async { tries.gc(max_age, dry_run, &BTreeSet::new()).await.map_err(Failure::plain) })?);
    }
    let branches = closed_by_hand(state.jobs.values().chain(&ledger.archived(usize::MAX)?));
    let base = &loaded.settings.pr.base_branch;
    let branches = block_on(collect_branches(&workspaces, base, &branches, max_age, dry_run))?;
    let folders = forgotten_runs(place, &*ledger, &live, max_age, dry_run);
    Ok(Collected { items, branches, folders })
}

/// The folder of a run that was removed, or would be.
struct RunFolder {
    path: PathBuf,
    went: bool,
}

impl RunFolder {
    fn words(&self) -> String {
        let verb = if self.went { "removed" } else { "would be removed" };
        format!("{verb}: the ledger has forgotten its run")
    }

    fn as_json(&self) -> serde_json::Value {
        json!({ "path": self.path, "action": if self.went { "removed" } else { "would_remove" } })
    }
}

/// Removes the folders of runs that the ledger has dropped after `ledger.keep_days`. With `dry_run` only lists them.
fn forgotten_runs(
    place: &RunnerFolder,
    ledger: &dyn LedgerReader,
    live: &BTreeSet<RunId>,
    max_age: Duration,
    dry_run: bool,
) -> Vec<RunFolder> {
    let entries = std::fs::read_dir(place.state_dir.join("runs")).into_iter().flatten().flatten();
    let old = |entry: &std::fs::DirEntry| {
        let changed = entry.metadata().and_then(|found| found.modified()).ok();
        changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= max_age)
    };
    let forgotten = |entry: &std::fs::DirEntry| {
        let run = RunId::new(entry.file_name().to_string_lossy().into_owned());
        !live.contains(&run) && matches!(ledger.finished_run(&run), Ok(None))
    };
    let gone = entries.filter(|entry| entry.path().is_dir()).filter(old).filter(forgotten);
    gone.filter_map(|entry| {
        let went = !dry_run && std::fs::remove_dir_all(entry.path()).is_ok();
        (went || dry_run).then(|| RunFolder { path: entry.path(), went })
    })
    .collect()
}

/// What happened to a branch, or would happen.
struct BranchItem {
    branch: String,
    key: String,
    /// `Ok`: the branch was removed, or would be; `Err`: why it is kept.
    fate: Result<&'static str, String>,
}

impl BranchItem {
    fn words(&self) -> String {
        let key = &self.key;
        match &self.fate {
            Ok("removed") => format!("removed: {key} is closed, and the base has all of it"),
            Ok(_) => format!("would be removed: {key} is closed, and the base has all of it"),
            Err(because) => format!("kept: {key} is closed, but {because}"),
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let (action, because) = match &self.fate {
            Ok(action) => (*action, None),
            Err(because) => ("kept", Some(because)),
        };
        json!({ "branch": self.branch, "ticket": self.key, "action": action, "because": because })
    }
}

/// Returns branch, ticket key and time of release of each ticket that was closed, or disappeared, before its work was merged.
fn closed_by_hand<'a>(jobs: impl Iterator<Item = &'a Job>) -> Vec<(String, String, Timestamp)> {
    let closed = jobs.filter(|job| {
        matches!(job.stage, Stage::Released { why: ReleaseReason::TicketClosed { .. } | ReleaseReason::Gone, .. })
    });
    closed.map(|job| (job.delivery.branch.name.clone(), job.ticket.key.to_string(), job.stage.since())).collect()
}

async fn collect_branches(
    workspaces: &Workspaces,
    base: &str,
    closed: &[(String, String, Timestamp)],
    max_age: Duration,
    dry_run: bool,
) -> Result<Vec<BranchItem>, Failure> {
    let names: Vec<String> = closed.iter().map(|(branch, ..)| branch.clone()).collect();
    let mut items = Vec::new();
    for spent in workspaces.stale_branches(base, &names).await.map_err(Failure::plain)? {
        let Some((_, key, since)) = closed.iter().find(|(branch, ..)| *branch == spent.branch) else { continue };
        let fate = if spent.unmerged > 0 {
            Err(format!(
                "{} not in {base}: merge them, or `git branch -D {}` if nobody wants them",
                output::count(spent.unmerged, "commit is", "commits are"),
                spent.branch
            ))
        } else if runtime::now().since(*since) < max_age {
            Err("it was not so for long enough (--max-age)".into())
        } else if dry_run {
            Ok("would_remove")
        } else {
            // The branch's commits stay reachable under another ref, as with `undo`.
            let removed = workspaces.set_aside(&permit::by_hand(), &spent.branch, &spent.head).await;
            removed.map(|_| "removed").map_err(|error| error.to_string())
        };
        items.push(BranchItem { branch: spent.branch, key: key.clone(), fate });
    }
    Ok(items)
}

fn words(item: &GcItem) -> String {
    match &item.action {
        GcAction::Removed { salvage: Some(salvage) } => format!("removed; its work is in {}", salvage.reference),
        GcAction::Removed { salvage: None } => "removed".into(),
        GcAction::WouldRemove => "would be removed".into(),
        GcAction::Kept { because } => format!("kept: {because}"),
    }
}

fn as_json(item: &GcItem) -> serde_json::Value {
    let (action, because) = match &item.action {
        GcAction::Removed { .. } => ("removed", None),
        GcAction::WouldRemove => ("would_remove", None),
        GcAction::Kept { because } => ("kept", Some(because)),
    };
    json!({ "path": item.path, "run": item.run, "action": action, "because": because })
}
