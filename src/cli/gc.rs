//! `gc`: worktrees that outlived their run, and branches of tickets that were closed by hand.

use std::collections::BTreeSet;

use serde_json::json;

use crate::domain::job::{Job, ReleaseReason, Stage};
use crate::domain::time::Timestamp;
use crate::engine::permit;
use crate::runtime;
use crate::workspace::{GcAction, GcItem, Workspaces};

use super::Failure;
use super::args::GcArgs;
use super::block_on;
use super::context::Context;
use super::output;
use crate::runtime::assembly;

pub fn gc(context: &Context, args: &GcArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let workspaces = assembly::workspaces(&loaded.settings)?;
    // Live by the ledger, whether or not a runner is up: a dead runner's runs are recovery's to reclaim.
    let ledger = place.read_ledger()?;
    let state = ledger.load()?;
    let live: BTreeSet<_> = state.runs.keys().cloned().collect();
    let items = block_on(async { workspaces.gc(args.max_age, args.dry_run, &live).await.map_err(Failure::plain) })?;
    let branches = closed_by_hand(state.jobs.values().chain(&ledger.archived(usize::MAX)?));
    let base = &loaded.settings.pr.base_branch;
    let branches = block_on(collect_branches(&workspaces, base, &branches, args))?;
    if args.json {
        let all = items.iter().map(as_json).chain(branches.iter().map(BranchItem::as_json));
        return output::print_json(&all.collect::<Vec<_>>());
    }
    if items.is_empty() && branches.is_empty() {
        return output::print("nothing to collect");
    }
    let rows = items.iter().map(|item| vec![item.path.display().to_string(), words(item)]);
    let rows = rows.chain(branches.iter().map(|item| vec![format!("branch {}", item.branch), item.words()]));
    output::print(&output::table(&["WHAT", "DONE"], rows).to_string())
}

/// What became of a branch, or would.
struct BranchItem {
    branch: String,
    key: String,
    /// `Ok`: it went, or would; `Err`: why it stays.
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

/// Branch, ticket and since when, of tickets that somebody closed while we had them.
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
    args: &GcArgs,
) -> Result<Vec<BranchItem>, Failure> {
    let names: Vec<String> = closed.iter().map(|(branch, ..)| branch.clone()).collect();
    let mut items = Vec::new();
    for spent in workspaces.stale_branches(base, &names).await.map_err(Failure::plain)? {
        let Some((_, key, since)) = closed.iter().find(|(branch, ..)| *branch == spent.branch) else { continue };
        let fate = if spent.unmerged > 0 {
            Err(format!(
                "{} commit(s) are not in {base}: merge them, or `git branch -D {}` if nobody wants them",
                spent.unmerged, spent.branch
            ))
        } else if runtime::now().since(*since) < args.max_age {
            Err("it was not so for long enough (--max-age)".into())
        } else if args.dry_run {
            Ok("would_remove")
        } else {
            // Its commits stay reachable, as those of a branch that `undo` gives up.
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
