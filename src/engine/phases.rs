//! The transition table: `(stage, observation) -> (stage, actions)`. Every change of a job's stage is decided here.
//!
//! One match on the observation, inside it on the stage. What an observation means nothing to stays as it is: late and
//! duplicate news are harmless.

use super::assess::Assessment;
use super::decided::Decided;
use super::effect::{Action, Said};
use super::finish;
use crate::config::policy::{ClosedPrPolicy, ForgeKind, RolloutMode};
use crate::domain::evidence::{Evidence, EvidenceKind, GateResult, Receipt, Verification};
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::job::{
    BlockCause, CheckWait, DoneHow, HumanWait, HumanWord, Job, MergeHold, PrFacts, ReleaseReason, ReworkCause,
    ReworkTrigger, Stage, Wait, Work,
};
use crate::domain::pr::PrState;
use crate::domain::run::{RunReport, StopReason};

/// A branch update that does not show as a new head by then is asked for again.
const UPDATE_SHOWS_WITHIN: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// What was learned about a job. Names are past tense; data is what the decision needs.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "made, matched and gone within one decision")]
pub enum Observation {
    /// The live run of the job is over.
    RunEnded {
        report: RunReport,
    },
    GatesReported {
        head: CommitId,
        results: Vec<GateResult>,
    },
    BranchPushed {
        head: CommitId,
    },
    PrOpened {
        number: PrNumber,
        url: Option<String>,
    },
    PrAssessed {
        assessment: Assessment,
    },
    PrMerged {
        commit: Option<CommitId>,
        by_us: bool,
    },
    PrClosed {
        number: PrNumber,
    },
    MergeHindered {
        because: String,
    },
    MergeConflicted {
        files: Vec<String>,
    },
    MergeRefused {
        because: String,
    },
    HeadMoved,
    /// The branch is at a commit that no gate has seen.
    HeadNotGated {
        head: CommitId,
    },
    PublishRefused {
        effect: &'static str,
        because: String,
    },
    TicketTerminal {
        state: String,
    },
    TicketNotActive {
        state: String,
    },
    TicketNotEligible {
        because: String,
    },
    TicketGone,
    /// Active and eligible (again).
    TicketActive,
    /// A person moved the ticket from elsewhere to an active state.
    TicketReactivated,
    TicketMovedToRework {
        state: String,
    },
    TicketApproved,
    HumanCommented {
        word: HumanWord,
        addressed: bool,
    },
    OperatorStopped,
    OperatorRetried,
    OperatorApproved,
    OperatorForgot,
    SwitchPulled,
    ModeBecameObserve,
    ShutdownBegan,
}

