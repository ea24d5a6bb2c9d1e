//! From commits to a merge: gates, the pull request, what its state asks for, and its end.

use super::assess::Assessment;
use super::decided::Decided;
use super::effect::{Action, Said};
use super::landing;
use super::phases::{self, judges_pr, stop, wait_for_checks, wait_for_human};
use super::remarks;
use super::reviewing;
use crate::config::policy::{ClosedPrPolicy, ForgeKind};
use crate::domain::evidence::{Evidence, EvidenceKind, GateResult, Receipt, Verification};
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::job::{
    Announced, BlockCause, CheckWait, DoneHow, HumanWait, Job, PrWrite, PrWriteKind, ReleaseReason, ReworkCause,
    ReworkTrigger, Stage, Work,
};
use crate::domain::pr::PrState;
use crate::domain::run::StopReason;

/// A run has delivered work: check exactly that commit, or go on and publish it.
pub fn verify(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    if out.policy.gates.has_task_gates {
        let branch = job.delivery.branch.name.clone();
        wait_for_checks(job, CheckWait::Gates { head: head.clone() }, out);
        out.act(Action::RunGate { branch, head });
    } else {
        publish(job, head, out);
    }
}

fn publish(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    if out.policy.pr.forge == ForgeKind::None || !out.policy.pr.auto_create {
        let branch = job.delivery.branch.name.clone();
        let said = Said::BranchReady { branch: branch.clone(), head: Some(head.clone()) };
        out.act(Action::Comment { key: format!("branch-ready:{head}"), said });
        wait_for_human(job, HumanWait::Branch { branch }, out);
        return;
    }
    let branch = job.delivery.branch.name.clone();
    wait_for_checks(job, CheckWait::Publishing { head: head.clone() }, out);
    out.act(Action::PushBranch { branch, head });
}

pub fn gates_reported(job: &mut Job, head: &CommitId, results: Vec<GateResult>, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Gates { head: waited }, .. } = &job.stage else { return };
    if waited != head {
        return;
    }
    let failed: Vec<&GateResult> = results.iter().filter(|result| !result.passed).collect();
    let receipt = job.evidence.receipt.get_or_insert_with(|| Receipt {
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
        // Said while the gates ran: nothing is published past a person's words.
        match remarks::wanted_rework(job, out.now) {
            Some(cause) => out.rework(job, cause),
            // What a person pushed, or the forge made of the branch: it is there, and not ours to push.
            None if is_published(job, head) => published(job, head, out),
            None => publish(job, head.clone(), out),
        }
        return;
    }
    if let Some(gate) = failed.iter().find(|gate| matches!(gate.exit_code, Some(126 | 127))) {
        // The shell could not run the command: that is ours to mend, and no agent is paid for it.
        let because = format!(
            "gate `{}` cannot be run (exit code {}): {}",
            gate.name,
            gate.exit_code.unwrap_or(127),
            last_line(&gate.output_tail)
        );
        out.block(job, BlockCause::EffectRefused { effect: "run_gate".into(), because }, Work::Implement);
        return;
    }
    receipt.verification = Verification::Contradicted;
    let cause = ReworkCause {
        trigger: ReworkTrigger::GateFailed,
        summary: format!("failed: {}", failed.iter().map(|gate| how_it_failed(gate)).collect::<Vec<_>>().join(", ")),
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
    let published = is_published(job, head);
    out.rework(job, cause);
    // Whoever pushes another one may have mended it.
    job.delivery.rework_head = published.then(|| head.clone());
}

fn how_it_failed(gate: &GateResult) -> String {
    let how = match gate.exit_code {
        _ if gate.timed_out => {
            format!("timed out: still running after {} s (gates.timeout_ms), then stopped", gate.duration_ms / 1000)
        }
        Some(code) => format!("exit code {code}"),
        None => "ended by a signal".into(),
    };
    format!("{} ({how})", gate.name)
}

fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it printed nothing")
}

pub fn branch_pushed(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Publishing { head: waited }, .. } = &job.stage else { return };
    if waited == head {
        published(job, head, out);
    }
}

/// Whether the open pull request shows this head.
fn is_published(job: &Job, head: &CommitId) -> bool {
    job.delivery.pr.as_ref().is_some_and(|pr| pr.state == PrState::Open && pr.head == *head)
}

/// While the gates looked at what the pull request had, somebody gave it another head: that one is judged.
pub fn published_head_moved(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Gates { head: gated }, .. } = &job.stage else { return };
    if gated != head && is_published(job, gated) {
        wait_for_checks(job, CheckWait::Mergeability { head: head.clone() }, out);
    }
}

