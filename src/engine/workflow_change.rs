//! What a changed workflow allows to be tried again without a person's word: the correction is the new evidence.

use super::budget::{self, Level};
use super::delivery::verify;
use super::step::Step;
use crate::config::policy::Policy;
use crate::domain::failure::{RunFailure, TurnError};
use crate::domain::ids::TicketId;
use crate::domain::job::{BlockCause, Job, Stage, Wait};
use crate::domain::phase::Phase;

impl Step<'_> {
    /// Whether the workflow's content differs from the one that was last in force.
    pub fn is_another_workflow(&self) -> bool {
        self.state.meta.workflow.as_ref() != Some(&self.policy.hash)
    }

    /// Un-blocks jobs that the workflow itself had prevented, and notes which workflow is in force.
    pub fn retry_after_workflow_change(&mut self) {
        let known = self.state.meta.workflow.is_some();
        let another = known && self.is_another_workflow();
        let blocked = self.state.jobs.index().in_phase(Phase::Blocked);
        let may_work =
            |id: &&TicketId| self.state.jobs.get(id).is_some_and(|job| may_work_now(job, another, self.policy));
        let retried: Vec<TicketId> = blocked.filter(may_work).cloned().collect();
        for id in retried {
            self.decide_with(&id, |job, out| {
                let Stage::Blocked { cause, resume, .. } = job.stage.clone() else { return };
                if matches!(cause, BlockCause::RetriesExhausted { .. }) {
                    job.failures = 0;
                }
                if matches!(cause, BlockCause::ReviewUnreadable { .. }) {
                    job.delivery.reviews.unreadable = None;
                }
                match (&cause, job.delivery.head.clone()) {
                    // The work exists; only what could not be done with it is done again.
                    (BlockCause::EffectRefused { .. }, Some(head)) => verify(job, head, out),
                    _ => out.queue(job, resume, Wait::Ready),
                }
            });
        }
        if self.is_another_workflow() {
            self.state.meta.workflow = Some(self.policy.hash.clone());
            self.state.changes.meta = true;
        }
    }
}

fn may_work_now(job: &Job, another: bool, policy: &Policy) -> bool {
    let Stage::Blocked { cause, .. } = &job.stage else { return false };
    match cause {
        BlockCause::BudgetExceeded { .. } => {
            let ran = std::time::Duration::from_millis(job.spending.run_ms_since_reset);
            !matches!(budget::level(&policy.budget.ticket, &job.spending.since_reset, ran), Level::Exceeded { .. })
        }
        BlockCause::Permanent { failure: RunFailure::Prompt { .. } } => true,
        BlockCause::Permanent { failure } | BlockCause::RetriesExhausted { last: failure, .. } => {
            another && depends_on_the_workflow(failure)
        }
        // The workflow file configures the reviewer.
        BlockCause::EffectRefused { .. } | BlockCause::ReviewUnreadable { .. } => another,
        BlockCause::NoNewEvidence { .. }
        | BlockCause::LostAgain { .. }
        | BlockCause::ReworkLimitExceeded { .. }
        | BlockCause::WorkerAsked { .. }
        | BlockCause::PrClosed { .. }
        | BlockCause::StoppedByOperator
        | BlockCause::SetAside
        | BlockCause::MergeRefused { .. }
        | BlockCause::NoEnd { .. } => false,
    }
}

/// Whether the failure may come from the workflow file, which sets the command, the model, the hooks and the base branch.
fn depends_on_the_workflow(failure: &RunFailure) -> bool {
    matches!(
        failure,
        RunFailure::Workspace { .. }
            | RunFailure::Hook { .. }
            | RunFailure::Launch { .. }
            | RunFailure::Handshake { .. }
            | RunFailure::Prompt { .. }
            | RunFailure::Turn { class: TurnError::Model, .. }
    )
}
