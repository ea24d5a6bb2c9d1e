//! The last step to the base branch: whose turn it is, the merge itself, and what happens when it does not go through.

use super::assess::Assessment;
use super::decided::Decided;
use super::effect::Action;
use super::phases::{look_again, wait_for_checks, wait_for_human};
use crate::domain::evidence::Verification;
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::job::{
    Approval, BlockCause, CheckWait, HumanWait, Job, MergeHold, PrWrite, PrWriteKind, ReworkCause, ReworkTrigger,
    Stage, Wait, Work,
};

/// Merges that fail for a passing reason before the job steps aside.
const MERGE_ATTEMPTS: u32 = 5;
/// A branch update that does not show as a new head by then is asked for again.
const UPDATE_SHOWS_WITHIN: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// All merge conditions hold on this head.
pub fn ready(job: &mut Job, head: CommitId, asked_in_turn: bool, out: &mut Decided<'_>) {
    if is_stuck(job, &head) {
        return;
    }
    if let Stage::ReadyToMerge { head: known, .. } = &job.stage
        && *known == head
    {
        // One that is ready already keeps its place in the queue and what it waits for.
        if asked_in_turn {
            begin(job, head, out);
        }
        return;
    }
    stand_in_line(job, head, out);
}

fn stand_in_line(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    let since = *job.delivery.in_line_since.get_or_insert(out.now);
    out.move_to(job, Stage::ReadyToMerge { head, hold: MergeHold::Queue, turn: None, since });
}

/// All merge conditions hold, but the base has gone on and the forge wants it in the branch first. In a queue that is done once, in
/// the job's turn, and the line waits for the checks of the result: what is updated out of turn is behind again with the next merge.
pub fn behind(job: &mut Job, number: PrNumber, head: CommitId, asked_in_turn: bool, out: &mut Decided<'_>) {
    let steps_aside =
        matches!(&job.stage, Stage::ReadyToMerge { head: known, hold: MergeHold::Forge { .. }, .. } if *known == head);
    if is_stuck(job, &head) || steps_aside {
        return;
    }
    let asked =
        matches!(&job.stage, Stage::WaitingForChecks { on: CheckWait::BranchUpdate { head: h }, .. } if *h == head);
    if asked && out.now.since(job.stage.since()) < UPDATE_SHOWS_WITHIN {
        return;
    }
    let ready = matches!(&job.stage, Stage::ReadyToMerge { head: known, .. } if *known == head);
    let has_turn = ready && asked_in_turn || job.delivery.landing_since.is_some() || !out.policy.merge.queue;
    if !has_turn && !asked {
        if !ready {
            stand_in_line(job, head, out);
        }
        return;
    }
    if job.delivery.update_attempts >= out.policy.merge.max_rebase_attempts {
        let times = std::mem::take(&mut job.delivery.update_attempts);
        let because = match asked {
            true => {
                format!("the branch was updated {times} times, and no update has shown (merge.max_rebase_attempts)")
            }
            false => {
                format!("the base has gone on after each of {times} updates of the branch (merge.max_rebase_attempts)")
            }
        };
        step_back(job, head, because, true, out);
        return;
    }
    job.delivery.update_attempts += 1;
    if out.policy.merge.queue {
        job.delivery.landing_since = Some(out.now);
    }
    out.move_to(job, Stage::WaitingForChecks { on: CheckWait::BranchUpdate { head: head.clone() }, since: out.now });
    out.act(Action::UpdateBranch { number, head });
}

/// A job that has stepped aside comes back when a person says so, or with another head.
fn is_stuck(job: &Job, head: &CommitId) -> bool {
    matches!(&job.stage, Stage::WaitingForHuman { on: HumanWait::MergeStuck { head: stuck, .. }, .. } if stuck == head)
}

/// A run of the agent makes the head ready for its merge: `merge.executor: prompt`. The merge itself stays ours, with all its conditions.
pub fn prepare(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    let cause = ReworkCause {
        trigger: ReworkTrigger::Landing,
        summary: format!("{} is prepared for its merge", head.short()),
        evidence: Vec::new(),
    };
    out.queue(job, Work::Rework { cause }, Wait::Ready);
}

/// Whether a run of this work only prepares the merge.
pub fn is_preparation(work: &Work) -> bool {
    matches!(work, Work::Rework { cause } if cause.trigger == ReworkTrigger::Landing)
}

/// The forge's own queue has it.
pub fn queued(job: &mut Job, out: &mut Decided<'_>) {
    let Stage::Merging { head, withdrawn, .. } = job.stage.clone() else { return };
    job.delivery.in_forge_queue = true;
    if withdrawn {
        out.block(job, BlockCause::SetAside, Work::Implement);
    } else {
        wait_for_checks(job, CheckWait::ForgeQueue { head }, out);
    }
}

/// While it is in the forge's queue only what stands against the merge counts; the queue sees to the rest.
pub fn is_left_to_the_queue(job: &Job, assessment: &Assessment) -> bool {
    let queued = matches!(
        &job.stage,
        Stage::WaitingForChecks { on: CheckWait::ForgeQueue { head }, .. } if job.current_head() == Some(head)
    );
    let against = match assessment {
        Assessment::Rework(_) => true,
        Assessment::Human(on) => !matches!(on, HumanWait::Rule { .. } | HumanWait::NoChecks { .. }),
        _ => false,
    };
    queued && job.delivery.in_forge_queue && !against
}

