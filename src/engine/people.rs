//! What people do to a job: approve, stop, retry, comment, move its ticket.

use super::decided::Decided;
use super::delivery::verify;
use super::effect::{Action, Steering};
use super::event::OperatorCommand;
use super::phases::{look_again, reset_counters, start_over, stop, wait_for_checks};
use super::state::State;
use crate::domain::evidence::{Evidence, EvidenceKind};
use crate::domain::job::{
    BlockCause, CheckWait, HumanMessage, HumanWait, Job, ReworkCause, ReworkTrigger, Stage, Wait, Work,
};
use crate::domain::phase::Phase;
use crate::domain::pr::PrState;
use crate::domain::run::StopReason;

/// What a command asks for is so already: nothing to do, and nothing wrong.
pub fn is_so_already(state: &State, command: &OperatorCommand) -> Option<String> {
    let OperatorCommand::Approve { ticket } = command else { return None };
    let job = state.jobs.get(ticket)?;
    let head = job.current_head().filter(|head| job.approved_head.as_ref() == Some(*head))?;
    // Elsewhere a second word still moves it.
    let judged = match &job.stage {
        Stage::WaitingForHuman { on, .. } => *on != HumanWait::Plan,
        Stage::WaitingForChecks { .. } | Stage::ReadyToMerge { .. } => true,
        _ => false,
    };
    let (key, phase) = (&job.ticket.key, job.stage.phase());
    judged.then(|| format!("{key} was approved already ({}); it is {phase}", head.short()))
}

/// Why a command would do nothing, for whoever gave it.
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
                job.branch.name
            ))
        }
        OperatorCommand::Approve { .. } if !can_be_approved(&job.stage) => {
            Some(format!("{key} is {phase}: there is no finished work to approve"))
        }
        OperatorCommand::Retry { .. } if matches!(phase, Phase::Merging | Phase::Done) => {
            Some(format!("{key} is {phase}: there is nothing to try again"))
        }
        OperatorCommand::Retry { .. } if matches!(job.stage, Stage::Working { stopping: None, .. }) => {
            Some(format!("{key} is {phase}: a run is at it already"))
        }
        OperatorCommand::Stop { .. } if over || matches!(phase, Phase::Merging | Phase::Blocked) => {
            Some(format!("{key} is {phase}: there is nothing to stop"))
        }
        OperatorCommand::Resume { .. } if job.pause.is_none() && state.meta.pause_all.is_some() => {
            Some(format!("{key} is not paused by itself: everything is; run `dirigent resume`"))
        }
        OperatorCommand::Resume { .. } if job.pause.is_none() => Some(format!("{key} is not paused; it is {phase}")),
        _ => None,
    }
}

fn can_be_approved(stage: &Stage) -> bool {
    match stage {
        Stage::WaitingForHuman { .. } | Stage::WaitingForChecks { .. } | Stage::ReadyToMerge { .. } => true,
        Stage::Blocked { cause, .. } => {
            matches!(cause, BlockCause::ReviewPasses { .. } | BlockCause::MergeRefused { .. })
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

pub fn approved(job: &mut Job, out: &mut Decided<'_>) {
    let head = job.current_head().cloned();
    if let Some(head) = &head {
        job.approved_head = Some(head.clone());
        out.note(job, None, "approved", format!("{} was approved", head.short()));
    }
    match &job.stage {
        Stage::WaitingForHuman { on: HumanWait::Plan, .. } => out.queue(job, Work::Implement, Wait::Ready),
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

pub fn human_commented(job: &mut Job, word: HumanMessage, addressed: bool, out: &mut Decided<'_>) {
    // Said once, however often it is reported.
    if job.undelivered.contains(&word) {
        return;
    }
    match &job.stage {
        Stage::Working { run, stopping: None, .. } => {
            let run = run.clone();
            job.undelivered.push(word.clone());
            out.act(Action::Steer { run, how: Steering::Say { word } });
        }
        Stage::Working { .. } | Stage::Queued { .. } => job.undelivered.push(word),
        Stage::Blocked { cause: BlockCause::WorkerAsked { .. } | BlockCause::NoNewEvidence { .. }, resume, .. } => {
            let resume = resume.clone();
            job.undelivered.push(word);
            job.failures = 0;
            out.queue(job, resume, Wait::Ready);
        }
        Stage::WaitingForHuman { on: HumanWait::Plan, .. } => {
            job.undelivered.push(word);
            out.queue(job, Work::Implement, Wait::Ready);
        }
        Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. } if addressed => {
            let cause = ReworkCause {
                trigger: ReworkTrigger::TicketComment,
                summary: format!("{} asks for a change", word.from),
                evidence: vec![Evidence { kind: EvidenceKind::Note { text: word.text.clone() }, timestamp: out.now }],
            };
            job.undelivered.push(word);
            out.rework(job, cause);
        }
        Stage::Done { .. } | Stage::Released { .. } => {}
        _ => job.undelivered.push(word),
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
        Stage::Blocked { .. } | Stage::Merging { .. } | Stage::Done { .. } | Stage::Released { .. } => {}
    }
}

pub fn operator_retried(job: &mut Job, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } | Stage::Merging { .. } | Stage::Done { .. } => {}
        Stage::Blocked {
            cause: BlockCause::MergeRefused { .. } | BlockCause::PrClosed { .. } | BlockCause::SetAside,
            ..
        } if job.pr.is_some() => {
            reset_counters(job);
            if let Some(pr) = job.pr.clone() {
                if pr.state == PrState::Closed {
                    out.act(Action::ReopenPr { number: pr.number });
                }
                look_again(job, &pr, out);
            }
        }
        Stage::Blocked { cause, .. } if awaits_a_check(cause) => match job.head.clone() {
            // The work is there, and what judged it may have been mended: ask it before an agent is paid again.
            Some(head) => {
                reset_counters(job);
                verify(job, head, out);
            }
            None => start_over(job, out),
        },
        _ => start_over(job, out),
    }
}

/// Finished work that did not get past a check of this machine.
fn awaits_a_check(cause: &BlockCause) -> bool {
    match cause {
        BlockCause::SetAside | BlockCause::ReworkLimitExceeded { trigger: ReworkTrigger::GateFailed, .. } => true,
        BlockCause::EffectRefused { effect, .. } => effect == "run_gate",
        _ => false,
    }
}
