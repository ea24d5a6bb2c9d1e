//! The last step to the base branch: whose turn it is, the merge itself, and what happens when it does not go through.

use super::decided::Decided;
use super::effect::Action;
use super::phases::{look_again, wait_for_checks, wait_for_human};
use crate::domain::ids::CommitId;
use crate::domain::job::{
    Approval, BlockCause, CheckWait, HumanWait, Job, MergeHold, PrWrite, PrWriteKind, Stage, Work,
};

/// Merges that fail for a passing reason before the job steps aside.
const MERGE_ATTEMPTS: u32 = 5;

/// All merge conditions hold on this head.
pub fn ready(job: &mut Job, head: CommitId, asked_in_turn: bool, out: &mut Decided<'_>) {
    // What has stepped aside comes again when a person says so, or with another head.
    if matches!(&job.stage, Stage::WaitingForHuman { on: HumanWait::MergeStuck { head: stuck, .. }, .. } if *stuck == head)
    {
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
    out.move_to(job, Stage::ReadyToMerge { head, hold: MergeHold::Queue, turn: None, since: out.now });
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
        if job.delivery.reviewed_head == old {
            job.delivery.reviewed_head = Some(head.clone());
        }
        if let Some(receipt) = job.evidence.receipt.as_mut().filter(|receipt| receipt.head == old) {
            // The gates have not seen this commit; the claim about the change still stands.
            receipt.head = Some(head.clone());
            receipt.gates.clear();
        }
    }
    if let Some(pr) = job.delivery.pr.clone()
        && matches!(job.stage, Stage::WaitingForChecks { on: CheckWait::BranchUpdate { .. }, .. })
    {
        out.note(job, None, "branch_updated", format!("the base was merged into the branch: {}", head.short()));
        look_again(job, &pr, out);
    }
}
