//! One ticket: as it appears in a list, and with everything that is known about it.

use schemars::JsonSchema;
use serde::Serialize;

use super::time;
use crate::domain::run::{FinishedRun, RunOutcome};
use crate::domain::snapshot::{CapView, JobView, RunView};
use crate::domain::usage::Usage;
use crate::engine::state::Note;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TokenCounts {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub total_tokens: u64,
    pub cached_input_tokens: u64,
}

impl TokenCounts {
    pub fn of(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.fresh_input.saturating_add(usage.cached_input),
            output_tokens: usage.output,
            total_tokens: usage.tokens(),
            cached_input_tokens: usage.cached_input,
        }
    }
}

/// The current state of a ticket.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TicketShape {
    pub id: String,
    pub key: String,
    pub title: String,
    /// The state in the tracker.
    pub state: String,
    pub url: Option<String>,
    pub labels: Vec<String>,
    pub phase: String,
    /// One word for why the ticket is in its phase.
    pub reason: String,
    /// The reason as a sentence for people.
    pub sentence: String,
    /// What would move the ticket on, and who has to do it.
    pub next: String,
    /// Details that show the cause.
    pub detail: Option<String>,
    pub since: String,
    pub branch: String,
    pub head: Option<String>,
    pub approved_head: Option<String>,
    pub pull_request: Option<PullRequestShape>,
    pub attempts: u32,
    pub failures: u32,
    pub rework_cycles: u32,
    pub tokens: TokenCounts,
    pub cost_usd: f64,
    pub budget: Vec<CapShape>,
    pub retry_at: Option<String>,
    pub run: Option<RunShape>,
    pub verification: Option<String>,
    /// The conditions for a merge, in the order in which they are checked.
    pub conditions: Vec<ConditionShape>,
    /// The remarks that prevent a merge until a person accepts or overrules them.
    pub remarks: Vec<RemarkShape>,
    pub findings: Vec<FindingShape>,
    pub merged_commit: Option<String>,
    /// `false` when a person merged it.
    pub merged_by_us: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PullRequestShape {
    pub number: u64,
    pub url: Option<String>,
    pub state: String,
    pub checks: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CapShape {
    pub what: String,
    pub spent: String,
    pub cap: String,
}

impl CapShape {
    pub fn of(cap: &CapView) -> Self {
        Self { what: cap.what.clone(), spent: cap.spent.clone(), cap: cap.cap.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ConditionShape {
    pub name: String,
    /// `pass`, `pending` or `fail`.
    pub status: String,
    pub since: String,
    pub detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RemarkShape {
    /// The name by which an approval overrules this version of the remark.
    pub name: String,
    pub sentence: String,
}

/// A finding of one of Dirigent's own reviews.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FindingShape {
    pub id: String,
    pub severity: String,
    pub title: String,
    pub answer: String,
}

/// A live run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunShape {
    pub id: String,
    pub kind: String,
    pub attempt: u32,
    pub session_id: Option<String>,
    pub model: Option<String>,
    pub started_at: String,
    pub last_event_at: String,
    pub turn_count: u32,
    pub tokens: TokenCounts,
    pub cost_usd: f64,
    pub last_message: Option<String>,
    /// The tool that the agent is using now.
    pub tool: Option<String>,
    /// Since when the run has been silent, once that is longer than `agent.quiet_after_ms`.
    pub quiet_since: Option<String>,
    pub stopping: Option<String>,
}

impl RunShape {
    fn of(run: &RunView) -> Self {
        Self {
            id: run.id.clone(),
            kind: run.kind.name().to_owned(),
            attempt: run.attempt,
            session_id: session_id(run),
            model: run.model.clone(),
            started_at: time(run.started_at),
            last_event_at: time(run.last_event_at),
            turn_count: run.turn_count,
            tokens: TokenCounts::of(&run.usage),
            cost_usd: run.usage.cost_usd(),
            last_message: run.said.clone(),
            tool: run.tool.clone(),
            quiet_since: run.quiet_since.map(time),
            stopping: run.stopping.clone(),
        }
    }
}

/// Returns the session id in Symphony's form: the conversation and its turn.
pub fn session_id(run: &RunView) -> Option<String> {
    run.session.as_ref().map(|session| format!("{session}-{}", run.turn_count + 1))
}

pub fn ticket_shape(job: &JobView) -> TicketShape {
    TicketShape {
        id: job.id.clone(),
        key: job.key.clone(),
        title: job.title.clone(),
        state: job.state.clone(),
        url: job.url.clone(),
        labels: job.labels.clone(),
        phase: job.phase.name().to_owned(),
        reason: job.reason.clone(),
        sentence: job.sentence.clone(),
        next: job.next.clone(),
        detail: job.detail.clone(),
        since: time(job.since),
        branch: job.branch.clone(),
        head: job.head.clone(),
        approved_head: job.approved_head.clone(),
        pull_request: job.pr.as_ref().map(|pr| PullRequestShape {
            number: pr.number,
            url: pr.url.clone(),
            state: pr.state.clone(),
            checks: pr.checks.clone(),
        }),
        attempts: job.attempts,
        failures: job.failures,
        rework_cycles: job.rework_cycles,
        tokens: TokenCounts::of(&job.spent),
        cost_usd: job.spent.cost_usd(),
        budget: job.budget.iter().map(CapShape::of).collect(),
        retry_at: job.retry_at.map(time),
        run: job.run.as_ref().map(RunShape::of),
        verification: job.verification.clone(),
        conditions: job
            .conditions
            .iter()
            .map(|condition| ConditionShape {
                name: condition.name.name().to_owned(),
                status: condition.status.name().to_owned(),
                since: time(condition.since),
                detail: condition.detail.clone(),
            })
            .collect(),
        remarks: job
            .remarks
            .iter()
            .map(|remark| RemarkShape { name: remark.name.clone(), sentence: remark.sentence.clone() })
            .collect(),
        findings: job
            .review
            .iter()
            .flat_map(|review| &review.findings)
            .map(|shown| FindingShape {
                id: shown.finding.id.clone(),
                severity: shown.finding.severity.name().to_owned(),
                title: shown.finding.title.clone(),
                answer: shown.answer.clone(),
            })
            .collect(),
        merged_commit: job.merged_commit.clone(),
        merged_by_us: job.merged_by_us,
    }
}

/// The response of `GET /api/v1/{key}`: Symphony's fields first, then Dirigent's own.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TicketAnswer {
    pub issue_identifier: String,
    pub issue_id: String,
    /// `running`, `retrying`, or the phase.
    pub status: String,
    pub workspace: Option<WorkspaceShape>,
    pub attempts: AttemptCounts,
    pub running: Option<super::state::RunningShape>,
    pub retry: Option<super::state::RetryingShape>,
    pub logs: LogPlaces,
    pub recent_events: Vec<RecentEvent>,
    pub last_error: Option<String>,
    pub tracked: serde_json::Map<String, serde_json::Value>,
    pub ticket: TicketShape,
    /// The ticket's notes, oldest first.
    pub story: Vec<StoryLine>,
    /// Finished runs, oldest first.
    pub runs: Vec<RunAnswer>,
}

/// Where a live run works, below the root of all worktrees.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkspaceShape {
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptCounts {
    pub restart_count: u32,
    pub current_retry_attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LogPlaces {
    pub codex_session_logs: Vec<LogPlace>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LogPlace {
    pub label: String,
    /// The id of the run. Paths of this machine are not published.
    pub path: String,
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecentEvent {
    pub at: String,
    pub event: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoryLine {
    pub at: String,
    pub code: String,
    pub text: String,
    pub run: Option<String>,
}

impl StoryLine {
    pub fn of(note: &Note) -> Self {
        Self {
            at: time(note.at),
            code: note.code.clone(),
            text: note.text.clone(),
            run: note.run.as_ref().map(ToString::to_string),
        }
    }
}

/// A finished run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunAnswer {
    pub id: String,
    pub kind: String,
    pub attempt: u32,
    pub outcome: String,
    pub started_at: String,
    pub ended_at: String,
    pub turns: u32,
    pub tokens: TokenCounts,
    pub cost_usd: f64,
    pub model: Option<String>,
    pub head: Option<String>,
    /// The ref with its saved uncommitted work.
    pub salvage: Option<String>,
    pub log: String,
}

impl RunAnswer {
    pub fn of(finished: &FinishedRun) -> Self {
        let (run, report) = (&finished.run, &finished.report);
        Self {
            id: run.id.to_string(),
            kind: run.kind.name().to_owned(),
            attempt: run.attempt,
            outcome: outcome(&report.outcome).to_owned(),
            started_at: time(run.started_at),
            ended_at: time(finished.ended_at),
            turns: report.turns,
            tokens: TokenCounts::of(&run.progress.usage),
            cost_usd: run.progress.usage.cost_usd(),
            model: run.progress.model.clone(),
            head: report.head.as_ref().map(ToString::to_string),
            salvage: report.salvage.as_ref().map(|salvage| salvage.reference.clone()),
            log: log_url(run.id.as_str()),
        }
    }
}

pub fn outcome(outcome: &RunOutcome) -> &'static str {
    outcome.code()
}

fn log_url(run: &str) -> String {
    format!("/api/v1/runs/{run}/log")
}

pub fn ticket_answer(job: &JobView, notes: &[Note], runs: &[FinishedRun], newest_events: usize) -> TicketAnswer {
    let story: Vec<StoryLine> = notes.iter().map(StoryLine::of).collect();
    let recent = story.iter().rev().take(newest_events).rev();
    let live = job.run.as_ref().map(|run| LogPlace {
        label: "latest".to_owned(),
        path: run.id.clone(),
        url: log_url(&run.id),
    });
    let past = runs.iter().rev().map(|finished| LogPlace {
        label: format!("attempt {}", finished.run.attempt),
        path: finished.run.id.to_string(),
        url: log_url(finished.run.id.as_str()),
    });
    let running = super::state::RunningShape::of(job);
    let retry = super::state::RetryingShape::of(job);
    let status = match (&running, &retry) {
        (Some(_), _) => "running",
        (None, Some(_)) => "retrying",
        (None, None) => job.phase.name(),
    };
    TicketAnswer {
        issue_identifier: job.key.clone(),
        issue_id: job.id.clone(),
        status: status.to_owned(),
        workspace: job.run.as_ref().map(|run| WorkspaceShape { path: run.id.clone() }),
        attempts: AttemptCounts { restart_count: job.attempts.saturating_sub(1), current_retry_attempt: job.failures },
        running,
        retry,
        logs: LogPlaces { codex_session_logs: live.into_iter().chain(past).collect() },
        recent_events: recent
            .map(|line| RecentEvent { at: line.at.clone(), event: line.code.clone(), message: line.text.clone() })
            .collect(),
        last_error: (job.phase == crate::domain::phase::Phase::Blocked || job.failures > 0)
            .then(|| job.sentence.clone()),
        tracked: serde_json::Map::new(),
        ticket: ticket_shape(job),
        runs: runs.iter().map(RunAnswer::of).collect(),
        story,
    }
}
