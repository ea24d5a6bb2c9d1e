//! Why a job is where it is while no runner is up: nothing happens by itself then, so nothing of the kind is promised.

use super::job::{Hindrance, HumanWait, Job, Stage, Wait};
use super::reason::Reason;
use super::time::Timestamp;

const START: &str = "start a runner with `dirigent run`";

impl Job {
    pub fn reason_offline(&self, hindrance: Option<&Hindrance>, now: Timestamp) -> Reason {
        let reason = match hindrance {
            Some(hindrance) => self.hindered_reason(hindrance, now),
            None => self.own_reason(now),
        };
        let (sentence, next) = match &self.stage {
            Stage::Working { .. } => (
                "its run was cut off when the runner ended without a word".to_owned(),
                format!("{START}: it saves what the run left and goes on"),
            ),
            Stage::Queued { wait: Wait::Retry { attempt, error, .. }, .. } => {
                (format!("attempt {attempt} follows when a runner is up: {error}"), START.to_owned())
            }
            Stage::Queued { wait: Wait::Continuation { .. }, .. } => {
                ("goes on when a runner is up".to_owned(), START.to_owned())
            }
            Stage::WaitingForHuman { on: HumanWait::Approval { head } | HumanWait::NoChecks { head }, .. }
                if self.people.is_approved(head) =>
            {
                (format!("{} is approved; it goes on when a runner is up", head.short()), START.to_owned())
            }
            // What stood against it was accepted or overruled with the approval.
            Stage::WaitingForHuman { on: HumanWait::Remarks { head, .. }, .. }
                if self.people.is_approved(head) && self.people.holding().next().is_none() =>
            {
                (format!("{} is approved; it goes on when a runner is up", head.short()), START.to_owned())
            }
            stage if a_runner_alone_moves(stage) && hindrance.is_none_or(passes_by_itself) => {
                (format!("{} (when a runner is up)", reason.sentence), START.to_owned())
            }
            _ => return reason,
        };
        Reason { sentence, next, ..reason }
    }
}

/// Nobody else has to do anything first.
fn a_runner_alone_moves(stage: &Stage) -> bool {
    match stage {
        Stage::Queued { wait, .. } => match wait {
            Wait::Ready | Wait::Wave { .. } | Wait::Retry { .. } | Wait::Continuation { .. } => true,
            Wait::Blockers { .. }
            | Wait::Cycle { .. }
            | Wait::KillSwitch { .. }
            | Wait::Labels { .. }
            | Wait::NotOurs { .. } => false,
        },
        Stage::WaitingForChecks { .. } | Stage::Merging { .. } | Stage::ReadyToMerge { .. } => true,
        Stage::Working { .. }
        | Stage::WaitingForHuman { .. }
        | Stage::Blocked { .. }
        | Stage::Done { .. }
        | Stage::Released { .. } => false,
    }
}

fn passes_by_itself(hindrance: &Hindrance) -> bool {
    match hindrance {
        Hindrance::Tracker
        | Hindrance::ShuttingDown
        | Hindrance::Quota { .. }
        | Hindrance::QuotaTrial { .. }
        | Hindrance::Slot
        | Hindrance::StateSlot { .. }
        | Hindrance::Behind { .. } => true,
        Hindrance::Switch { .. }
        | Hindrance::Observe
        | Hindrance::Preflight
        | Hindrance::DailyBudget { .. }
        | Hindrance::MergeDisabled
        | Hindrance::RolloutForbids => false,
    }
}
