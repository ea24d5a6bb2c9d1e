//! What people do to a job: approve, stop, retry, comment, move its ticket.

use super::decided::Decided;
use super::delivery::{may_have_opened_another, verify};
use super::effect::Action;
use super::event::OperatorCommand;
use super::phases::{look_again, reset_counters, start_over, stop, wait_for_checks};
use super::remarks;
use super::state::State;
use super::view;
use crate::config::policy::Policy;
use crate::domain::ids::{CommitId, TicketId};
use crate::domain::job::{
    Approval, BlockCause, CheckWait, ChecksSummary, HumanWait, Job, ReworkCause, ReworkTrigger, Stage, Wait, Work,
};
use crate::domain::phase::Phase;
use crate::domain::pr::PrState;
use crate::domain::remark::{Remark, RemarkEffect, RemarkKey};
use crate::domain::run::StopReason;
use crate::domain::time::Timestamp;

/// Returns an answer if the command asks for what is the case already, so that nothing has to be done. Only approvals are recognised.
pub fn is_so_already(state: &State, command: &OperatorCommand) -> Option<String> {
    let OperatorCommand::Approve { ticket, overrule, head: meant } = command else { return None };
    if !overrule.is_empty() {
        return None;
    }
    let job = state.jobs.get(ticket)?;
    // A remark, or a run's answer to one, that stands since the approval needs another approval.
    if job.people.holding().next().is_some() {
        return None;
    }
    let head = job.current_head().filter(|head| job.people.is_approved(head))?;
    if meant.as_ref().is_some_and(|meant| !head.is_called(meant.as_str())) {
        return None;
    }
    // In other stages a second approval still moves the job.
    let judged = match &job.stage {
        Stage::WaitingForHuman { on, .. } => *on != HumanWait::Plan,
        Stage::WaitingForChecks { .. } | Stage::ReadyToMerge { .. } => true,
        _ => false,
    };
    let (key, phase) = (&job.ticket.key, job.stage.phase());
    judged.then(|| format!("{key} was approved already ({}); it is {}", head.short(), phase.words()))
}

/// Returns the remarks that stand against a merge of this ticket.
pub fn holding(state: &State, ticket: &TicketId) -> Vec<RemarkKey> {
    state
        .jobs
        .get(ticket)
        .map(|job| job.people.holding().map(|remark| remark.key.clone()).collect())
        .unwrap_or_default()
}

/// Returns why a command would do nothing, for the person who gave it. `None` if it can be carried out.
pub fn objection(state: &State, command: &OperatorCommand) -> Option<String> {
    let job = command.ticket().and_then(|id| state.jobs.get(id))?;
    let (key, phase) = (&job.ticket.key, job.stage.phase());
    let over = matches!(phase, Phase::Done | Phase::Released);
    match command {
        OperatorCommand::Approve { .. }
            if matches!(job.stage, Stage::WaitingForHuman { on: HumanWait::Branch { .. }, .. }) =>
        {
            Some(format!(
                "{key}: no pull request is opened here (pr.forge), so there is nothing that an approval would merge; merge branch {} yourself, then close the ticket",
                job.delivery.branch.name
            ))
        }
        OperatorCommand::Approve { .. } if !can_be_approved(&job.stage) => {
            Some(format!("{key} is {phase}: there is no finished work to approve"))
        }
        OperatorCommand::Approve { .. }
            if !has_open_pr(job) && !matches!(job.stage, Stage::WaitingForHuman { on: HumanWait::Plan, .. }) =>
        {
            Some(format!("{key} is {phase}: no pull request is open, so there is nothing to approve yet"))
        }
        OperatorCommand::Approve { head: Some(head), .. } if !is_at(job, head) => {
            let now = job.current_head().map_or("nothing", |head| head.short());
            Some(format!("{key}: {} is not its head; that is {now} now. Look at it, then approve that", head.short()))
        }
        OperatorCommand::Approve { overrule, .. } if !stands_in_the_way(job, overrule).is_empty() => {
            let words = stands_in_the_way(job, overrule).join("\n  ");
            Some(format!(
                "{key}: these remarks stand against it:\n  {words}\n`dirigent approve {key} --anyway` overrules them, `dirigent reject {key} WHY` asks for changes"
            ))
        }
        OperatorCommand::Reject { .. } if over || matches!(phase, Phase::Merging) => {
            Some(format!("{key} is {phase}: there is nothing to change"))
        }
        OperatorCommand::Retry { .. } if matches!(phase, Phase::Merging | Phase::Done) => {
            Some(format!("{key} is {phase}: there is nothing to try again"))
        }
        OperatorCommand::Retry { .. } if matches!(job.stage, Stage::Working { stopping: None, .. }) => {
            Some(format!("{key} is {phase}: a run is at it already"))
        }
        OperatorCommand::Stop { .. } if over || matches!(phase, Phase::Blocked) => {
            Some(format!("{key} is {phase}: there is nothing to stop"))
        }
        OperatorCommand::Resume { .. } if job.people.pause.is_none() && state.meta.pause_all.is_some() => {
            Some(format!("{key} is not paused by itself: everything is; run `dirigent resume`"))
        }
        OperatorCommand::Resume { .. } if job.people.pause.is_none() => {
            Some(format!("{key} is not paused; it is {phase}"))
        }
        _ => None,
    }
}

