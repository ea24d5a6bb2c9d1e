//! The transition table: `(stage, observation) -> (stage, actions)`. Every change of a job's stage is decided here.
//!
//! One match on the observation, and inside it one on the stage. A stage for which an observation means nothing stays as it is, so late and
//! duplicate observations are harmless.

pub mod moves;

use super::assess::Assessment;
use super::decided::Decided;
use super::delivery;
use super::effect::{Action, Said};
use super::finish;
use super::landing;
use super::people;
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::job::{
    Announced, BlockCause, CheckWait, HumanWait, Job, PrFacts, ReleaseReason, ReworkCause, Stage, Wait, Work,
};
use crate::domain::pr::PrState;
use crate::domain::remark::{Remark, RemarkKey};
use crate::domain::run::{RunReport, StopReason};

/// What was learned about a job. The names are in the past tense; the data is what the decision needs.
#[derive(Debug, Clone, PartialEq)]
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
    /// `asked_in_turn`: the look was asked after the job became first in line to be merged.
    PrAssessed {
        assessment: Assessment,
        asked_in_turn: bool,
    },
    PrMerged {
        commit: Option<CommitId>,
        by_us: bool,
    },
    PrClosed {
        number: PrNumber,
    },
    /// `counts`: whether this is one of the tries whose number is limited.
    MergeHindered {
        because: String,
        counts: bool,
    },
    /// The forge's own merge queue has taken the pull request.
    MergeQueued,
    MergeConflicted {
        files: Vec<String>,
    },
    MergeRefused {
        because: String,
    },
    /// The answer to the merge was lost.
    MergeMaybeDone,
    /// The pull request's base is not the one of the workflow.
    BaseChanged {
        base: String,
    },
    HeadMoved,
    /// The runner's own update of the branch made this head.
    BranchUpdated {
        head: CommitId,
        same_diff: bool,
    },
    /// The runner's push found a person's commits on the branch; this head has both.
    JoinedWithTheirs {
        head: CommitId,
    },
    /// The runner's push found a person's commits on the branch that conflict with its own. Theirs stay; the runner's are under the ref
    /// `kept`.
    ApartFromTheirs {
        files: Vec<String>,
        kept: String,
    },
    /// The branch is at a commit on which no gate has run.
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
    TicketGone {
        because: String,
    },
    /// The tracker does not show the ticket, which need not mean that it was deleted.
    TicketNotVisible,
    /// The pull request of a ticket that was closed is not merged.
    TicketStaysClosed {
        state: String,
    },
    /// The ticket is active and eligible (again).
    TicketActive,
    /// A person moved the ticket from elsewhere to an active state.
    TicketReactivated,
    TicketMovedToRework {
        state: String,
    },
    TicketApproved {
        head: CommitId,
        by: String,
    },
    /// A trusted person wrote something.
    RemarkMade {
        remark: Remark,
    },
    OperatorStopped,
    OperatorRetried,
    OperatorApproved {
        head: Option<CommitId>,
        by: String,
        overrule: Vec<RemarkKey>,
    },
    OperatorForgot,
    /// A person asks for changes to what is blocked.
    Rejected {
        remark: Remark,
        cause: ReworkCause,
    },
    SwitchPulled,
    ModeBecameObserve,
    ShutdownBegan,
}

