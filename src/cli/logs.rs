//! `logs`: prints the transcript of a run, which records what its agent printed.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::ids::{RunId, TicketId};
use crate::runtime::RunnerFolder;
use crate::runtime::assembly::secrets;
use crate::worker::transcript_path;
use crate::workflow::Loaded;

use super::Failure;
use super::archive;
use super::args::LogsArgs;
use super::context::Context;
use super::output;
use super::snapshot_source;
use super::transcript_reader::TranscriptReader;
use super::transcript_view::TranscriptView;

pub fn logs(context: &Context, args: &LogsArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let run = match &args.name {
        Some(name) => named_run(&loaded, &place, name)?,
        None => newest_run(&place)?,
    };
    let path = transcript_path(&place.state_dir, &run);
    let mut reader = TranscriptReader::from_beginning(&path)
        .map_err(|error| Failure::NotFound(format!("run {run} has no transcript at {} ({error})", path.display())))?;
    output::complain(&format!("run {run}"));
    let mut page = view_of(&loaded, &place, &run, TranscriptView::new(args.verbose, args.json, secrets(&loaded)));
    copy(&mut reader, &mut page)?;
    while args.follow && is_live(&loaded, &place, &run)? {
        std::thread::sleep(Duration::from_millis(300));
        copy(&mut reader, &mut page)?;
    }
    copy(&mut reader, &mut page)?;
    let rest = page.end();
    if rest.is_empty() { Ok(()) } else { output::print(rest.trim_end()) }
}

/// Prints what was added to the transcript since the last call.
fn copy(reader: &mut TranscriptReader, page: &mut TranscriptView) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let printed = reader.read(|piece| out.write_all(page.take(piece).as_bytes()));
    match printed.and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Returns the view set up for the protocol of this run's agent.
pub fn view_of(loaded: &Loaded, place: &RunnerFolder, run: &RunId, view: TranscriptView) -> TranscriptView {
    let live = snapshot_source::look(loaded, place).ok().and_then(|seen| {
        let mut runs = seen.snapshot.jobs.into_iter().filter_map(|job| job.run);
        runs.find(|live| live.id == run.as_str()).map(|live| live.runtime)
    });
    let written = || Some(place.read_ledger().ok()?.finished_run(run).ok()??.run.runtime);
    view.of_agent(&live.or_else(written).unwrap_or_default(), loaded.settings.exec.events)
}

fn is_live(loaded: &Loaded, place: &RunnerFolder, run: &RunId) -> Result<bool, Failure> {
    let seen = snapshot_source::look(loaded, place)?;
    let named = |job: &crate::domain::snapshot::JobView| job.run.as_ref().is_some_and(|live| live.id == run.as_str());
    Ok(seen.behind.is_live() && seen.snapshot.jobs.iter().any(named))
}

pub fn named_run(loaded: &Loaded, place: &RunnerFolder, name: &str) -> Result<RunId, Failure> {
    if let Some(run) = run_ending_in(place, &name.to_uppercase()) {
        return Ok(run);
    }
    let job = archive::job(&snapshot_source::look(loaded, place)?, loaded, place, name)?;
    if let Some(run) = &job.run {
        return Ok(RunId::new(run.id.clone()));
    }
    let ledger = place.read_ledger()?;
    let last = ledger.finished_runs(&TicketId::new(job.id.clone()))?.pop();
    last.map(|finished| finished.run.id)
        .ok_or_else(|| Failure::NotFound(format!("{} has had no run: {}", job.key, job.sentence)))
}

/// Finds a run by its whole id or by the end of it, as shown to people. `None` if no run or more than one fits.
fn run_ending_in(place: &RunnerFolder, end: &str) -> Option<RunId> {
    if end.len() < output::SHORT_RUN {
        return None;
    }
    let names = std::fs::read_dir(place.state_dir.join("runs")).into_iter().flatten().flatten();
    let mut found = names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.ends_with(end));
    let first = found.next().map(RunId::new)?;
    found.next().is_none().then_some(first)
}

fn newest_run(place: &RunnerFolder) -> Result<RunId, Failure> {
    let folder: PathBuf = place.state_dir.join("runs");
    let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    // Run ids sort by time.
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .max()
        .map(RunId::new)
        .ok_or_else(|| Failure::NotFound("there has been no run yet".into()))
}