/// Applies one observation to one job.
pub fn observe(job: &mut Job, observation: Observation, out: &mut Decided<'_>) {
    match observation {
        Observation::RunEnded { report } => finish::run_ended(job, report, out),
        Observation::GatesReported { head, results } => gates_reported(job, &head, results, out),
        Observation::BranchPushed { head } => branch_pushed(job, &head, out),
        Observation::PrOpened { number, url } => pr_opened(job, number, url, out),
        Observation::PrAssessed { assessment } => pr_assessed(job, assessment, out),
        Observation::PrMerged { commit, by_us } => pr_merged(job, commit, by_us, out),
        Observation::PrClosed { number } => pr_closed(job, number, out),
        Observation::MergeHindered { because } => {
            if let Stage::Merging { head, .. } = job.stage.clone() {
                let retry_at = out.now + out.policy.polling_interval;
                let hold = MergeHold::Forge { because, retry_at };
                out.move_to(job, Stage::ReadyToMerge { head, hold, since: out.now });
            }
        }
        Observation::MergeConflicted { files } => {
            if matches!(job.stage, Stage::Merging { .. } | Stage::WaitingForChecks { .. }) {
                out.rework(job, conflict(&files, out.now));
            }
        }
        Observation::MergeRefused { because } => {
            if matches!(job.stage, Stage::Merging { .. }) {
                out.block(job, BlockCause::MergeRefused { because }, Work::Implement);
            }
        }
        Observation::HeadMoved => {
            if let Stage::Merging { head, .. } = job.stage.clone() {
                wait_for_checks(job, CheckWait::Mergeability { head }, out);
            }
        }
        Observation::HeadNotGated { head } => {
            if judges_pr(&job.stage) {
                verify(job, head, out);
            }
        }
        Observation::PublishRefused { effect, because } => {
            if matches!(job.stage, Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. }) {
                let cause = BlockCause::EffectRefused { effect: effect.to_owned(), because };
                out.block(job, cause, Work::Implement);
            }
        }
        Observation::TicketTerminal { state } => ticket_terminal(job, state, out),
        Observation::TicketNotActive { state } => {
            leave(job, StopReason::NotActive, ReleaseReason::NotActive { state }, out)
        }
        Observation::TicketNotEligible { because } => {
            let stop = StopReason::NotEligible { because: because.clone() };
            not_eligible(job, stop, ReleaseReason::NotEligible { because }, out);
        }
        Observation::TicketGone => {
            let because = "the tracker no longer has the ticket".to_owned();
            leave_anywhere(job, StopReason::NotEligible { because }, ReleaseReason::Gone, out);
        }
        Observation::TicketActive => ticket_active(job, out),
        Observation::TicketReactivated => {
            if matches!(job.stage, Stage::Blocked { .. }) {
                operator_retried(job, out);
            }
        }
        Observation::TicketMovedToRework { state } => moved_to_rework(job, &state, out),
        Observation::TicketApproved | Observation::OperatorApproved => approved(job, out),
        Observation::HumanCommented { word, addressed } => human_commented(job, word, addressed, out),
        Observation::OperatorStopped => operator_stopped(job, out),
        Observation::OperatorRetried => operator_retried(job, out),
        Observation::OperatorForgot => {
            // What was done is taken back: a later start begins with nothing.
            job.pr = None;
            job.head = None;
            job.receipt = None;
            leave_anywhere(job, StopReason::GivenBack, ReleaseReason::GivenBack, out);
        }
        Observation::SwitchPulled => stop(job, StopReason::KillSwitch, out),
        Observation::ModeBecameObserve => stop(job, StopReason::ObserveMode, out),
        Observation::ShutdownBegan => stop(job, StopReason::Shutdown, out),
    }
}

/// Asks a live run to stop, once. A reason that takes the work away replaces one that would only interrupt it.
pub fn stop(job: &mut Job, reason: StopReason, out: &mut Decided<'_>) {
    let Stage::Working { run, stopping, .. } = &mut job.stage else { return };
    if let Some(known) = stopping {
        if takes_away(&reason) && !takes_away(known) {
            *known = reason.clone();
            job.updated_at = out.now;
            out.note(
                job,
                None,
                reason.code(),
                format!("the run that is being stopped will not go on: {}", reason.code()),
            );
        }
        return;
    }
    *stopping = Some(reason.clone());
    let run = run.clone();
    job.updated_at = out.now;
    out.note(job, Some(&run), reason.code(), format!("stopping run {run}: {}", reason.code()));
    out.act(Action::StopRun { run, reason });
}

/// Reasons after which the same work is not simply gone on with.
fn takes_away(reason: &StopReason) -> bool {
    matches!(
        reason,
        StopReason::TerminalState
            | StopReason::NotActive
            | StopReason::NotEligible { .. }
            | StopReason::Operator
            | StopReason::GivenBack
            | StopReason::Budget { .. }
    )
}

/// Stages that a look at the pull request decides on.
pub fn judges_pr(stage: &Stage) -> bool {
    matches!(
        stage,
        Stage::WaitingForChecks {
            on: CheckWait::Forge { .. } | CheckWait::Mergeability { .. } | CheckWait::BranchUpdate { .. },
            ..
        } | Stage::WaitingForHuman { .. }
            | Stage::ReadyToMerge { .. }
            | Stage::Blocked { cause: BlockCause::PrClosed { .. }, .. }
    )
}

fn wait_for_checks(job: &mut Job, on: CheckWait, out: &mut Decided<'_>) {
    if matches!(&job.stage, Stage::WaitingForChecks { on: old, .. } if *old == on) {
        return;
    }
    out.move_to(job, Stage::WaitingForChecks { on, since: out.now });
}