/// Applies one observation to one job.
pub fn observe(job: &mut Job, observation: Observation, out: &mut Decided<'_>) {
    match observation {
        Observation::RunEnded { report } => finish::run_ended(job, report, out),
        Observation::GatesReported { head, results } => delivery::gates_reported(job, &head, results, out),
        Observation::BranchPushed { head } => delivery::branch_pushed(job, &head, out),
        Observation::PrOpened { number, url } => delivery::pr_opened(job, number, url, out),
        Observation::PrAssessed { assessment, asked_in_turn } => {
            delivery::pr_assessed(job, assessment, asked_in_turn, out)
        }
        Observation::PrMerged { commit, by_us } => delivery::pr_merged(job, commit, by_us, out),
        Observation::PrClosed { number } => delivery::pr_closed(job, number, out),
        Observation::MergeHindered { because, counts } => landing::hindered(job, because, counts, out),
        Observation::MergeMaybeDone => landing::maybe_done(job, out),
        Observation::MergeQueued => landing::queued(job, out),
        Observation::BaseChanged { base } => landing::base_changed(job, base, out),
        Observation::BranchUpdated { head, same_diff } => landing::branch_updated(job, head, same_diff, out),
        Observation::MergeConflicted { files } => {
            if landing::is_withdrawn(job) {
                out.block(job, BlockCause::SetAside, Work::Implement);
            } else if matches!(job.stage, Stage::Merging { .. } | Stage::WaitingForChecks { .. }) {
                out.rework(job, delivery::conflict(&files, out.now));
            }
        }
        Observation::MergeRefused { because } => {
            if matches!(job.stage, Stage::Merging { .. }) {
                out.block(job, BlockCause::MergeRefused { because }, Work::Implement);
            }
        }
        Observation::HeadMoved => {
            if landing::is_withdrawn(job) {
                out.block(job, BlockCause::SetAside, Work::Implement);
            } else if let Stage::Merging { head, .. } = job.stage.clone() {
                wait_for_checks(job, CheckWait::Mergeability { head }, out);
            }
        }
        Observation::JoinedWithTheirs { head } => delivery::joined_with_theirs(job, head, out),
        Observation::ApartFromTheirs { files, kept } => {
            if matches!(job.stage, Stage::WaitingForChecks { .. }) {
                out.rework(job, delivery::apart(&files, &kept, out.now));
            }
        }
        Observation::HeadNotGated { head } => {
            if judges_pr(&job.stage) {
                delivery::verify(job, head, out);
            }
        }
        Observation::PublishRefused { effect, because } => {
            if matches!(job.stage, Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. }) {
                let cause = BlockCause::EffectRefused { effect: effect.to_owned(), because };
                out.block(job, cause, Work::Implement);
            }
        }
        // A worker that moved its own ticket has thereby declared itself done; its run ends by itself.
        Observation::TicketTerminal { state } | Observation::TicketNotActive { state }
            if job.is_where_its_worker_put_it(&state) => {}
        Observation::TicketTerminal { state } => ticket_terminal(job, state, out),
        Observation::TicketNotActive { state } => {
            leave(job, StopReason::NotActive, ReleaseReason::NotActive { state }, out)
        }
        Observation::TicketNotEligible { because } => {
            let stop = StopReason::NotEligible { because: because.clone() };
            not_eligible(job, stop, ReleaseReason::NotEligible { because }, out);
        }
        Observation::TicketGone { because } => {
            leave_anywhere(job, StopReason::NotEligible { because }, ReleaseReason::Gone, out);
        }
        Observation::TicketNotVisible => stop(job, StopReason::NotVisible, out),
        Observation::TicketStaysClosed { state } => {
            if matches!(job.stage, Stage::WaitingForChecks { on: CheckWait::TicketClosed { .. }, .. }) {
                out.move_to(job, Stage::Released { why: ReleaseReason::TicketClosed { state }, since: out.now });
            }
        }
        Observation::TicketActive => ticket_active(job, out),
        Observation::TicketReactivated => {
            if matches!(job.stage, Stage::Blocked { .. }) {
                people::operator_retried(job, out);
            }
            if matches!(job.stage, Stage::WaitingForHuman { on: HumanWait::Directory, .. }) {
                start_over(job, out);
            }
        }
        Observation::TicketMovedToRework { state } => people::moved_to_rework(job, &state, out),
        Observation::TicketApproved { head, by } => people::approved(job, Some(head), &by, &[], out),
        Observation::OperatorApproved { head, by, overrule } => people::approved(job, head, &by, &overrule, out),
        Observation::RemarkMade { remark } => people::remark_made(job, remark, out),
        Observation::Rejected { remark, cause } => people::rejected(job, remark, cause, out),
        Observation::OperatorStopped => people::operator_stopped(job, out),
        Observation::OperatorRetried => people::operator_retried(job, out),
        // A merge under way is settled first, and merged work stays merged.
        Observation::OperatorForgot if matches!(job.stage, Stage::Merging { .. } | Stage::Done { .. }) => {}
        Observation::OperatorForgot => {
            // The forge must not merge what was given back, and its number is known only now.
            out.leave_forge_queue(job);
            // Forgets the results of the job's work, so that a later start begins without them.
            job.delivery.pr = None;
            job.delivery.head = None;
            job.delivery.remote_head = None;
            job.evidence.receipt = None;
            leave_anywhere(job, StopReason::GivenBack, ReleaseReason::GivenBack, out);
        }
        Observation::SwitchPulled => stop(job, StopReason::KillSwitch, out),
        Observation::ModeBecameObserve => stop(job, StopReason::ObserveMode, out),
        Observation::ShutdownBegan => stop(job, StopReason::Shutdown, out),
    }
}