/// The branch is where others see it. Its pull request is opened, or brought up to date.
fn published(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    let gated = job
        .evidence
        .receipt
        .as_ref()
        .is_some_and(|receipt| receipt.head.as_ref() == Some(head) && !receipt.gates.is_empty());
    if out.policy.pr.publish_gates && gated && out.policy.pr.forge == ForgeKind::Github {
        out.act(Action::PublishGates { head: head.clone() });
    }
    match job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open).map(|pr| pr.number) {
        // The push has brought it up to date. To ask for one would make a second, if somebody merged this one a moment ago.
        Some(number) => {
            super::answers::tell(job, out);
            reviewing::tell(job, out);
            if out.policy.pr.forge == ForgeKind::Github {
                out.act(Action::UpdatePr { number, ready: false });
            }
            out.act(Action::InspectPr { number });
            wait_for_checks(job, CheckWait::Forge { head: head.clone() }, out);
        }
        None => out.act(Action::OpenPr { branch: job.delivery.branch.name.clone(), head: head.clone() }),
    }
}

/// The branch holds a person's commits and ours: the two together are checked like any other work.
pub fn joined_with_theirs(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    job.delivery.remote_head = Some(head.clone());
    job.delivery.head = Some(head.clone());
    if matches!(job.stage, Stage::WaitingForChecks { on: CheckWait::Publishing { .. }, .. }) {
        out.note(job, None, "joined", format!("somebody had pushed to the branch: {} has both", head.short()));
        verify(job, head, out);
    }
}

pub fn pr_opened(job: &mut Job, number: PrNumber, url: Option<String>, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Publishing { head }, .. } = &job.stage else { return };
    let head = head.clone();
    if out.policy.pr.attach_to_tracker {
        if let (true, Some(url)) = (out.policy.pr.has_links, &url) {
            out.act(Action::AttachLink { url: url.clone(), title: format!("Pull request {number}") });
        }
        let said = Said::PrOpened {
            number,
            url,
            branch: job.delivery.branch.name.clone(),
            verification: job.evidence.receipt.as_ref().map(|receipt| receipt.verification),
            head: Some(head.clone()),
        };
        // What stands against it is told with the first look.
        job.delivery.announced = Some(Box::new(Announced { held: false, ..phases::to_announce(job, &head) }));
        out.act(Action::Comment { key: format!("pr:{number}"), said });
    }
    out.act(Action::InspectPr { number });
    wait_for_checks(job, CheckWait::Forge { head }, out);
}

pub fn pr_assessed(job: &mut Job, assessment: Assessment, asked_in_turn: bool, out: &mut Decided<'_>) {
    if !judges_pr(&job.stage) || is_no_way_out(job, &assessment) || landing::is_left_to_the_queue(job, &assessment) {
        return;
    }
    match assessment {
        Assessment::Rework(cause) => rework_of_head(job, cause, out),
        Assessment::Checks(on) => wait_for_checks(job, on, out),
        Assessment::Human(on) => wait_for_human(job, on, out),
        Assessment::NeedsUpdate { number, head } => landing::behind(job, number, head, asked_in_turn, out),
        Assessment::NeedsPreparation { head } => landing::prepare(job, &head, out),
        Assessment::NeedsReview { head } => reviewing::ask(job, head, out),
        Assessment::NeedsReady { number, head } => {
            out.act(Action::UpdatePr { number, ready: true });
            wait_for_checks(job, CheckWait::Mergeability { head }, out);
        }
        Assessment::Ready { head } => landing::ready(job, head, asked_in_turn, out),
    }
}

/// A job that gave up on its reviewer is not moved by checks that come and go.
fn is_no_way_out(job: &Job, assessment: &Assessment) -> bool {
    let Stage::Blocked { cause: BlockCause::ReviewUnreadable { head, .. }, .. } = &job.stage else { return false };
    matches!(assessment, Assessment::Checks(_)) && job.current_head() == Some(head)
}

/// What has to be mended on this very head, and what people want of whichever head there is.
fn rework_of_head(job: &mut Job, cause: ReworkCause, out: &mut Decided<'_>) {
    let is_bound = matches!(cause.trigger, ReworkTrigger::CheckFailed | ReworkTrigger::MergeConflict);
    out.rework(job, cause);
    job.delivery.rework_head = job.delivery.pr.as_ref().filter(|_| is_bound).map(|pr| pr.head.clone());
}

/// Whether a rework waits that is about another head than this one.
pub fn is_overtaken(job: &Job, head: &CommitId) -> bool {
    let is_queued = matches!(&job.stage, Stage::Queued { work: Work::Rework { .. }, .. });
    is_queued && job.delivery.rework_head.as_ref().is_some_and(|bound| bound != head)
}

