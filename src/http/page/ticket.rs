//! The page of one ticket: its state, the commands for it, its diff with the receipt beside it, and its story.

use serde::Serialize;

use super::dashboard::{CapBar, caps};
use super::diff::{DiffText, DiffView, diff};
use super::frame::PageFrame;
use super::health;
use super::landing::{ConditionLine, condition};
use super::needs::{self, OutsideLink, TicketButtons};
use super::past::{PastRun, StoryDay, past_run, story};
use super::peek::PeekView;
use super::receipt::{ReceiptView, receipt_view};
use super::running::{self, WorkerCard};
use super::templates::{PageDraft, PageError};
use super::words::{AgeView, clip, count, cut, money, segment, sentence, tokens, web_link};
use crate::domain::job::{Job, SwitchSource};
use crate::domain::run::FinishedRun;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::words::short_run;
use crate::engine::state::Note;
use crate::http::logs::TranscriptLine;

/// What a ticket's page is made from.
pub struct TicketSources<'a> {
    pub picture: &'a Snapshot,
    pub repository: &'a str,
    pub job: &'a JobView,
    /// The job in the ledger.
    pub record: Option<&'a Job>,
    /// The ticket's notes, oldest first.
    pub notes: &'a [Note],
    pub runs: &'a [FinishedRun],
    /// Lines of the live run, else of the last one.
    pub peek: &'a [TranscriptLine],
    pub diff: &'a DiffText,
}

#[derive(Debug, Serialize)]
struct TicketPage {
    frame: PageFrame,
    key: String,
    path: String,
    title: String,
    phase: &'static str,
    phase_words: &'static str,
    age: AgeView,
    state: String,
    priority: Option<i64>,
    labels: Vec<String>,
    held: Option<Held>,
    sentence: String,
    next: String,
    detail: Option<String>,
    link: Option<OutsideLink>,
    ticket_link: Option<String>,
    buttons: TicketButtons,
    worker: Option<WorkerCard>,
    facts: Vec<Pair>,
    caps: Vec<CapBar>,
    conditions: Vec<ConditionLine>,
    holds: usize,
    findings: Vec<FindingRow>,
    remarks: Vec<RemarkRow>,
    waits_for: Vec<Related>,
    waited_by: Vec<Related>,
    receipt: Option<ReceiptView>,
    summary: Option<String>,
    diff: DiffView,
    approval: Option<Approval>,
    peek: Vec<PeekView>,
    peek_of: String,
    runs: Vec<PastRun>,
    story: Vec<StoryDay>,
    notes: usize,
}

#[derive(Debug, Serialize)]
struct Held {
    by: &'static str,
    since: AgeView,
}

#[derive(Debug, Serialize)]
struct Pair {
    name: &'static str,
    value: String,
}

#[derive(Debug, Serialize)]
struct FindingRow {
    id: String,
    severity: &'static str,
    title: String,
    place: Option<String>,
    summary: String,
    fix: String,
    answer: String,
}

#[derive(Debug, Serialize)]
struct RemarkRow {
    by: String,
    words: String,
    status: &'static str,
}

#[derive(Debug, Serialize)]
struct Related {
    key: String,
    path: Option<String>,
    words: String,
}

/// The approve button and the request that it sends.
#[derive(Debug, Serialize)]
struct Approval {
    path: String,
    key: String,
    short: String,
    /// The body of the request.
    body: String,
    anyway: bool,
}

const RUNS: usize = 40;

pub fn ticket(sources: &TicketSources<'_>) -> Result<PageDraft, PageError> {
    let TicketSources { picture, job, record, .. } = *sources;
    let now = picture.at;
    let verdict = health::verdict(picture);
    let switch = picture.switches.iter().find(|switch| switch.subject == job.key);
    let paused = switch.is_some_and(|switch| switch.source == SwitchSource::PauseTicket);
    let buttons = needs::buttons(job, paused);
    let diff = diff(sources.diff);
    let title = format!("{} {}", job.key, clip(&job.title, 80));
    let data = TicketPage {
        frame: PageFrame::new(picture, &verdict, "ticket", sources.repository, &title),
        key: job.key.clone(),
        path: segment(&job.key),
        title: cut(&job.title, 300),
        phase: job.phase.name(),
        phase_words: job.phase.words(),
        age: AgeView::of(job.since, now),
        state: job.state.clone(),
        priority: job.priority,
        labels: job.labels.clone(),
        held: switch.map(|switch| Held { by: switch.source.name(), since: AgeView::of(switch.since, now) }),
        sentence: sentence(&job.sentence, 1_000),
        next: sentence(&job.next, 600),
        detail: job.detail.as_deref().map(|detail| cut(detail, 4_000)),
        link: needs::link(job),
        ticket_link: web_link(job.url.as_deref()),
        approval: approval(job, &buttons, &diff),
        buttons,
        worker: job.run.as_ref().map(|run| running::worker(job, run, now)),
        facts: facts(job, record),
        caps: caps(&job.budget),
        holds: job.conditions.iter().filter(|condition| condition.passes()).count(),
        conditions: job.conditions.iter().map(|one| condition(one, now)).collect(),
        findings: findings(job),
        remarks: record.map(remarks).unwrap_or_default(),
        waits_for: waits_for(job, picture),
        waited_by: waited_by(job, picture),
        receipt: record.and_then(|record| record.evidence.receipt.as_ref()).map(|receipt| receipt_view(receipt, job)),
        summary: record.and_then(|record| record.evidence.summary.as_deref()).map(|summary| cut(summary, 2_000)),
        diff,
        peek: sources.peek.iter().map(PeekView::of).collect(),
        peek_of: peek_of(sources),
        runs: sources.runs.iter().rev().take(RUNS).map(past_run).collect(),
        story: story(sources.notes),
        notes: sources.notes.len(),
    };
    PageDraft::new("ticket", &data)
}