fn wait_for_human(job: &mut Job, on: HumanWait, out: &mut Decided<'_>) {
    if matches!(&job.stage, Stage::WaitingForHuman { on: old, .. } if *old == on) {
        return;
    }
    out.move_to(job, Stage::WaitingForHuman { on, since: out.now });
}

/// The work of a run is there: check it on that very commit, or go on to publish it.
pub fn verify(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    if out.policy.gates.has_task_gates {
        let branch = job.branch.name.clone();
        wait_for_checks(job, CheckWait::Gates { head: head.clone() }, out);
        out.act(Action::RunGate { branch, head });
    } else {
        publish(job, head, out);
    }
}

fn publish(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    if out.policy.pr.forge == ForgeKind::None || !out.policy.pr.auto_create {
        let branch = job.branch.name.clone();
        let said = Said::BranchReady { branch: branch.clone(), head: Some(head.clone()) };
        out.act(Action::Comment { key: format!("branch-ready:{head}"), said });
        wait_for_human(job, HumanWait::Branch { branch }, out);
        return;
    }
    let branch = job.branch.name.clone();
    wait_for_checks(job, CheckWait::Opening { head: head.clone() }, out);
    out.act(Action::PushBranch { branch, head });
}

fn gates_reported(job: &mut Job, head: &CommitId, results: Vec<GateResult>, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Gates { head: waited }, .. } = &job.stage else { return };
    if waited != head {
        return;
    }
    let failed: Vec<&GateResult> = results.iter().filter(|result| !result.passed).collect();
    let receipt = job.receipt.get_or_insert_with(|| Receipt {
        verification: Verification::Unverified,
        head: Some(head.clone()),
        base: None,
        commits: 0,
        facts: Vec::new(),
        gates: Vec::new(),
    });
    receipt.head = Some(head.clone());
    receipt.gates = results.clone();
    if failed.is_empty() {
        receipt.verification = Verification::Verified;
        publish(job, head.clone(), out);
        return;
    }
    receipt.verification = Verification::Contradicted;
    let cause = ReworkCause {
        trigger: ReworkTrigger::GateFailed,
        summary: format!("failed: {}", failed.iter().map(|gate| gate.name.as_str()).collect::<Vec<_>>().join(", ")),
        evidence: failed
            .iter()
            .map(|gate| Evidence {
                kind: EvidenceKind::Command {
                    command: gate.name.clone(),
                    output: gate.output_tail.clone(),
                    exit_code: gate.exit_code.unwrap_or(-1),
                },
                timestamp: out.now,
            })
            .collect(),
    };
    out.rework(job, cause);
}

fn branch_pushed(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Opening { head: waited }, .. } = &job.stage else { return };
    if waited == head {
        out.act(Action::OpenPr { branch: job.branch.name.clone(), head: head.clone() });
    }
}

fn pr_opened(job: &mut Job, number: PrNumber, url: Option<String>, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Opening { head }, .. } = &job.stage else { return };
    let head = head.clone();
    let said = Said::PrOpened {
        number,
        url,
        branch: job.branch.name.clone(),
        verification: job.receipt.as_ref().map(|receipt| receipt.verification),
    };
    out.act(Action::Comment { key: format!("pr:{number}"), said });
    out.act(Action::InspectPr { number });
    wait_for_checks(job, CheckWait::Forge { head }, out);
}