/// Somebody pushed before a rework of the old head began: their commit is judged first, and may have made it unnecessary.
pub fn overtaken(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    if is_overtaken(job, head) {
        job.rework_cycles = job.rework_cycles.saturating_sub(1);
        wait_for_checks(job, CheckWait::Mergeability { head: head.clone() }, out);
    }
}

/// A merge, no matter by whom, completes the job from any phase.
pub fn pr_merged(job: &mut Job, commit: Option<CommitId>, by_us: bool, out: &mut Decided<'_>) {
    match job.stage {
        Stage::Done { .. } => {}
        Stage::Working { .. } => stop(job, StopReason::Superseded, out),
        // Our own merge, seen before its answer came.
        Stage::Merging { .. } => complete(job, commit, true, out),
        _ => complete(job, commit, by_us, out),
    }
}

pub fn complete(job: &mut Job, commit: Option<CommitId>, by_us: bool, out: &mut Decided<'_>) {
    let merged_head = job.delivery.pr.as_ref().map(|pr| pr.head.clone());
    let how = DoneHow::Merged { commit: commit.clone(), by_us };
    out.move_to(job, Stage::Done { how, ticket_closed: false, since: out.now });
    if let Some(state) = &out.policy.tracker.completion_state {
        out.actions.retain(|action| !matches!(action, Action::MoveTicket { .. }));
        if !crate::domain::ticket::same_state(state, job.intended_column()) {
            out.move_ticket(job, state);
        }
    }
    let verification = job.evidence.receipt.as_ref().map(|receipt| receipt.verification);
    out.act(Action::Comment {
        key: format!("done:{}", job.attempts),
        said: Said::Done { commit: commit.clone(), by_us, verification },
    });
    if let (Some(commit), Some(_)) = (commit, verification) {
        out.act(Action::WriteReceipt { commit });
    }
    out.act(Action::CleanUp { branch: job.delivery.branch.name.clone(), merged_head });
}

pub fn pr_closed(job: &mut Job, number: PrNumber, out: &mut Decided<'_>) {
    match (&job.stage, out.policy.pr.closed_pr) {
        // What is blocked stays so; a merge in flight is settled first.
        (Stage::Done { .. } | Stage::Released { .. } | Stage::Blocked { .. } | Stage::Merging { .. }, _) => {}
        // Both are closed: nobody wants it any more.
        (Stage::WaitingForChecks { on: CheckWait::TicketClosed { state }, .. }, _) => {
            let why = ReleaseReason::TicketClosed { state: state.clone() };
            out.move_to(job, Stage::Released { why, since: out.now });
        }
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
        // A new one is on its way; two would be open.
        ClosedPrPolicy::Reopen
            if matches!(job.stage, Stage::WaitingForChecks { on: CheckWait::Publishing { .. }, .. })
                || may_have_opened_another(job) => {}
        ClosedPrPolicy::Reopen => {
            out.act(Action::ReopenPr { number });
            if let (true, Some(pr)) = (judges_pr(&job.stage), &job.delivery.pr) {
                let head = pr.head.clone();
                wait_for_checks(job, CheckWait::Forge { head }, out);
            }
        }
        ClosedPrPolicy::NewBranch => {
            job.take_new_branch(&out.policy.branch_prefix);
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

/// The answer to an opening was lost: another pull request may stand in the place of the closed one, and the next opening finds it.
pub fn may_have_opened_another(job: &Job) -> bool {
    let write = job.delivery.pr.as_ref().and_then(|pr| pr.write.as_ref());
    matches!(
        write,
        Some(PrWrite::Sent { what: PrWriteKind::Open } | PrWrite::MaybeDone { what: PrWriteKind::Open, .. })
    )
}

/// A person pushed while a run was making something else: the next run begins at theirs.
pub fn apart(files: &[String], kept: &str, now: crate::domain::time::Timestamp) -> ReworkCause {
    let mut cause = conflict(files, now);
    cause.summary = format!(
        "somebody pushed to the branch meanwhile, and it contradicts the last run's commits{}; the branch is at theirs, and the run's commits are kept as {kept}",
        if files.is_empty() { String::new() } else { format!(" in {}", files.join(", ")) }
    );
    cause
}

pub fn conflict(files: &[String], now: crate::domain::time::Timestamp) -> ReworkCause {
    const NAMED: usize = 12;
    let mut summary = match files {
        [] => "conflicts with the base".to_owned(),
        files => {
            format!("conflicts with the base in {}", files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "))
        }
    };
    if files.len() > NAMED {
        summary.push_str(&format!(" and {} more", files.len() - NAMED));
    }
    ReworkCause {
        trigger: ReworkTrigger::MergeConflict,
        summary,
        evidence: files
            .iter()
            .map(|file| Evidence { kind: EvidenceKind::Note { text: format!("conflict in {file}") }, timestamp: now })
            .collect(),
    }
}
