//! From commits to a merge: gates, the pull request, what its state requires, and how it ends.

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

/// Checks the work that a run delivered: runs the gates on exactly that commit, or publishes it if there are none.
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
    let is_contradicted = receipt.head.as_ref() == Some(head) && receipt.is_claim_contradicted();
    receipt.head = Some(head.clone());
    receipt.gates = results.clone();
    if failed.is_empty() {
        // Gates that pass do not make up for a claim that the facts contradict.
        receipt.verification = if is_contradicted { Verification::Contradicted } else { Verification::Verified };
        // Remarks made while the gates ran come first: nothing is published over a person's objection.
        match remarks::wanted_rework(job, out.now) {
            Some(cause) => out.rework(job, cause),
            // The head came from a person's push or from the forge. It is on the forge already, and not the runner's to push.
            None if is_published(job, head) => published(job, head, out),
            None => publish(job, head.clone(), out),
        }
        return;
    }
    if let Some(gate) = failed.iter().find(|gate| matches!(gate.exit_code, Some(126 | 127))) {
        // The shell could not run the command. A person has to fix that, and no agent is paid for it.
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
    // If a person pushes another head, this rework may be unnecessary.
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

/// Judges the new head if the pull request got another one while the gates ran on the published one.
pub fn published_head_moved(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::Gates { head: gated }, .. } = &job.stage else { return };
    if gated != head && is_published(job, gated) {
        wait_for_checks(job, CheckWait::Mergeability { head: head.clone() }, out);
    }
}

/// Continues after the branch was pushed: opens the pull request, or brings its text up to date.
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
        // The push itself has brought the pull request up to date. Asking the forge to open one could make a second one, if a person has
        // just merged this one.
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

/// Takes over a head in which the push joined a person's commits with the runner's. It is checked like any other work.
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
        // Remarks that stand against the head are announced with the first look.
        job.delivery.announced = Some(Box::new(Announced { held: false, ..phases::to_announce(job, &head) }));
        out.act(Action::Comment { key: format!("pr:{number}"), said });
    }
    out.act(Action::InspectPr { number });
    wait_for_checks(job, CheckWait::Forge { head }, out);
}

pub fn pr_assessed(job: &mut Job, assessment: Assessment, asked_in_turn: bool, out: &mut Decided<'_>) {
    let is_in_line =
        landing::is_left_to_the_queue(job, &assessment) || landing::keeps_its_place(job, &assessment, asked_in_turn);
    if !judges_pr(&job.stage) || is_no_way_out(job, &assessment) || is_in_line {
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

/// Whether the job gave up on its reviewer for this head and the assessment only waits for checks. Such checks do not unblock it.
fn is_no_way_out(job: &Job, assessment: &Assessment) -> bool {
    let Stage::Blocked { cause: BlockCause::ReviewUnreadable { head, .. }, .. } = &job.stage else { return false };
    matches!(assessment, Assessment::Checks(_)) && job.current_head() == Some(head)
}

/// Queues a rework. One for failed checks or a conflict is bound to this head; one that people asked for is not.
fn rework_of_head(job: &mut Job, cause: ReworkCause, out: &mut Decided<'_>) {
    let is_bound = matches!(cause.trigger, ReworkTrigger::CheckFailed | ReworkTrigger::MergeConflict);
    out.rework(job, cause);
    job.delivery.rework_head = job.delivery.pr.as_ref().filter(|_| is_bound).map(|pr| pr.head.clone());
}

/// Whether the job waits for a rework that is about another head than this one.
pub fn is_overtaken(job: &Job, head: &CommitId) -> bool {
    let is_queued = matches!(&job.stage, Stage::Queued { work: Work::Rework { .. }, .. });
    is_queued && job.delivery.rework_head.as_ref().is_some_and(|bound| bound != head)
}

/// Drops a rework of an old head because a person has pushed since. Their commit is judged first, and may have made the rework unnecessary.
pub fn overtaken(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    if is_overtaken(job, head) {
        job.rework_cycles = job.rework_cycles.saturating_sub(1);
        wait_for_checks(job, CheckWait::Mergeability { head: head.clone() }, out);
    }
}

/// Completes the job after a merge, by whomever and from any phase. A live run is stopped first.
pub fn pr_merged(job: &mut Job, commit: Option<CommitId>, by_us: bool, out: &mut Decided<'_>) {
    match job.stage {
        Stage::Done { .. } => {}
        Stage::Working { .. } => stop(job, StopReason::Superseded, out),
        // The runner's own merge, seen before its answer came.
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
        // A blocked job stays blocked. A merge that is under way is settled first.
        (Stage::Done { .. } | Stage::Released { .. } | Stage::Blocked { .. } | Stage::Merging { .. }, _) => {}
        // Both the ticket and the pull request are closed, so the work is not wanted any more.
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

/// Does what `pr.closed_pr_policy` says. Called when no run is in the way.
pub fn follow_closed_pr(job: &mut Job, number: PrNumber, out: &mut Decided<'_>) {
    match out.policy.pr.closed_pr {
        ClosedPrPolicy::Stop => {
            let resume = match &job.stage {
                Stage::Queued { work, .. } | Stage::Working { work, .. } => work.clone(),
                _ => Work::Implement,
            };
            out.block(job, BlockCause::PrClosed { number }, resume);
        }
        // A new pull request is being opened; reopening the old one would make two.
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
            // Closing a pull request is a verdict: it uses up a round, so that this cannot repeat for ever.
            let cause = ReworkCause {
                trigger: ReworkTrigger::ChangesRequested,
                summary: format!("pull request {number} was closed without a merge; start afresh on a new branch"),
                evidence: Vec::new(),
            };
            out.rework(job, cause);
        }
    }
}

/// Whether the answer to an opening was lost. Another pull request may then have replaced the closed one; the next opening finds it.
pub fn may_have_opened_another(job: &Job) -> bool {
    let write = job.delivery.pr.as_ref().and_then(|pr| pr.write.as_ref());
    matches!(
        write,
        Some(PrWrite::Sent { what: PrWriteKind::Open } | PrWrite::MaybeDone { what: PrWriteKind::Open, .. })
    )
}

/// Returns the rework for a run's commits that conflict with what a person pushed meanwhile. The next run begins at the person's commits.
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