fn pr_assessed(job: &mut Job, assessment: Assessment, out: &mut Decided<'_>) {
    if !judges_pr(&job.stage) {
        return;
    }
    match assessment {
        Assessment::Rework(cause) => out.rework(job, cause),
        Assessment::Checks(on) => wait_for_checks(job, on, out),
        Assessment::Human(on) => wait_for_human(job, on, out),
        Assessment::NeedsUpdate { number, head } => {
            let asked = matches!(&job.stage, Stage::WaitingForChecks { on: CheckWait::BranchUpdate { head: h }, .. } if *h == head);
            if asked && out.now.since(job.stage.since()) < UPDATE_SHOWS_WITHIN {
                return;
            }
            if job.rebase_attempts >= out.policy.merge.max_rebase_attempts {
                let because =
                    "the base kept moving on; the branch was updated as often as merge.max_rebase_attempts allows";
                out.block(job, BlockCause::MergeRefused { because: because.into() }, Work::Implement);
                return;
            }
            job.rebase_attempts += 1;
            out.move_to(
                job,
                Stage::WaitingForChecks { on: CheckWait::BranchUpdate { head: head.clone() }, since: out.now },
            );
            out.act(Action::UpdateBranch { number, head });
        }
        Assessment::NeedsReview { head } => {
            if job.review_passes >= out.policy.review.max_passes {
                let limit = out.policy.review.max_passes;
                out.block(job, BlockCause::ReviewPasses { limit }, Work::Review { head });
                return;
            }
            job.review_passes += 1;
            out.queue(job, Work::Review { head }, Wait::Turn);
        }
        Assessment::Ready { head } => {
            let hold = if !out.policy.merge.auto {
                MergeHold::MergeDisabled
            } else if out.policy.rollout.mode != RolloutMode::Merge {
                MergeHold::RolloutForbids
            } else {
                MergeHold::Slot { behind: None }
            };
            // One that is ready already keeps its place in the queue and what it waits for.
            if !matches!(&job.stage, Stage::ReadyToMerge { head: known, .. } if *known == head) {
                out.move_to(job, Stage::ReadyToMerge { head, hold, since: out.now });
            }
        }
    }
}

/// A merge, by whomever, completes the job from any phase.
fn pr_merged(job: &mut Job, commit: Option<CommitId>, by_us: bool, out: &mut Decided<'_>) {
    match job.stage {
        Stage::Done { .. } => {}
        Stage::Working { .. } => stop(job, StopReason::Superseded, out),
        // Our own merge, seen before its answer came.
        Stage::Merging { .. } => complete(job, commit, true, out),
        _ => complete(job, commit, by_us, out),
    }
}

pub fn complete(job: &mut Job, commit: Option<CommitId>, by_us: bool, out: &mut Decided<'_>) {
    let merged_head = job.pr.as_ref().map(|pr| pr.head.clone());
    let how = DoneHow::Merged { commit: commit.clone(), by_us };
    out.move_to(job, Stage::Done { how, ticket_closed: false, since: out.now });
    if let Some(state) = &out.policy.tracker.completion_state {
        out.actions.retain(|action| !matches!(action, Action::MoveTicket { .. }));
        if !crate::domain::ticket::same_state(state, &job.ticket.state) {
            out.act(Action::MoveTicket { state: state.clone() });
        }
    }
    let verification = job.receipt.as_ref().map(|receipt| receipt.verification);
    out.act(Action::Comment {
        key: format!("done:{}", job.attempts),
        said: Said::Done { commit, by_us, verification },
    });
    out.act(Action::CleanUp { branch: job.branch.name.clone(), merged_head });
}

fn pr_closed(job: &mut Job, number: PrNumber, out: &mut Decided<'_>) {
    match (&job.stage, out.policy.pr.closed_pr) {
        // What is blocked stays so; a merge in flight is settled first.
        (Stage::Done { .. } | Stage::Released { .. } | Stage::Blocked { .. } | Stage::Merging { .. }, _) => {}
        (Stage::Working { .. }, ClosedPrPolicy::Stop | ClosedPrPolicy::NewBranch) => {
            stop(job, StopReason::Superseded, out);
        }
        _ => follow_closed_pr(job, number, out),
    }
}

/// What `pr.closed_pr_policy` says, once no run is in the way.
pub fn follow_closed_pr(job: &mut Job, number: PrNumber, out: &mut Decided<'_>) {
    match out.policy.pr.closed_pr {
        ClosedPrPolicy::Stop => {
            let resume = match &job.stage {
                Stage::Queued { work, .. } | Stage::Working { work, .. } => work.clone(),
                _ => Work::Implement,
            };
            out.block(job, BlockCause::PrClosed { number }, resume);
        }
        ClosedPrPolicy::Reopen => {
            out.act(Action::ReopenPr { number });
            if let (true, Some(pr)) = (judges_pr(&job.stage), &job.pr) {
                let head = pr.head.clone();
                wait_for_checks(job, CheckWait::Forge { head }, out);
            }
        }
        ClosedPrPolicy::NewBranch => {
            job.pr = None;
            job.head = None;
            job.receipt = None;
            job.branch.generation += 1;
            job.branch.name = crate::domain::branch::branch_name(
                &out.policy.branch_prefix,
                job.ticket.key.as_str(),
                &job.ticket.title,
                job.branch.generation,
            );
            // Closing a pull request is a verdict: it uses up a round, so that this cannot go on for ever.
            let cause = ReworkCause {
                trigger: ReworkTrigger::ChangesRequested,
                summary: format!("pull request {number} was closed without a merge; start afresh on a new branch"),
                evidence: Vec::new(),
            };
            out.rework(job, cause);
        }
    }
}

