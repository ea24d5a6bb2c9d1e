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

/// Merges that may fail for a temporary reason before the job waits for a person.
const MERGE_ATTEMPTS: u32 = 5;
/// A branch update that does not show as a new head within this time is requested again.
const UPDATE_SHOWS_WITHIN: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// Handles a head on which all merge conditions hold: it gets in line, or is merged if this look was asked in its turn.
pub fn ready(job: &mut Job, head: CommitId, asked_in_turn: bool, out: &mut Decided<'_>) {
    if is_stuck(job, &head) {
        return;
    }
    if let Stage::ReadyToMerge { head: known, .. } = &job.stage
        && *known == head
    {
        // A job that is ready already keeps its place in line and its hold.
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

/// Handles a head on which all merge conditions hold, but whose base has moved on so that the forge wants the branch updated first. With a
/// merge queue the branch is updated only in the job's turn, and the line waits for the checks of the result. A branch updated out of turn
/// would be behind again after the next merge.
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

/// Whether the job waits for a person because its merge is stuck on this head. Only a person or another head brings it back.
fn is_stuck(job: &Job, head: &CommitId) -> bool {
    matches!(&job.stage, Stage::WaitingForHuman { on: HumanWait::MergeStuck { head: stuck, .. }, .. } if stuck == head)
}

/// Queues an agent run that makes the head ready for its merge (`merge.executor: prompt`). The merge itself stays the runner's, with all
/// its conditions.
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

/// Notes that the forge's own merge queue has the pull request.
pub fn queued(job: &mut Job, out: &mut Decided<'_>) {
    let Stage::Merging { head, withdrawn, .. } = job.stage.clone() else { return };
    job.delivery.in_forge_queue = true;
    if withdrawn {
        out.block(job, BlockCause::SetAside, Work::Implement);
    } else {
        wait_for_checks(job, CheckWait::ForgeQueue { head }, out);
    }
}

/// Whether a job in line stays there although the forge works out anew what can be merged, as it does after every merge. Only the look
/// of the job's own turn shows whether it has to leave; leaving the line for an older look would let others overtake it.
pub fn keeps_its_place(job: &Job, assessment: &Assessment, asked_in_turn: bool) -> bool {
    match (&job.stage, assessment) {
        (
            Stage::ReadyToMerge { head, hold: MergeHold::Queue, .. },
            Assessment::Checks(CheckWait::Mergeability { head: on }),
        ) => head == on && !asked_in_turn,
        _ => false,
    }
}

/// Whether an assessment is ignored because the pull request is in the forge's merge queue. Only what stands against the merge counts then;
/// the queue takes care of the rest.
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

/// Handles that the forge took the pull request out of its queue without merging it.
pub fn thrown_out(job: &mut Job, out: &mut Decided<'_>) {
    let Stage::WaitingForChecks { on: CheckWait::ForgeQueue { head }, .. } = job.stage.clone() else { return };
    job.delivery.in_forge_queue = false;
    out.note(job, None, "thrown_out", format!("the forge took {} out of its merge queue", head.short()));
    step_back(job, head, "the forge took it out of its own merge queue".to_owned(), true, out);
}

/// Takes a pull request back from the forge's queue after a switch was turned on or merging was turned off. It waits in the runner's own
/// line then.
pub fn taken_back(job: &mut Job, out: &mut Decided<'_>) {
    if let Stage::WaitingForChecks { on: CheckWait::ForgeQueue { head }, .. } = job.stage.clone() {
        stand_in_line(job, head, out);
    }
}

/// Starts the merge. It leaves in the same step that handles a complete look which was asked in the job's turn.
fn begin(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    let Some(number) = job.delivery.pr.as_ref().map(|pr| pr.number) else { return };
    out.move_to(job, Stage::Merging { head: head.clone(), withdrawn: false, since: out.now });
    let base_branch = out.policy.pr.base_branch.clone();
    out.act(Action::MergePr { number, head, base_branch, method: out.policy.merge.method });
}

/// Whether a person stopped the job while the merge was under way.
pub fn is_withdrawn(job: &Job) -> bool {
    matches!(job.stage, Stage::Merging { withdrawn: true, .. })
}

/// Handles a merge that failed for a reason that should be temporary. It is tried again a limited number of times, after the jobs that are
/// ready.
pub fn hindered(job: &mut Job, because: String, counts: bool, out: &mut Decided<'_>) {
    let Stage::Merging { head, withdrawn, .. } = job.stage.clone() else { return };
    if withdrawn {
        out.block(job, BlockCause::SetAside, Work::Implement);
        return;
    }
    step_back(job, head, because, counts, out);
}

/// Puts the job behind those that are ready. After a limited number of tries it waits for a person instead.
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

/// Handles a merge whose answer was lost: the forge is asked whether it merged before anything else happens.
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

/// Whether the merge that a look shows may be the runner's own, whose answer was lost.
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

/// Handles the runner's own update of the branch. If the change against the base is the same, approval and review of the old head hold for
/// the new one.
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
            // The gates have not run on this commit, but the claim about the change still stands.
            receipt.head = Some(head.clone());
            if !receipt.is_claim_contradicted() {
                receipt.verification = Verification::Unverified;
            }
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
