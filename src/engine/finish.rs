//! What follows when a run is over: a claim of completion is checked against the facts, and failures are told apart.

use super::decided::Decided;
use super::delivery::{complete, follow_closed_pr, verify};
use super::effect::{Action, Said};
use super::landing;
use super::phases::{ask_whether_merged, look_again, wait_for_human};
use super::remarks;
use super::retry;
use super::reviewing;
use super::select;
use crate::config::policy::ForgeKind;
use crate::domain::evidence::{Evidence, EvidenceKind, Receipt, Verification};
use crate::domain::failure::{RunFailure, TurnError};
use crate::domain::job::{BlockCause, HumanWait, Job, ReleaseReason, ReworkCause, ReworkTrigger, Stage, Wait, Work};
use crate::domain::pr::PrState;
use crate::domain::remark::RemarkStatus;
use crate::domain::run::{Declared, RunOutcome, RunReport, StopReason};
use crate::domain::words::count;

/// How long a run that ended well without a declared result waits before the next one continues it.
const CONTINUATION_DELAY: std::time::Duration = std::time::Duration::from_secs(1);
/// Consecutive runs that may be lost with the runner before the job is blocked.
const LOSSES: u32 = 10;
/// How soon a start that the tracker prevented is tried again. Not counted as a retry.
const TRACKER_RETRY: std::time::Duration = std::time::Duration::from_secs(10);

pub fn run_ended(job: &mut Job, report: RunReport, out: &mut Decided<'_>) {
    let Stage::Working { work, run, stopping, .. } = job.stage.clone() else { return };
    // A reviewer makes no commits, and its conversation and summary are not the worker's.
    let reviews = matches!(work, Work::Review { .. });
    if report.head.is_some() && !reviews {
        job.delivery.head = report.head.clone();
    }
    if report.made_commits() && !reviews {
        job.delivery.made_by = Some(run.clone());
        job.delivery.made_commits(&run);
    }
    if report.session.is_some() {
        *job.session_of(&work) = report.session.clone();
    }
    if let (Some(Declared::Done { summary }), false) = (&report.declared, reviews) {
        job.evidence.summary = Some(summary.clone());
    }
    if !matches!(report.outcome, RunOutcome::Failed { failure: RunFailure::Lost }) {
        job.losses = 0;
    }
    let stopped = stopping.clone();
    let outcome = what_really_ended_it(stopping, report.outcome.clone());
    out.note(job, Some(&run), outcome.code(), format!("run {run} ended: {}", in_words(&outcome)));
    if report.outcome == RunOutcome::Done && !reviews {
        job.evidence.salvage = None;
    }
    if let Some(salvage) = &report.salvage {
        job.evidence.salvage = Some(salvage.reference.clone());
        let failure = match &outcome {
            RunOutcome::Failed { failure } => Some(failure.clone()),
            _ => None,
        };
        let said = Said::Salvaged { run: run.clone(), salvage: salvage.clone(), failure };
        out.act(Action::Comment { key: format!("salvaged:{run}"), said });
    }
    remarks::after_run(job, &run, report.outcome == RunOutcome::Done && report.made_commits());
    if let Some(PrState::Merged { commit }) = job.delivery.pr.as_ref().map(|pr| pr.state.clone()) {
        complete(job, commit, false, out);
        return;
    }
    job.evidence.last_failure = None;
    if let (Some(StopReason::Superseded), Some(pr)) = (&stopped, &job.delivery.pr)
        && pr.state == PrState::Closed
    {
        let number = pr.number;
        follow_closed_pr(job, number, out);
        return;
    }
    match outcome {
        RunOutcome::Done => ended_well(job, work, &report, out),
        RunOutcome::Failed { failure } => failed(job, work, failure, out),
        RunOutcome::Killed { reason } => killed(job, work, reason, out),
    }
}

