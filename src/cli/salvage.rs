//! `salvage`: uncommitted work of runs that did not end well.

use serde_json::json;

use crate::domain::ids::RunId;
use crate::engine::permit;
use crate::workspace::{RestoreTo, SalvageEntry, Workspaces};

use super::Failure;
use super::args::{SalvageArgs, SalvageCommand};
use super::assemble;
use super::output;
use super::place::Context;

pub fn salvage(context: &Context, args: &SalvageArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let workspaces = assemble::workspaces(&loaded.settings)?;
    assemble::block_on(async {
        let entries = workspaces.salvage_list().await.map_err(Failure::plain)?;
        match &args.command {
            SalvageCommand::List { json } => list(&entries, *json),
            SalvageCommand::Show { run } => {
                let run = find(&entries, run)?;
                output::print(workspaces.salvage_show(&run).await.map_err(Failure::plain)?.trim_end())
            }
            SalvageCommand::Restore { run, branch } => restore(&workspaces, find(&entries, run)?, branch.clone()).await,
        }
    })
}

async fn restore(workspaces: &Workspaces, run: RunId, branch: Option<String>) -> Result<(), Failure> {
    let to = match branch {
        Some(branch) => RestoreTo::Branch(branch),
        None => RestoreTo::NewBranch(format!("salvage/{}", run.as_str().to_lowercase())),
    };
    let name = match &to {
        RestoreTo::Branch(name) | RestoreTo::NewBranch(name) => name.clone(),
    };
    let head = workspaces.salvage_restore(&permit::by_hand(), &run, to).await.map_err(Failure::plain)?;
    output::print(&format!("the work of run {run} is on branch {name} at {}", head.short()))
}

fn list(entries: &[SalvageEntry], json: bool) -> Result<(), Failure> {
    if json {
        let rows: Vec<_> = entries
            .iter()
            .map(|entry| json!({ "run": entry.run, "commit": entry.commit, "subject": entry.subject, "reference": entry.reference, "at": entry.at }))
            .collect();
        return output::print_json(&rows);
    }
    if entries.is_empty() {
        return output::print("nothing was salvaged: every run ended with its work committed");
    }
    let rows = entries.iter().map(|entry| {
        vec![
            entry.run.to_string(),
            output::time(entry.at),
            entry.commit.short().to_owned(),
            output::clip(&entry.subject, 60),
        ]
    });
    let table = output::table(&["RUN", "SAVED", "COMMIT", "WHAT"], rows);
    output::print(&format!("{table}\n\nshow one: dirigent salvage show RUN · take it: dirigent salvage restore RUN"))
}

/// A run by its id, or by an ending of it that fits only one.
fn find(entries: &[SalvageEntry], name: &str) -> Result<RunId, Failure> {
    let name = name.to_uppercase();
    let found: Vec<_> = entries.iter().filter(|entry| entry.run.as_str().ends_with(&name)).collect();
    match found.as_slice() {
        [entry] => Ok(entry.run.clone()),
        [] => Err(Failure::NotFound(format!("nothing was salvaged from a run `{name}`; see `dirigent salvage list`"))),
        _ => Err(Failure::NotFound(format!("`{name}` fits several runs; give more of its id"))),
    }
}
