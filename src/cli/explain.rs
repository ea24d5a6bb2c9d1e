//! `explain`: tells why a ticket is where it is and what would move it on, with its history and runs from the ledger.

use serde_json::json;

use crate::domain::ids::TicketId;
use crate::domain::run::FinishedRun;
use crate::engine::state::Note;

use super::Failure;
use super::archive;
use super::args::ExplainArgs;
use super::context::Context;
use super::output;
use super::snapshot_source;
use super::status;
use super::would;

const NEWEST_NOTES: usize = 500;

pub fn explain(context: &Context, args: &ExplainArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let seen = snapshot_source::look(&loaded, &place)?;
    let job = archive::job(&seen, &loaded, &place, &args.ticket)?;
    let ledger = place.read_ledger()?;
    let id = TicketId::new(job.id.clone());
    let notes = ledger.notes(Some(&id), NEWEST_NOTES)?;
    let runs = ledger.finished_runs(&id)?;
    let would = would::lines(&loaded, &place, &id)?;
    if args.json {
        return output::print_json(&json!({ "ticket": job, "would": would, "notes": notes, "runs": runs }));
    }
    let mut text = status::one(&job, &seen, &would);
    text.push_str("\n\nThe story so far:\n");
    text.push_str(&story(&notes));
    if !runs.is_empty() {
        text.push_str("\n\nRuns:\n");
        text.push_str(&runs.iter().map(run_line).collect::<Vec<_>>().join("\n"));
    }
    output::print(&text)
}

fn story(notes: &[Note]) -> String {
    let line = |note: &Note| format!("  {}  {}", output::time(note.at), output::short_run_ids(&note.text));
    notes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn run_line(finished: &FinishedRun) -> String {
    let run = &finished.run;
    let took = output::span(finished.ended_at.since(run.started_at).as_secs());
    let mut line = format!(
        "  {}  {} #{}  {took}  {}",
        output::short_run(run.id.as_str()),
        run.kind.name(),
        run.attempt,
        finished.report.outcome.code()
    );
    if let Some(head) = &finished.report.head {
        line.push_str(&format!("  head {} ({} ahead)", head.short(), finished.report.commits_ahead));
    }
    if let Some(salvage) = &finished.report.salvage {
        line.push_str(&format!(
            "  saved {} in {}",
            output::count(salvage.files as usize, "file", "files"),
            salvage.reference
        ));
    }
    line
}