/// Combines the reason for stopping a run with how its process ended. The reason outranks the process, except that finished work stays
/// finished where the reason would only have interrupted it.
fn what_really_ended_it(stopping: Option<StopReason>, outcome: RunOutcome) -> RunOutcome {
    match (stopping, outcome) {
        (
            Some(
                StopReason::KillSwitch
                | StopReason::ObserveMode
                | StopReason::Shutdown
                | StopReason::Quota
                | StopReason::DailyBudget
                | StopReason::FreshStart,
            ),
            RunOutcome::Done,
        ) => RunOutcome::Done,
        (Some(StopReason::Limit { failure }), _) => RunOutcome::Failed { failure },
        (Some(reason), _) => RunOutcome::Killed { reason },
        (None, RunOutcome::Killed { reason: StopReason::Limit { failure } }) => RunOutcome::Failed { failure },
        (None, outcome) => outcome,
    }
}

fn in_words(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Done => "done".into(),
        RunOutcome::Failed { failure } => failure.to_string(),
        RunOutcome::Killed { reason } => format!("stopped ({})", reason.code()),
    }
}

fn ended_well(job: &mut Job, work: Work, report: &RunReport, out: &mut Decided<'_>) {
    if let Some(Declared::Blocked { reason }) = &report.declared {
        out.block(job, BlockCause::WorkerAsked { question: reason.clone() }, work);
        return;
    }
    if let Work::Review { head } = work {
        reviewing::ended(job, head, report, out);
        return;
    }
    if landing::is_preparation(&work) {
        job.delivery.prepared_head = report.head.clone().or_else(|| job.current_head().cloned());
        if let (false, Some(pr)) = (report.made_commits(), job.delivery.pr.clone()) {
            // Nothing had to be done: the head has not changed, and what was said about it still holds.
            job.failures = 0;
            look_again(job, &pr, out);
            return;
        }
    }
    let declared_done = matches!(report.declared, Some(Declared::Done { .. }));
    let has_work = report.commits_ahead > 0 && report.head.is_some();
    // A rework that changes nothing and answers nothing is a failed run, never a passed one. If something has to be fixed, a declared
    // "done" without a commit is a contradiction.
    let is_rework = matches!(work, Work::Rework { .. });
    let progressed = report.made_commits() || answered_something(job) || !report.evidence.is_empty() && !is_rework;
    let claims = declared_done && (!is_rework || wants_a_commit(&work));
    if !progressed && !claims {
        failed(job, work, RunFailure::NoProgress, out);
        return;
    }
    let contradictions = contradictions(job, &work, report, out);
    let receipt = Receipt {
        verification: if contradictions.is_empty() { Verification::Unverified } else { Verification::Contradicted },
        head: report.head.clone(),
        base: report.base.clone(),
        commits: report.commits_ahead,
        facts: facts(report, &contradictions),
        gates: Vec::new(),
    };
    job.evidence.receipt = Some(receipt);
    job.failures = 0;
    if !contradictions.is_empty() {
        let cause = ReworkCause {
            trigger: ReworkTrigger::Contradicted,
            summary: contradictions.join("; "),
            evidence: contradictions
                .iter()
                .map(|text| Evidence { kind: EvidenceKind::Note { text: text.clone() }, timestamp: out.now })
                .collect(),
        };
        take_back_workers_move(job, out);
        out.rework(job, cause);
        return;
    }
    if out.policy.directories && declared_done {
        hand_over(job, out);
        return;
    }
    if let (true, Some(cause)) = (has_work, remarks::wanted_rework(job, out.now)) {
        // Remarks were made during the run and not read by it. Nothing is published over a person's objection.
        out.rework(job, cause);
        return;
    }
    match (&report.head, has_work) {
        (Some(head), true) if declared_done || out.policy.pr.forge != ForgeKind::None => {
            job.evidence.no_progress_with = None;
            job.continuations = 0;
            verify(job, head.clone(), out);
        }
        _ => {
            // Progress without a declared end: the ticket is still active, so the work continues, but not for ever. Words alone do not
            // justify a third run.
            if !report.made_commits() {
                out.no_progress = true;
            }
            job.continuations += 1;
            if job.continuations > out.policy.agent.max_turns {
                out.block(job, BlockCause::NoEnd { runs: job.continuations }, work);
                return;
            }
            let due = out.now + CONTINUATION_DELAY;
            out.queue(job, work, Wait::Continuation { due });
        }
    }
}

/// Moves the ticket back if its worker moved it on with a claim that does not hold.
fn take_back_workers_move(job: &mut Job, out: &mut Decided<'_>) {
    let Some(mut moved) = job.moved_by_worker.clone() else { return };
    if !select::is_live(&job.ticket.state, out.policy) {
        out.move_ticket(job, &moved.from);
        moved.taken_back = true;
        job.moved_by_worker = Some(moved);
    }
}

