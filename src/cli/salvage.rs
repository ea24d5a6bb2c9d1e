//! `salvage`: lists, shows and restores salvages, the saved uncommitted work of runs that did not end well.

use serde_json::json;

use crate::domain::ids::RunId;
use crate::engine::permit;
use crate::workspace::{RestoreTo, SalvageEntry, Workspaces};

use super::Failure;
use super::args::{SalvageArgs, SalvageCommand};
use super::block_on;
use super::context::Context;
use super::output;
use super::review;
use super::snapshot_source;
use crate::runtime::find_ticket;
use crate::runtime::{RunnerFolder, assembly};
use crate::workflow::Loaded;

pub fn salvage(context: &Context, args: &SalvageArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let workspaces = assembly::workspaces(&loaded.settings)?;
    block_on(async {
        let entries = workspaces.salvage_list().await.map_err(Failure::plain)?;
        match &args.command {
            SalvageCommand::List { json } => list(&entries, *json),
            SalvageCommand::Show { run } => {
                let run = find(&place, &loaded, &entries, run)?;
                output::print(workspaces.salvage_show(&run).await.map_err(Failure::plain)?.trim_end())
            }
            SalvageCommand::Restore { run, branch } => {
                restore(&workspaces, find(&place, &loaded, &entries, run)?, branch.clone()).await
            }
        }
    })
}

async fn restore(workspaces: &Workspaces, run: RunId, branch: Option<String>) -> Result<(), Failure> {
    let asked = branch.is_some();
    let to = match branch {
        Some(branch) => RestoreTo::Branch(branch),
        None => RestoreTo::NewBranch(format!("salvage/{}", run.as_str().to_lowercase())),
    };
    let name = match &to {
        RestoreTo::Branch(name) | RestoreTo::NewBranch(name) => name.clone(),
    };
    let head = workspaces.salvage_restore(&permit::by_hand(), &run, to).await.map_err(Failure::plain)?;
    let look = format!("look: git log -p -1 {name}");
    let elsewhere = match asked {
        true => String::new(),
        false => format!("\n  onto the ticket's own branch instead: dirigent salvage restore {run} --branch NAME"),
    };
    output::print(&format!("the work of run {run} is on branch {name} at {}\n  {look}{elsewhere}", head.short()))
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
    output::print(&format!(
        "{table}\n\nshow one: dirigent salvage show RUN · take it: dirigent salvage restore RUN [--branch NAME] (a ticket's key stands for its newest)"
    ))
}

/// Finds a salvage by its run's id, by an ending of the id that fits only one run, or by its ticket, which means the newest salvage of
/// that ticket.
fn find(place: &RunnerFolder, loaded: &Loaded, entries: &[SalvageEntry], name: &str) -> Result<RunId, Failure> {
    match by_id(entries.iter().map(|entry| &entry.run), name).as_slice() {
        [run] => Ok((*run).clone()),
        [] => of_ticket(place, loaded, entries, name),
        _ => Err(Failure::NotFound(format!("`{name}` fits several runs; give more of its id"))),
    }
}

/// Returns the run with this id, else those whose ids end with it, in any case: ids of runs are upper-case, those of the trees that `try`
/// made are not.
fn by_id<'a>(runs: impl Iterator<Item = &'a RunId>, name: &str) -> Vec<&'a RunId> {
    let name = name.to_lowercase();
    let (whole, ending): (Vec<_>, Vec<_>) = runs
        .filter(|run| run.as_str().to_lowercase().ends_with(&name))
        .partition(|run| run.as_str().len() == name.len());
    if whole.is_empty() { ending } else { whole }
}

fn of_ticket(place: &RunnerFolder, loaded: &Loaded, entries: &[SalvageEntry], name: &str) -> Result<RunId, Failure> {
    let nothing = || Failure::NotFound(format!("nothing was salvaged from `{name}`; see `dirigent salvage list`"));
    let ledger = place.read_ledger()?;
    let snapshot = snapshot_source::from_ledger(loaded, ledger.as_ref())?;
    let (ticket, key) = match find_ticket(&snapshot, name) {
        Ok(ticket) => {
            let job = snapshot.jobs.iter().find(|job| job.id == ticket.as_str());
            (ticket, job.map(|job| job.key.clone()))
        }
        Err(_) => match ledger.archived_named(name)?.as_slice() {
            [job] => (job.ticket.id.clone(), Some(job.ticket.key.to_string())),
            _ => return Err(nothing()),
        },
    };
    let runs: Vec<RunId> = ledger.finished_runs(&ticket)?.into_iter().map(|finished| finished.run.id).collect();
    let is_try = |run: &RunId| key.as_ref().is_some_and(|key| review::is_try_of(run, key));
    // The newest salvage is last, as in the list.
    let saved: Vec<_> = entries.iter().filter(|entry| runs.contains(&entry.run) || is_try(&entry.run)).collect();
    let (newest, older) = saved.split_last().ok_or_else(nothing)?;
    if !older.is_empty() {
        let older: Vec<&str> = older.iter().map(|entry| entry.run.as_str()).collect();
        output::complain(&format!("the newest of {} saved; the others: {}", saved.len(), older.join(", ")));
    }
    Ok(newest.run.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_in_any_case_and_a_whole_id_wins() {
        let runs = ["01KA9ZJ3S2V6B8Q4TTK1MYNZ7E", "try-t-1-abc1234", "try-try-t-1-abc1234"].map(RunId::new);
        let found = |name: &str| by_id(runs.iter(), name).into_iter().map(RunId::as_str).collect::<Vec<_>>();
        assert_eq!(found("try-t-1-abc1234"), ["try-t-1-abc1234"]);
        assert_eq!(found("mynz7e"), ["01KA9ZJ3S2V6B8Q4TTK1MYNZ7E"]);
        assert_eq!(found("ABC1234").len(), 2);
        assert_eq!(found("elsewhere"), Vec::<&str>::new());
    }
}