/// Returns the remarks and standing verdicts that an approval would neither accept nor overrule.
fn stands_in_the_way(job: &Job, overrule: &[RemarkKey]) -> Vec<String> {
    let stands =
        |remark: &&Remark| !job.is_accepted_by_approval(remark) && !remark.by_bot && !overrule.contains(&remark.key);
    job.people.holding().filter(stands).map(|remark| remarks::clipped(&remark.sentence())).collect()
}

fn has_open_pr(job: &Job) -> bool {
    job.delivery.pr.as_ref().is_some_and(|pr| pr.state == PrState::Open)
}

/// Whether the job's work is at the commit that a person calls `head`.
fn is_at(job: &Job, head: &CommitId) -> bool {
    job.current_head().is_some_and(|current| current.is_called(head.as_str()))
}

/// Returns in one sentence where the job stands, as an answer to a person's command.
pub fn where_it_stands(state: &State, policy: &Policy, job: &Job, now: Timestamp) -> String {
    if let Some(head) = job.people.approved_head().filter(|head| waits_for_what_it_has(job, head)) {
        return format!("{}: {} is approved; it is looked at once more and goes on", job.ticket.key, head.short());
    }
    let reason = view::reason(state, policy, job, now);
    let paused = if job.people.pause.is_some() { " (paused)" } else { "" };
    format!("{} is {}{paused}: {}", job.ticket.key, job.stage.phase(), reason.sentence)
}

/// Whether the job waits only for the next look, which makes the given approval count.
fn waits_for_what_it_has(job: &Job, approved: &CommitId) -> bool {
    let Stage::WaitingForHuman { on, .. } = &job.stage else { return false };
    match on {
        HumanWait::Approval { head } | HumanWait::NoChecks { head } => head == approved,
        // The approval accepted or overruled the remarks that stood against the merge.
        HumanWait::Remarks { head, .. } => head == approved && job.people.holding().next().is_none(),
        _ => false,
    }
}

fn can_be_approved(stage: &Stage) -> bool {
    match stage {
        Stage::WaitingForHuman { .. } | Stage::WaitingForChecks { .. } | Stage::ReadyToMerge { .. } => true,
        Stage::Blocked { cause, .. } => {
            matches!(cause, BlockCause::ReviewUnreadable { .. } | BlockCause::MergeRefused { .. })
        }
        Stage::Queued { .. }
        | Stage::Working { .. }
        | Stage::Merging { .. }
        | Stage::Done { .. }
        | Stage::Released { .. } => false,
    }
}

