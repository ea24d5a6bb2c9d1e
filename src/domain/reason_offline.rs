//! Why a job is where it is while no runner is up. Nothing happens by itself then, so these reasons do not promise it.

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
            // Whether there will be another attempt is decided only when a runner is up.
            Stage::Queued { wait: Wait::Retry { error, .. }, .. } if self.evidence.no_progress_with.is_some() => (
                format!(
                    "the last attempt brought nothing ({error}); with a runner up it is tried again only if something is new"
                ),
                format!("say on the ticket what to do differently, then {START}"),
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
            // The approval accepted or overruled the remarks that stood against the merge.
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

/// Whether only a runner is needed to move the job on, and nobody else has to act first.
fn a_runner_alone_moves(stage: &Stage) -> bool {
    match stage {
        Stage::Queued { wait, .. } => match wait {
            Wait::Ready | Wait::Retry { .. } | Wait::Continuation { .. } => true,
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