/// Asks a live run to stop, once. A reason that takes the work away replaces one that would only interrupt it.
pub fn stop(job: &mut Job, reason: StopReason, out: &mut Decided<'_>) {
    let Stage::Working { run, stopping, .. } = &job.stage else { return };
    if let Some(known) = stopping {
        if takes_away(&reason) && !takes_away(known) {
            moves::set_stopping(job, reason.clone(), out.now);
            out.note(
                job,
                None,
                reason.code(),
                format!("the run that is being stopped will not go on: {}", reason.code()),
            );
        }
        return;
    }
    let run = run.clone();
    moves::set_stopping(job, reason.clone(), out.now);
    out.note(job, Some(&run), reason.code(), format!("stopping run {run}: {}", reason.code()));
    out.act(Action::StopRun { run, reason });
}

/// Whether the work does not simply continue after a stop for this reason.
fn takes_away(reason: &StopReason) -> bool {
    matches!(
        reason,
        StopReason::TerminalState
            | StopReason::NotActive
            | StopReason::NotEligible { .. }
            | StopReason::NotVisible
            | StopReason::Operator
            | StopReason::GivenBack
            | StopReason::Budget { .. }
    )
}

/// Whether a look at the pull request decides about a job in this stage.
pub fn judges_pr(stage: &Stage) -> bool {
    matches!(
        stage,
        Stage::WaitingForChecks {
            on: CheckWait::Forge { .. }
                | CheckWait::Mergeability { .. }
                | CheckWait::BranchUpdate { .. }
                | CheckWait::ForgeQueue { .. }
                | CheckWait::TicketClosed { .. },
            ..
        } | Stage::WaitingForHuman { .. }
            | Stage::ReadyToMerge { .. }
            | Stage::Blocked { cause: BlockCause::PrClosed { .. } | BlockCause::ReviewUnreadable { .. }, .. }
    )
}

pub fn wait_for_checks(job: &mut Job, on: CheckWait, out: &mut Decided<'_>) {
    if matches!(&job.stage, Stage::WaitingForChecks { on: old, .. } if *old == on) {
        return;
    }
    out.move_to(job, Stage::WaitingForChecks { on, since: out.now });
}

pub fn wait_for_human(job: &mut Job, on: HumanWait, out: &mut Decided<'_>) {
    if matches!(&job.stage, Stage::WaitingForHuman { on: old, .. } if *old == on) {
        return;
    }
    let head = match &on {
        HumanWait::Approval { head } | HumanWait::NoChecks { head } | HumanWait::Remarks { head, .. } => {
            Some(head.clone())
        }
        _ => None,
    };
    out.move_to(job, Stage::WaitingForHuman { on, since: out.now });
    if let Some(head) = head {
        announce(job, &head, out);
    }
}

/// Writes one comment for each head that people have to decide on. An approval below the comment is about that head, and about nothing that
/// came later.
fn announce(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    let new = to_announce(job, head);
    let told = |known: &Announced| known.head == new.head && known.run == new.run && (known.held || !new.held);
    if job.delivery.announced.as_deref().is_some_and(told) {
        return;
    }
    let run = new.run.as_ref().map(|run| format!(":{run}")).unwrap_or_default();
    let key = format!("waiting:{head}{run}{}", if new.held { ":held" } else { "" });
    let reason = job.in_comments_too(job.own_reason(out.now), &out.policy.tracker.mention);
    job.delivery.announced = Some(Box::new(new));
    let said = Said::Waiting { head: head.clone(), sentence: reason.sentence, next: reason.next };
    out.act(Action::Comment { key, said });
}

/// Returns what would be announced about a head: the last run that dealt with remarks, and whether other remarks stand against the head.
pub fn to_announce(job: &Job, head: &CommitId) -> Announced {
    let run = job.people.dealt_with().filter_map(Remark::dealt_with_by).max().cloned();
    let held = job.people.holding().any(|remark| !remark.is_accepted_by_approval());
    Announced { head: head.clone(), run, held }
}

fn ticket_terminal(job: &mut Job, state: String, out: &mut Decided<'_>) {
    if matches!(job.stage, Stage::Done { .. }) {
        moves::saw_ticket_closed(job);
        return;
    }
    close(job, state, out);
}