pub fn moved_to_rework(job: &mut Job, state: &str, out: &mut Decided<'_>) {
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

/// Notes a person's approval of `head`. It accepts what a run has dealt with, and overrules the remarks in `overrule`.
pub fn approved(job: &mut Job, head: Option<CommitId>, by: &str, overrule: &[RemarkKey], out: &mut Decided<'_>) {
    let current = job.current_head().cloned();
    if head.as_ref().is_some_and(|head| !is_at(job, head)) {
        return;
    }
    let plans = matches!(job.stage, Stage::WaitingForHuman { on: HumanWait::Plan, .. });
    if !plans && !has_open_pr(job) {
        // Nobody can have looked at work that is not published.
        out.note(job, None, "nothing_to_approve", format!("{by} approves it, and no pull request is open"));
        return;
    }
    if let Some(head) = &current {
        let approval = Approval { head: head.clone(), by: by.to_owned(), at: out.now, by_review: false };
        job.people.approval = Some(approval);
        remarks::accept(job, by, head, overrule);
        job.delivery.update_attempts = 0;
        out.note(job, None, "approved", format!("{} was approved by {by}", head.short()));
    }
    match &job.stage {
        Stage::WaitingForHuman { on: HumanWait::Plan, .. } => out.queue(job, Work::Implement, Wait::Ready),
        Stage::Blocked { cause: BlockCause::ReviewUnreadable { .. }, .. } => {
            if let Some(head) = current {
                wait_for_checks(job, CheckWait::Mergeability { head }, out);
            }
        }
        _ => {}
    }
    if let Some(pr) = &job.delivery.pr {
        out.act(Action::InspectPr { number: pr.number });
    }
}

/// Reworks a blocked job for which a person asked for changes.
pub fn rejected(job: &mut Job, remark: Remark, cause: ReworkCause, out: &mut Decided<'_>) {
    if !matches!(job.stage, Stage::Blocked { .. }) {
        return;
    }
    let _ = remarks::take_in(job, remarks::RemarkReading::Said(remark), out.now);
    reset_counters(job);
    out.rework(job, cause);
}

/// Whether the next run needs a person's words. For a blocked review it does not: the words are for the next worker, and stand until then.
fn waits_for_words(stage: &Stage) -> bool {
    match stage {
        Stage::Blocked { cause, resume, .. } => {
            matches!(cause, BlockCause::WorkerAsked { .. } | BlockCause::NoNewEvidence { .. })
                && !matches!(resume, Work::Review { .. })
        }
        Stage::WaitingForHuman { on: HumanWait::Plan, .. } => true,
        _ => false,
    }
}

/// Handles a remark that a trusted person made on the ticket or by command.
pub fn remark_made(job: &mut Job, mut remark: Remark, out: &mut Decided<'_>) {
    if waits_for_words(&job.stage) {
        // An answer goes to the next run; it says nothing about existing work.
        remark.effect = RemarkEffect::None;
    }
    // Handled once, however often it is reported.
    let Some(remark) = remarks::take_in(job, remarks::RemarkReading::Said(remark), out.now) else { return };
    if let Some(action) = remarks::tell(job, &remark) {
        out.act(action);
        return;
    }
    match &job.stage {
        Stage::Blocked { cause: BlockCause::WorkerAsked { .. } | BlockCause::NoNewEvidence { .. }, resume, .. } => {
            let resume = resume.clone();
            job.failures = 0;
            match remarks::wanted_rework(job, out.now).filter(|_| matches!(resume, Work::Review { .. })) {
                Some(cause) => out.rework(job, cause),
                None => out.queue(job, resume, Wait::Ready),
            }
        }
        Stage::WaitingForHuman { on: HumanWait::Plan, .. } => out.queue(job, Work::Implement, Wait::Ready),
        Stage::WaitingForChecks { on: CheckWait::TicketClosed { .. } | CheckWait::Gates { .. }, .. } => {}
        Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. } => {
            if let Some(cause) = remarks::wanted_rework(job, out.now) {
                out.rework(job, cause);
            } else if let Some(pr) = job.delivery.pr.clone() {
                // The remark may hold a merge that was ready, which the next look decides.
                out.act(Action::InspectPr { number: pr.number });
                if let Stage::ReadyToMerge { head, .. } = job.stage.clone() {
                    wait_for_checks(job, CheckWait::Mergeability { head }, out);
                }
            }
        }
        _ => {}
    }
}

