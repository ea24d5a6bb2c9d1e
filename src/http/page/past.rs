//! The past of a ticket: its finished runs with what each left, and its story.

use serde::Serialize;

use super::words::{clip, count, cut, day_and_time, moment, money, sentence, tokens};
use crate::domain::evidence::{EvidenceKind, FileAction};
use crate::domain::run::{Declared, FinishedRun};
use crate::domain::time::span;
use crate::domain::words::{short_run, short_run_ids};
use crate::engine::state::Note;

/// How many notes are shown, the newest ones.
const NOTES: usize = 200;

#[derive(Debug, Serialize)]
pub struct PastRun {
    run: String,
    id: String,
    kind: &'static str,
    attempt: u32,
    started: String,
    started_at: String,
    took: String,
    outcome: String,
    well: bool,
    said: Option<String>,
    head: Option<String>,
    commits: String,
    model: Option<String>,
    tokens: String,
    cost: String,
    evidence: Vec<String>,
    contradicted: Vec<String>,
    salvage: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct StoryDay {
    day: String,
    lines: Vec<StoryNote>,
}

#[derive(Debug, Serialize)]
pub struct StoryNote {
    time: String,
    at: String,
    text: String,
}

pub fn past_run(finished: &FinishedRun) -> PastRun {
    let (run, report) = (&finished.run, &finished.report);
    let (day, time) = day_and_time(run.started_at);
    let said = report.declared.as_ref().map(|declared| match declared {
        Declared::Done { summary } => format!("done: {summary}"),
        Declared::Blocked { reason } => format!("blocked: {reason}"),
        Declared::Failed { why } => format!("failed: {why}"),
    });
    let said = said.or_else(|| run.progress.said.clone());
    PastRun {
        run: short_run(run.id.as_str()).to_owned(),
        id: run.id.to_string(),
        kind: run.kind.name(),
        attempt: run.attempt,
        started: format!("{day} {time}"),
        started_at: moment(run.started_at),
        took: span(finished.ended_at.since(run.started_at).as_secs()),
        outcome: report.outcome.code().replace('_', " "),
        well: report.outcome.code() == "done",
        said: said.map(|said| sentence(&said, 400)).filter(|said| !said.is_empty()),
        head: report.head.as_ref().filter(|_| report.commits_ahead > 0).map(|head| head.short().to_owned()),
        commits: count(report.commits_ahead as usize, "commit", "commits"),
        model: run.progress.model.clone(),
        tokens: tokens(run.progress.usage.tokens().saturating_add(report.unreported_usage.tokens())),
        cost: money(run.progress.usage.cost_microusd.saturating_add(report.unreported_usage.cost_microusd)),
        evidence: report.evidence.iter().take(20).map(|evidence| proof(&evidence.kind)).collect(),
        contradicted: report.contradicted.iter().map(|line| sentence(line, 300)).collect(),
        salvage: report.salvage.as_ref().map(|salvage| {
            format!("{} saved in {}", count(salvage.files as usize, "file", "files"), salvage.reference)
        }),
    }
}

fn proof(kind: &EvidenceKind) -> String {
    match kind {
        EvidenceKind::Command { command, exit_code, .. } => format!("`{}` ended with {exit_code}", clip(command, 160)),
        EvidenceKind::File { action, path } => {
            let action = match action {
                FileAction::Created => "created",
                FileAction::Modified => "modified",
                FileAction::Deleted => "deleted",
            };
            format!("{action} {}", clip(path, 160))
        }
        EvidenceKind::Test { passed, failed } => format!("{passed} tests passed, {failed} failed"),
        EvidenceKind::Note { text } => clip(text, 300),
    }
}

/// Groups the notes by day, the newest first.
pub fn story(notes: &[Note]) -> Vec<StoryDay> {
    let mut days: Vec<StoryDay> = Vec::new();
    for note in notes.iter().rev().take(NOTES) {
        let (day, time) = day_and_time(note.at);
        let line = StoryNote { time, at: moment(note.at), text: cut(&short_run_ids(&note.text), 600) };
        match days.last_mut() {
            Some(last) if last.day == day => last.lines.push(line),
            _ => days.push(StoryDay { day, lines: vec![line] }),
        }
    }
    days
}