/// Handles a closed ticket. If its pull request is open as far as the runner knows, it may have been merged at the same moment, so the
/// forge is asked before the job ends.
pub fn close(job: &mut Job, state: String, out: &mut Decided<'_>) {
    let open = job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open).map(|pr| pr.number);
    match (&job.stage, open) {
        (Stage::WaitingForChecks { on: CheckWait::TicketClosed { .. }, .. }, _) => {}
        (Stage::Working { .. } | Stage::Merging { .. } | Stage::Done { .. } | Stage::Released { .. }, _)
        | (_, None) => {
            leave_anywhere(job, StopReason::TerminalState, ReleaseReason::TicketClosed { state }, out);
        }
        (_, Some(number)) => ask_whether_merged(job, number, state, out),
    }
}

pub fn ask_whether_merged(job: &mut Job, number: PrNumber, state: String, out: &mut Decided<'_>) {
    out.act(Action::InspectPr { number });
    wait_for_checks(job, CheckWait::TicketClosed { state }, out);
}

/// Releases the job from any stage except a merge under way, which is settled first.
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

/// Handles a ticket that is not active: running work stops and queued work is released; a job that waits for people or CI keeps waiting.
fn leave(job: &mut Job, reason: StopReason, why: ReleaseReason, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Working { .. } => stop(job, reason, out),
        Stage::Queued { .. } => out.move_to(job, Stage::Released { why, since: out.now }),
        _ => {}
    }
}

fn not_eligible(job: &mut Job, reason: StopReason, why: ReleaseReason, out: &mut Decided<'_>) {
    // A ticket on which no run was started just waits, and reports what for.
    if matches!(job.stage, Stage::Queued { .. }) && job.attempts == 0 {
        return;
    }
    leave_anywhere(job, reason, why, out);
}

/// Whether an active ticket leads the job out of this stage. For the other stages it is nothing new, and every look at the board shows it.
pub fn comes_back(stage: &Stage) -> bool {
    matches!(
        stage,
        Stage::Released { .. }
            | Stage::Done { .. }
            | Stage::WaitingForChecks { on: CheckWait::TicketClosed { .. }, .. }
    )
}

fn ticket_active(job: &mut Job, out: &mut Decided<'_>) {
    match &job.stage {
        Stage::Released { why: ReleaseReason::GivenBack, .. } => {}
        Stage::Released { .. } => match job.delivery.pr.clone().filter(|pr| pr.state == PrState::Open) {
            // The work exists, so the needs of its pull request decide.
            Some(pr) => look_again(job, &pr, out),
            None => out.queue(job, Work::Implement, Wait::Ready),
        },
        // The ticket was reopened before the forge had answered.
        Stage::WaitingForChecks { on: CheckWait::TicketClosed { .. }, .. } => {
            if let Some(pr) = job.delivery.pr.clone() {
                look_again(job, &pr, out);
            }
        }
        Stage::Done { ticket_closed: true, .. } => {
            job.take_new_branch(&out.policy.branch_prefix);
            job.session = None;
            job.people.begin_anew();
            start_over(job, out);
        }
        _ => {}
    }
}

pub fn look_again(job: &mut Job, pr: &PrFacts, out: &mut Decided<'_>) {
    out.act(Action::InspectPr { number: pr.number });
    wait_for_checks(job, CheckWait::Mergeability { head: pr.head.clone() }, out);
}

pub fn reset_counters(job: &mut Job) {
    job.failures = 0;
    job.rework_cycles = 0;
    job.continuations = 0;
    job.losses = 0;
    job.delivery.update_attempts = 0;
    job.delivery.merge_attempts = 0;
    job.delivery.reviews.passes = 0;
    job.delivery.reviews.unreadable = None;
    job.people.bot_rounds = 0;
    job.evidence.no_progress_with = None;
    job.spending.since_reset = Default::default();
    job.spending.run_ms_since_reset = 0;
}

/// Restarts the work after a person's retry: fresh counters, the same branch.
pub fn start_over(job: &mut Job, out: &mut Decided<'_>) {
    reset_counters(job);
    let work = match &job.stage {
        Stage::Blocked { resume, .. } => resume.clone(),
        Stage::Queued { work, .. } => work.clone(),
        _ => Work::Implement,
    };
    out.queue(job, work, Wait::Ready);
}
