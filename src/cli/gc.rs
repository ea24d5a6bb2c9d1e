//! `gc`: worktrees that outlived their run, and the records of old runs.

use std::collections::BTreeSet;

use serde_json::json;

use crate::workspace::{GcAction, GcItem};

use super::Failure;
use super::args::GcArgs;
use super::assemble;
use super::output;
use super::place::Context;

pub fn gc(context: &Context, args: &GcArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let workspaces = assemble::workspaces(&loaded.settings)?;
    // Live by the ledger, whether or not a runner is up: a dead runner's runs are recovery's to bury.
    let live: BTreeSet<_> = place.open_ledger()?.load()?.runs.into_keys().collect();
    let items =
        assemble::block_on(async { workspaces.gc(args.max_age, args.dry_run, &live).await.map_err(Failure::plain) })?;
    if args.json {
        return output::print_json(&items.iter().map(as_json).collect::<Vec<_>>());
    }
    if items.is_empty() {
        return output::print("nothing to collect");
    }
    let rows = items.iter().map(|item| vec![item.path.display().to_string(), words(item)]);
    output::print(&output::table(&["WHAT", "DONE"], rows).to_string())
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