/// The forge took it out of its queue without merging it.
pub fn thrown_out(job: &mut Job, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::ForgeQueue { head }, .. } = job.stage.clone() else { return };
    job.delivery.in_forge_queue = false;
    out.note(job, None, "thrown_out", format!("the forge took {} out of its merge queue", head.short()));
    step_back(job, head, "the forge took it out of its own merge queue".to_owned(), true, out);
}

/// A switch was pulled, or merging was switched off: what is in the forge's queue is taken out, and waits like everything else.
pub fn taken_back(job: &mut Job, out: &mut Decided<'_>) {
    if let Stage::WaitingForChecks { on: CheckWait::ForgeQueue { head }, .. } = job.stage.clone() {
        stand_in_line(job, head, out);
    }
}

/// The merge leaves in the very step that handles a complete look which was asked in the job's turn.
fn begin(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    let Some(number) = job.delivery.pr.as_ref().map(|pr| pr.number) else { return };
    out.move_to(job, Stage::Merging { head: head.clone(), withdrawn: false, since: out.now });
    let base_branch = out.policy.pr.base_branch.clone();
    out.act(Action::MergePr { number, head, base_branch, method: out.policy.merge.method });
}

/// A person wanted it stopped while the merge was under way.
pub fn is_withdrawn(job: &Job) -> bool {
    matches!(job.stage, Stage::Merging { withdrawn: true, .. })
}

/// It did not work for a reason that should pass: tried again a bounded number of times, behind whoever is ready.
pub fn hindered(job: &mut Job, because: String, counts: bool, out: &mut Decided<'_>) {
    let Stage::Merging { head, withdrawn, .. } = job.stage.clone() else { return };
    if withdrawn {
        out.block(job, BlockCause::SetAside, Work::Implement);
        return;
    }
    step_back(job, head, because, counts, out);
}

/// Goes behind those that are ready, and after a bounded number of tries steps aside.
fn step_back(job: &mut Job, head: CommitId, because: String, counts: bool, out: &mut Decided<'_>) {
    job.delivery.landing_since = None;
    job.delivery.in_line_since = None;
    job.delivery.merge_attempts += u32::from(counts);
    if job.delivery.merge_attempts >= MERGE_ATTEMPTS {
        wait_for_human(job, HumanWait::MergeStuck { head, because }, out);
        return;
    }
    let retry_at = out.now + out.policy.polling_interval.saturating_mul(1 << job.delivery.merge_attempts.min(5));
    let hold = MergeHold::Forge { because, retry_at };
    out.move_to(job, Stage::ReadyToMerge { head, hold, turn: None, since: out.now });
}

/// The answer was lost. The forge is asked what became of it before anything else happens.
pub fn maybe_done(job: &mut Job, out: &mut Decided<'_>) {
    let Stage::Merging { head, withdrawn, .. } = job.stage.clone() else { return };
    if withdrawn {
        out.block(job, BlockCause::SetAside, Work::Implement);
    } else {
        job.delivery.merge_attempts += 1;
        if job.delivery.merge_attempts >= MERGE_ATTEMPTS {
            let because = "no answer came".to_owned();
            wait_for_human(job, HumanWait::MergeStuck { head, because }, out);
        } else {
            wait_for_checks(job, CheckWait::Mergeability { head }, out);
        }
    }
    if let Some(pr) = &job.delivery.pr {
        out.act(Action::InspectPr { number: pr.number });
    }
}

/// Whether a merge that we asked for, and whose answer was lost, may be the one that is seen.
pub fn may_be_our_merge(job: &Job) -> bool {
    let write = job.delivery.pr.as_ref().and_then(|pr| pr.write.as_ref());
    matches!(write, Some(PrWrite::MaybeDone { what: PrWriteKind::Merge, .. }))
}

pub fn base_changed(job: &mut Job, base: String, out: &mut Decided<'_>) {
    let Stage::Merging { head, withdrawn, .. } = job.stage.clone() else { return };
    if withdrawn {
        out.block(job, BlockCause::SetAside, Work::Implement);
    } else {
        wait_for_human(job, HumanWait::OtherBase { head, base }, out);
    }
}

/// Our own update of the branch: what people and reviews said of the old head holds for the new one, if the change is the same.
pub fn branch_updated(job: &mut Job, head: CommitId, same_diff: bool, out: &mut Decided<'_>) {
    let old = job.current_head().cloned();
    job.delivery.remote_head = Some(head.clone());
    job.delivery.head = Some(head.clone());
    if same_diff {
        if job.people.approved_head() == old.as_ref()
            && let Some(approval) = job.people.approval.clone()
        {
            job.people.approval = Some(Approval { head: head.clone(), ..approval });
        }
        if job.delivery.prepared_head == old {
            job.delivery.prepared_head = Some(head.clone());
        }
        if job.delivery.reviews.head == old {
            job.delivery.reviews.head = Some(head.clone());
        }
        if let Some(receipt) = job.evidence.receipt.as_mut().filter(|receipt| receipt.head == old) {
            // The gates have not seen this commit; the claim about the change still stands.
            receipt.head = Some(head.clone());
            receipt.gates.clear();
            if receipt.verification == Verification::Verified {
                receipt.verification = Verification::Unverified;
            }
        }
    }
    if let Some(pr) = job.delivery.pr.clone()
        && matches!(job.stage, Stage::WaitingForChecks { on: CheckWait::BranchUpdate { .. }, .. })
    {
        out.note(job, None, "branch_updated", format!("the base was merged into the branch: {}", head.short()));
        look_again(job, &pr, out);
    }
}