/// Ends a run in `directory` mode: the runner does not deliver what is in the directory. The ticket stays where the worker has put it, or
/// waits for a person.
fn hand_over(job: &mut Job, out: &mut Decided<'_>) {
    job.evidence.no_progress_with = None;
    job.continuations = 0;
    let state = job.ticket.state.clone();
    if select::is_terminal(&state, out.policy) {
        out.move_to(job, Stage::Released { why: ReleaseReason::TicketClosed { state }, since: out.now });
    } else if !select::is_live(&state, out.policy) {
        out.move_to(job, Stage::Released { why: ReleaseReason::NotActive { state }, since: out.now });
    } else {
        if let Some(run) = job.stage.run().cloned() {
            let said = Said::HandedOver { run: run.clone() };
            out.act(Action::Comment { key: format!("handed-over:{run}"), said });
        }
        wait_for_human(job, HumanWait::Directory, out);
    }
}

/// Returns what in the run's claim to be done is contradicted by the facts; empty if nothing is.
fn contradictions(job: &Job, work: &Work, report: &RunReport, out: &Decided<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let declared_done = matches!(report.declared, Some(Declared::Done { .. }));
    // In `directory` mode others decide what is pushed, and when. The claim is known to be false only if the head has not moved at all; a
    // directory without a repository shows nothing. Work that an earlier run handed over may be in the base by now, so that no commit is
    // beyond the base.
    let handed_over = |before: &Receipt| before.commits > 0 && before.verification != Verification::Contradicted;
    let has_moved = report.head.is_none() || report.head != report.head_before;
    let may_be_elsewhere =
        out.policy.directories && (has_moved || job.evidence.receipt.as_ref().is_some_and(handed_over));
    if report.commits_ahead == 0 {
        if declared_done && !may_be_elsewhere {
            found.push("the worker says done, but the branch has no commit beyond the base".to_owned());
        }
    } else if declared_done && wants_a_commit(work) && !report.made_commits() && !answered_something(job) {
        found.push("the worker says the rework is done, but made no new commit".to_owned());
    }
    for wanted in &out.policy.gates.required_evidence {
        if !report.evidence.iter().any(|evidence| evidence.kind.name() == wanted) {
            found.push(format!("gates.required_evidence asks for `{wanted}`, and the worker recorded none"));
        }
    }
    found.extend(report.contradicted.iter().cloned());
    if let (Some(pr), Some(head)) = (&job.delivery.pr, &report.head)
        && pr.state == PrState::Open
        && report.commits_ahead == 0
        && &pr.head != head
    {
        found.push(format!("the pull request's head {} is not the branch's {}", pr.head.short(), head.short()));
    }
    found
}

fn facts(report: &RunReport, contradictions: &[String]) -> Vec<String> {
    let commits = count(report.commits_ahead as usize, "commit", "commits");
    let mut facts = vec![format!("{commits} beyond the base")];
    if let Some(head) = &report.head {
        facts.push(format!("head {}", head.short()));
    }
    facts.push(count(report.evidence.len(), "evidence record", "evidence records"));
    facts.extend(contradictions.iter().cloned());
    facts
}