pub fn operator_stopped(job: &mut Job, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } => stop(job, StopReason::Operator, out),
        Stage::Queued { work, .. } => {
            let work = work.clone();
            out.block(job, BlockCause::StoppedByOperator, work);
        }
        Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. } => {
            out.block(job, BlockCause::SetAside, Work::Implement);
        }
        // The merge is not called back, but if it does not go through, it is not tried again.
        Stage::Merging { head, since, .. } => {
            let (head, since) = (head.clone(), *since);
            out.amend(job, Stage::Merging { head, withdrawn: true, since });
        }
        Stage::Blocked { .. } | Stage::Done { .. } | Stage::Released { .. } => {}
    }
}

pub fn operator_retried(job: &mut Job, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } | Stage::Merging { .. } | Stage::Done { .. } => {}
        // The pull request may need no work any more: it is looked at again, with fresh counters.
        _ if awaits_a_look(job) => {
            reset_counters(job);
            if let Some(pr) = job.delivery.pr.clone() {
                if pr.state == PrState::Closed {
                    out.act(Action::ReopenPr { number: pr.number });
                }
                look_again(job, &pr, out);
            }
        }
        Stage::Blocked { cause, .. } if awaits_a_check(cause) => match job.delivery.head.clone() {
            // The work exists, and the check that judged it may have been fixed, so it is checked before an agent is paid again.
            Some(head) => {
                reset_counters(job);
                verify(job, head, out);
            }
            None => start_over(job, out),
        },
        _ => start_over(job, out),
    }
}

/// Handles a person's push to a branch on which the rework rounds are used up: their head is judged like any other. The rounds stay used
/// up, so that a remaining problem blocks the job again, with the reason of this head.
pub fn pushed(job: &mut Job, out: &mut Decided<'_>) {
    let stuck = matches!(&job.stage, Stage::Blocked { cause: BlockCause::ReworkLimitExceeded { .. }, .. });
    if let Some(pr) = job.delivery.pr.clone().filter(|_| stuck && !may_have_opened_another(job)) {
        look_again(job, &pr, out);
    }
}

/// Whether the pull request has to be looked at before an agent is paid again: the cause that the job was blocked with may be gone by now.
fn awaits_a_look(job: &Job) -> bool {
    let Some(pr) = &job.delivery.pr else { return false };
    match &job.stage {
        Stage::WaitingForHuman { .. } => true,
        Stage::Blocked { cause, resume, .. } if !may_have_opened_another(job) => {
            // A person closed it while the job was blocked: it is reopened, and judged as it is now.
            let was_closed = pr.state == PrState::Closed && matches!(resume, Work::Rework { .. });
            was_closed
                || match cause {
                    BlockCause::MergeRefused { .. } | BlockCause::PrClosed { .. } | BlockCause::SetAside => true,
                    BlockCause::ReworkLimitExceeded { trigger: ReworkTrigger::MergeConflict, .. } => true,
                    BlockCause::ReworkLimitExceeded { trigger: ReworkTrigger::CheckFailed, .. } => {
                        pr.checks != ChecksSummary::Failed
                    }
                    _ => false,
                }
        }
        _ => false,
    }
}

/// Whether the job is blocked with finished work that did not get past a check or a write of the runner.
fn awaits_a_check(cause: &BlockCause) -> bool {
    match cause {
        BlockCause::SetAside | BlockCause::ReworkLimitExceeded { trigger: ReworkTrigger::GateFailed, .. } => true,
        // Blocked while the work was pushed or its pull request opened: the work is paid for already.
        BlockCause::EffectRefused { .. } => true,
        _ => false,
    }
}