fn ticket_terminal(job: &mut Job, state: String, out: &mut Decided<'_>) {
    if let Stage::Done { ticket_closed, .. } = &mut job.stage {
        *ticket_closed = true;
        return;
    }
    leave_anywhere(job, StopReason::TerminalState, ReleaseReason::TicketClosed { state }, out);
}

/// Releases from anywhere but a merge in flight, which is settled first.
fn leave_anywhere(job: &mut Job, reason: StopReason, why: ReleaseReason, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } => stop(job, reason, out),
        Stage::Merging { .. } | Stage::Done { .. } => {}
        Stage::Released { why: old, .. } if *old == why => {}
        Stage::Released { why: ReleaseReason::GivenBack, .. } if !matches!(why, ReleaseReason::TicketClosed { .. }) => {
        }
        _ => out.move_to(job, Stage::Released { why, since: out.now }),
    }
}

/// Not active: running work stops, queued work is given back; what waits for people or CI keeps waiting.
fn leave(job: &mut Job, reason: StopReason, why: ReleaseReason, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } => stop(job, reason, out),
        Stage::Queued { .. } => out.move_to(job, Stage::Released { why, since: out.now }),
        _ => {}
    }
}

fn not_eligible(job: &mut Job, reason: StopReason, why: ReleaseReason, out: &mut Decided<'_>) {
    // A ticket that was never touched just waits, and says for what.
    if matches!(job.stage, Stage::Queued { .. }) && job.attempts == 0 {
        return;
    }
    leave_anywhere(job, reason, why, out);
}

fn ticket_active(job: &mut Job, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Released { why: ReleaseReason::GivenBack, .. } => {}
        Stage::Released { .. } => match job.pr.clone().filter(|pr| pr.state == PrState::Open) {
            // The work is there: what it needs is what the pull request needs.
            Some(pr) => look_again(job, &pr, out),
            None => out.queue(job, Work::Implement, Wait::Turn),
        },
        Stage::Done { ticket_closed: true, .. } => {
            job.branch.generation += 1;
            job.branch.name = crate::domain::branch::branch_name(
                &out.policy.branch_prefix,
                job.ticket.key.as_str(),
                &job.ticket.title,
                job.branch.generation,
            );
            job.pr = None;
            job.head = None;
            job.receipt = None;
            job.session = None;
            start_over(job, out);
        }
        _ => {}
    }
}

fn look_again(job: &mut Job, pr: &PrFacts, out: &mut Decided<'_>) {
    out.act(Action::InspectPr { number: pr.number });
    wait_for_checks(job, CheckWait::Mergeability { head: pr.head.clone() }, out);
}

fn reset_counters(job: &mut Job) {
    job.failures = 0;
    job.rework_cycles = 0;
    job.continuations = 0;
    job.rebase_attempts = 0;
    job.review_passes = 0;
    job.fruitless = None;
    job.budget_used = Default::default();
    job.budget_run_ms = 0;
}

/// A human's retry: fresh counters, the same branch.
fn start_over(job: &mut Job, out: &mut Decided<'_>) {
    reset_counters(job);
    let work = match &job.stage {
        Stage::Blocked { resume, .. } => resume.clone(),
        Stage::Queued { work, .. } => work.clone(),
        _ => Work::Implement,
    };
    out.queue(job, work, Wait::Turn);
}