fn failed(job: &mut Job, work: Work, failure: RunFailure, out: &mut Decided<'_>) {
    job.evidence.last_failure = Some(failure.clone());
    match &failure {
        RunFailure::Turn { class: TurnError::RateLimit, .. } => {
            // The caller has paused the pool. Waiting for a usage limit is not counted as a retry.
            out.queue(job, work, Wait::Ready);
            return;
        }
        RunFailure::InputRequired { question } => {
            let question = question.clone();
            out.block(job, BlockCause::WorkerAsked { question }, work);
            return;
        }
        // Losing the runner is not the job's failure: the work continues at once, in the same conversation.
        RunFailure::Lost => {
            job.losses += 1;
            if job.losses >= LOSSES {
                let times = job.losses;
                out.block(job, BlockCause::LostAgain { times }, work);
            } else {
                out.queue(job, work, Wait::Ready);
            }
            return;
        }
        RunFailure::Tracker { .. } => {
            let due = out.now + TRACKER_RETRY;
            out.queue(job, work, Wait::Retry { attempt: job.failures + 1, due, error: failure });
            return;
        }
        // The attempt was complete, so repeating it needs something new.
        RunFailure::NoProgress
        | RunFailure::WorktreeGone
        | RunFailure::GaveUp { .. }
        | RunFailure::Turn { class: TurnError::Refused | TurnError::Context, .. } => {
            out.no_progress = true;
            // Set before the stage changes, because the note about the retry mentions it.
            job.evidence.no_progress_with = job.evidence.started_with.clone();
        }
        _ => {}
    }
    if failure.is_permanent() {
        out.block(job, BlockCause::Permanent { failure }, work);
        return;
    }
    job.failures += 1;
    if job.failures > out.policy.agent.max_retries {
        let attempts = job.failures;
        out.block(job, BlockCause::RetriesExhausted { attempts, last: failure }, work);
        return;
    }
    // A conversation that broke is not resumed.
    if !failure.is_infrastructure() {
        *job.session_of(&work) = None;
    }
    let seed = retry::seed_for(job.ticket.id.as_str(), job.attempts);
    let due = out.now + retry::backoff(job.failures, out.policy.agent.max_retry_backoff, seed);
    let attempt = job.failures + 1;
    out.queue(job, work, Wait::Retry { attempt, due, error: failure });
}

fn killed(job: &mut Job, work: Work, reason: StopReason, out: &mut Decided<'_>) {
    let state = job.ticket.state.clone();
    match reason {
        StopReason::TerminalState => {
            let open = job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open).map(|pr| pr.number);
            match open {
                Some(number) => ask_whether_merged(job, number, state, out),
                None => {
                    out.move_to(job, Stage::Released { why: ReleaseReason::TicketClosed { state }, since: out.now });
                }
            }
        }
        StopReason::NotActive => {
            out.move_to(job, Stage::Released { why: ReleaseReason::NotActive { state }, since: out.now });
        }
        StopReason::NotEligible { because } => {
            out.move_to(job, Stage::Released { why: ReleaseReason::NotEligible { because }, since: out.now });
        }
        StopReason::GivenBack => {
            out.move_to(job, Stage::Released { why: ReleaseReason::GivenBack, since: out.now });
        }
        StopReason::Operator => out.block(job, BlockCause::StoppedByOperator, work),
        StopReason::Budget { what, figure, cap } => {
            out.block(job, BlockCause::BudgetExceeded { what, figure, cap }, work);
        }
        StopReason::FreshStart => {
            *job.session_of(&work) = None;
            job.failures += 1;
            if job.failures > out.policy.agent.max_retries {
                let attempts = job.failures;
                out.block(job, BlockCause::RetriesExhausted { attempts, last: RunFailure::NoProgress }, work);
            } else {
                out.queue(job, work, Wait::Ready);
            }
        }
        StopReason::Superseded
        | StopReason::BlockerOpened
        | StopReason::NotVisible
        | StopReason::KillSwitch
        | StopReason::ObserveMode
        | StopReason::Shutdown
        | StopReason::Quota
        | StopReason::DailyBudget => out.queue(job, work, Wait::Ready),
        StopReason::Limit { failure } => failed(job, work, failure, out),
    }
}

/// Whether the work cannot be done without a commit. A person's remark may need no change at all; every other trigger is something to fix.
fn wants_a_commit(work: &Work) -> bool {
    let by_words = |trigger| {
        matches!(
            trigger,
            ReworkTrigger::TicketComment
                | ReworkTrigger::Operator
                | ReworkTrigger::ChangesRequested
                | ReworkTrigger::UnresolvedThread
                | ReworkTrigger::Bot
                | ReworkTrigger::Landing
        )
    };
    matches!(work, Work::Rework { cause } if !by_words(cause.trigger))
}

/// Whether the run that is over explained, declined or fixed a remark.
fn answered_something(job: &Job) -> bool {
    let Stage::Working { run, .. } = &job.stage else { return false };
    job.people.remarks.iter().any(|remark| match &remark.status {
        RemarkStatus::Explained { run: by, .. }
        | RemarkStatus::Declined { run: by, .. }
        | RemarkStatus::Answered { run: by, .. } => by == run,
        _ => false,
    })
}