/// Returns the approve button, only if the page shows the diff of the head that would be approved.
fn approval(job: &JobView, buttons: &TicketButtons, diff: &DiffView) -> Option<Approval> {
    let head = buttons.approve.as_ref().filter(|head| diff.there && diff.head == **head)?;
    // The remarks against it that the page shows. Later ones are not overruled.
    let overrule: Vec<&str> = job.remarks.iter().map(|remark| remark.name.as_str()).collect();
    Some(Approval {
        path: segment(&job.key),
        key: job.key.clone(),
        short: head.chars().take(12).collect(),
        body: serde_json::json!({ "head": head, "overrule": overrule }).to_string(),
        anyway: buttons.anyway,
    })
}

fn facts(job: &JobView, record: Option<&Job>) -> Vec<Pair> {
    let mut all = Vec::new();
    let mut add = |name, value: Option<String>| all.extend(value.map(|value| Pair { name, value }));
    let short = |head: &String| head.chars().take(12).collect::<String>();
    add("branch", Some(job.branch.clone()));
    add("head", job.head.as_ref().map(short));
    add("pull request", job.pr.as_ref().map(|pr| format!("#{} {}, checks {}", pr.number, pr.state, pr.checks)));
    add(
        "approved",
        job.approved_head.as_ref().map(|approved| {
            let moved = job.head.as_ref().is_some_and(|head| head != approved) && !job.phase.is_terminal();
            if moved { format!("{}, which the branch has left since", short(approved)) } else { short(approved) }
        }),
    );
    add(
        "merged as",
        job.merged_commit.as_ref().map(|commit| {
            let by = if job.merged_by_us == Some(false) { " by a person" } else { "" };
            format!("{}{by}", short(commit))
        }),
    );
    add("runs", Some(format!("{} ({} failed in a row)", job.attempts, job.failures)));
    add("rework rounds", Some(job.rework_cycles.to_string()));
    add(
        "spent",
        Some(format!(
            "{} tokens, {}, {}",
            tokens(job.spent.tokens()),
            money(job.spent.cost_microusd),
            count(job.spent.turns as usize, "turn", "turns")
        )),
    );
    add(
        "reviewed",
        job.review.as_ref().map(|review| {
            let head = review.head.as_ref().map_or_else(|| "no head yet".to_owned(), short);
            format!("{head} ({} of {} reviews)", review.passes, review.max_passes)
        }),
    );
    add("salvage", record.and_then(|record| record.evidence.salvage.clone()));
    all
}

fn findings(job: &JobView) -> Vec<FindingRow> {
    let of = |shown: &crate::domain::snapshot::FindingView| FindingRow {
        id: shown.finding.id.clone(),
        severity: shown.finding.severity.name(),
        title: clip(&shown.finding.title, 200),
        place: shown.finding.place.clone(),
        summary: cut(&shown.finding.summary, 1_000),
        fix: cut(&shown.finding.suggested_fix, 1_000),
        answer: sentence(&shown.answer, 300),
    };
    job.review.iter().flat_map(|review| review.findings.iter().map(of)).collect()
}

fn remarks(record: &Job) -> Vec<RemarkRow> {
    use crate::domain::remark::RemarkStatus;
    let of = |remark: &crate::domain::remark::Remark| RemarkRow {
        by: remark.author.clone(),
        words: cut(&remark.sentence(), 600),
        status: match remark.status {
            RemarkStatus::Open => "open",
            RemarkStatus::Delivered { .. } => "delivered",
            RemarkStatus::Addressed { .. } => "a commit was made for it",
            RemarkStatus::Answered { .. } => "fixed",
            RemarkStatus::Explained { .. } => "explained",
            RemarkStatus::Declined { .. } => "declined",
            RemarkStatus::Withdrawn { .. } => "withdrawn",
            RemarkStatus::Overruled { .. } => "accepted as it is",
        },
    };
    record.people.remarks.iter().rev().take(40).map(of).collect()
}

fn waits_for(job: &JobView, picture: &Snapshot) -> Vec<Related> {
    let is_ours = |key: &str| picture.jobs.iter().any(|job| job.key == key);
    let of = |blocker: &crate::domain::snapshot::BlockerView| Related {
        key: blocker.key.clone(),
        path: is_ours(&blocker.key).then(|| segment(&blocker.key)),
        words: match (&blocker.state, blocker.is_over) {
            (_, true) => "over".to_owned(),
            (Some(state), false) => state.clone(),
            (None, false) => "not known".to_owned(),
        },
    };
    job.blocked_by.iter().map(of).collect()
}

fn waited_by(job: &JobView, picture: &Snapshot) -> Vec<Related> {
    let waiting = picture.jobs.iter().filter(|other| other.blocked_by.iter().any(|blocker| blocker.key == job.key));
    waiting
        .map(|other| Related {
            key: other.key.clone(),
            path: Some(segment(&other.key)),
            words: other.phase.words().to_owned(),
        })
        .collect()
}

fn peek_of(sources: &TicketSources<'_>) -> String {
    match (&sources.job.run, sources.runs.last()) {
        (Some(run), _) => format!("live: run {}", short_run(&run.id)),
        (None, Some(last)) => format!("the end of run {}", short_run(last.run.id.as_str())),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
#[path = "ticket_tests.rs"]
mod tests;