fn moved_to_rework(job: &mut Job, state: &str, out: &mut Decided<'_>) {
    let cause = ReworkCause {
        trigger: ReworkTrigger::ReworkState,
        summary: format!("the ticket was moved to `{state}`"),
        evidence: Vec::new(),
    };
    match job.stage {
        Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. } => {
            out.rework(job, cause);
        }
        Stage::Blocked { .. } => {
            reset_counters(job);
            out.rework(job, cause);
        }
        _ => {}
    }
}

fn approved(job: &mut Job, out: &mut Decided<'_>) {
    let head = job.pr.as_ref().map(|pr| pr.head.clone()).or_else(|| job.head.clone());
    if let Some(head) = &head {
        job.approved_head = Some(head.clone());
        out.note(job, None, "approved", format!("{} was approved", head.short()));
    }
    match &job.stage {
        Stage::WaitingForHuman { on: HumanWait::Plan, .. } => out.queue(job, Work::Implement, Wait::Turn),
        Stage::Blocked { cause: BlockCause::ReviewPasses { .. }, .. } => {
            job.reviewed_head = head.clone();
            if let Some(head) = head {
                wait_for_checks(job, CheckWait::Mergeability { head }, out);
            }
        }
        _ => {}
    }
    if let Some(pr) = &job.pr {
        out.act(Action::InspectPr { number: pr.number });
    }
}

fn human_commented(job: &mut Job, word: HumanWord, addressed: bool, out: &mut Decided<'_>) {
    // Said once, however often it is reported.
    if job.unheard.contains(&word) {
        return;
    }
    match &job.stage {
        Stage::Working { run, stopping: None, .. } => {
            let run = run.clone();
            job.unheard.push(word.clone());
            out.act(Action::Steer { run, how: super::effect::Steering::Say { word } });
        }
        Stage::Working { .. } | Stage::Queued { .. } => job.unheard.push(word),
        Stage::Blocked { cause: BlockCause::WorkerAsked { .. } | BlockCause::NoNewEvidence { .. }, resume, .. } => {
            let resume = resume.clone();
            job.unheard.push(word);
            job.failures = 0;
            out.queue(job, resume, Wait::Turn);
        }
        Stage::WaitingForHuman { on: HumanWait::Plan, .. } => {
            job.unheard.push(word);
            out.queue(job, Work::Implement, Wait::Turn);
        }
        Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. } if addressed => {
            let cause = ReworkCause {
                trigger: ReworkTrigger::TicketComment,
                summary: format!("{} asks for a change", word.from),
                evidence: vec![Evidence { kind: EvidenceKind::Note { text: word.text.clone() }, timestamp: out.now }],
            };
            job.unheard.push(word);
            out.rework(job, cause);
        }
        Stage::Done { .. } | Stage::Released { .. } => {}
        _ => job.unheard.push(word),
    }
}

fn operator_stopped(job: &mut Job, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } => stop(job, StopReason::Operator, out),
        Stage::Queued { work, .. } => {
            let work = work.clone();
            out.block(job, BlockCause::StoppedByOperator, work);
        }
        Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. } => {
            out.block(job, BlockCause::StoppedByOperator, Work::Implement);
        }
        Stage::Blocked { .. } | Stage::Merging { .. } | Stage::Done { .. } | Stage::Released { .. } => {}
    }
}

fn operator_retried(job: &mut Job, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } | Stage::Merging { .. } | Stage::Done { .. } => {}
        Stage::Blocked { cause: BlockCause::MergeRefused { .. } | BlockCause::PrClosed { .. }, .. }
            if job.pr.is_some() =>
        {
            reset_counters(job);
            if let Some(pr) = job.pr.clone() {
                if pr.state == PrState::Closed {
                    out.act(Action::ReopenPr { number: pr.number });
                }
                look_again(job, &pr, out);
            }
        }
        _ => start_over(job, out),
    }
}

pub fn conflict(files: &[String], now: crate::domain::time::Timestamp) -> ReworkCause {
    ReworkCause {
        trigger: ReworkTrigger::MergeConflict,
        summary: format!("conflicts with the base in {}", files.join(", ")),
        evidence: files
            .iter()
            .map(|file| Evidence { kind: EvidenceKind::Note { text: format!("conflict in {file}") }, timestamp: now })
            .collect(),
    }
}
