//! The one check that every change to the outside world passes: kill switch, preflight, rollout, ownership.
//!
//! It returns a [`Permit`], and adapters do not write without one.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::policy::RolloutMode;
use crate::domain::job::SwitchSource;
use crate::domain::permit::Permit;

/// The kinds of effects, without their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    StartRun,
    StopRun,
    Steer,
    RefreshTickets,
    WriteWorkpad,
    Comment,
    MoveTicket,
    AddLabels,
    Acknowledge,
    CreateTicket,
    AttachLink,
    PushBranch,
    OpenPr,
    ReopenPr,
    InspectPr,
    CheckRemark,
    MergePr,
    UpdateBranch,
    Dequeue,
    UpdatePr,
    PublishGates,
    RerunChecks,
    AnswerThread,
    ReviewComment,
    RequestReview,
    RunGate,
    WriteReceipt,
    CleanUp,
    Notify,
}

/// What an effect changes outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Reads, or ends something of the runner's own. Always allowed: stopping must never be refused.
    Harmless,
    /// Writes to ticket, branch or pull request, or starts a process.
    Mutates,
    /// Merges work into the base branch.
    Merges,
    /// Withdraws something that others would merge. The one kind of write that is allowed under a switch and without ownership.
    TakesBack,
}

impl EffectKind {
    pub const ALL: [EffectKind; 29] = [
        Self::StartRun,
        Self::StopRun,
        Self::Steer,
        Self::RefreshTickets,
        Self::WriteWorkpad,
        Self::Comment,
        Self::MoveTicket,
        Self::AddLabels,
        Self::Acknowledge,
        Self::CreateTicket,
        Self::AttachLink,
        Self::PushBranch,
        Self::OpenPr,
        Self::ReopenPr,
        Self::InspectPr,
        Self::CheckRemark,
        Self::MergePr,
        Self::UpdateBranch,
        Self::Dequeue,
        Self::UpdatePr,
        Self::PublishGates,
        Self::RerunChecks,
        Self::AnswerThread,
        Self::ReviewComment,
        Self::RequestReview,
        Self::RunGate,
        Self::WriteReceipt,
        Self::CleanUp,
        Self::Notify,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::StartRun => "start_run",
            Self::StopRun => "stop_run",
            Self::Steer => "steer",
            Self::RefreshTickets => "refresh_tickets",
            Self::WriteWorkpad => "write_workpad",
            Self::Comment => "comment",
            Self::MoveTicket => "move_ticket",
            Self::AddLabels => "add_labels",
            Self::Acknowledge => "acknowledge",
            Self::CreateTicket => "create_ticket",
            Self::AttachLink => "attach_link",
            Self::PushBranch => "push_branch",
            Self::OpenPr => "open_pr",
            Self::ReopenPr => "reopen_pr",
            Self::InspectPr => "inspect_pr",
            Self::CheckRemark => "check_remark",
            Self::MergePr => "merge_pr",
            Self::UpdateBranch => "update_branch",
            Self::Dequeue => "dequeue",
            Self::UpdatePr => "update_pr",
            Self::PublishGates => "publish_gates",
            Self::RerunChecks => "rerun_checks",
            Self::AnswerThread => "answer_thread",
            Self::ReviewComment => "review_comment",
            Self::RequestReview => "request_review",
            Self::RunGate => "run_gate",
            Self::WriteReceipt => "write_receipt",
            Self::CleanUp => "clean_up",
            Self::Notify => "notify",
        }
    }

    pub fn reach(self) -> Reach {
        match self {
            Self::StopRun | Self::RefreshTickets | Self::InspectPr | Self::CheckRemark => Reach::Harmless,
            Self::StartRun
            | Self::Steer
            | Self::WriteWorkpad
            | Self::Comment
            | Self::MoveTicket
            | Self::AddLabels
            | Self::Acknowledge
            | Self::CreateTicket
            | Self::AttachLink
            | Self::PushBranch
            | Self::OpenPr
            | Self::ReopenPr
            | Self::UpdateBranch
            | Self::UpdatePr
            | Self::PublishGates
            | Self::RerunChecks
            | Self::AnswerThread
            | Self::ReviewComment
            | Self::RequestReview
            | Self::WriteReceipt
            | Self::RunGate
            | Self::CleanUp
            | Self::Notify => Reach::Mutates,
            Self::MergePr => Reach::Merges,
            Self::Dequeue => Reach::TakesBack,
        }
    }

    /// Whether a trusted person asked for the effect on the ticket itself. Then the label that makes the ticket the runner's may still be
    /// missing.
    fn is_asked_for(self) -> bool {
        matches!(self, Self::AddLabels | Self::Acknowledge)
    }
}

/// Everything that the decision depends on, read at the moment of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circumstances {
    /// The first switch that is on, if any.
    pub switch: Option<SwitchSource>,
    pub rollout: RolloutMode,
    /// `preflight_required` is on, and `doctor` has not passed for this content of the workflow file.
    pub preflight_missing: bool,
    /// Whether the ticket carries what the workflow requires before any automation.
    pub owned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "refused")]
pub enum Refusal {
    #[error("nothing may be changed now ({source_name})", source_name = .switch.name())]
    KillSwitch { switch: SwitchSource },
    #[error("rollout.mode is observe: nothing is changed")]
    Observe,
    #[error("rollout.mode is mutate: nothing is merged")]
    MergeForbidden,
    #[error("rollout.preflight_required is on: run `dirigent doctor` for this WORKFLOW.md first")]
    Preflight,
    #[error("the ticket does not carry the label that makes it ours")]
    NotOwned,
}

impl Refusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::KillSwitch { .. } => "kill_switch",
            Self::Observe => "observe",
            Self::MergeForbidden => "merge_forbidden",
            Self::Preflight => "preflight",
            Self::NotOwned => "not_owned",
        }
    }
}

/// Allows or refuses one effect.
pub fn permit(effect: EffectKind, now: &Circumstances) -> Result<Permit, Refusal> {
    match effect.reach() {
        Reach::Harmless => return Ok(Permit::issue()),
        // `observe` writes nothing at all.
        Reach::TakesBack if now.rollout != RolloutMode::Observe => return Ok(Permit::issue()),
        Reach::TakesBack => return Err(Refusal::Observe),
        Reach::Mutates | Reach::Merges => {}
    }
    if let Some(switch) = now.switch {
        return Err(Refusal::KillSwitch { switch });
    }
    if now.rollout == RolloutMode::Observe {
        return Err(Refusal::Observe);
    }
    if now.preflight_missing {
        return Err(Refusal::Preflight);
    }
    if !now.owned && !effect.is_asked_for() {
        return Err(Refusal::NotOwned);
    }
    if effect.reach() == Reach::Merges && now.rollout != RolloutMode::Merge {
        return Err(Refusal::MergeForbidden);
    }
    Ok(Permit::issue())
}

/// Returns a permit for what a person does by command. Only the command line may call this.
pub fn by_hand() -> Permit {
    Permit::issue()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Circumstances =
        Circumstances { switch: None, rollout: RolloutMode::Merge, preflight_missing: false, owned: true };
    const SWITCHES: [SwitchSource; 5] = [
        SwitchSource::File,
        SwitchSource::TicketLabel,
        SwitchSource::PrLabel,
        SwitchSource::PauseAll,
        SwitchSource::PauseTicket,
    ];

    fn mutating() -> impl Iterator<Item = EffectKind> {
        EffectKind::ALL.into_iter().filter(|kind| matches!(kind.reach(), Reach::Mutates | Reach::Merges))
    }

    #[test]
    fn every_mutation_is_refused_under_every_switch() {
        for effect in mutating() {
            for switch in SWITCHES {
                let now = Circumstances { switch: Some(switch), ..FREE };
                assert_eq!(permit(effect, &now).unwrap_err(), Refusal::KillSwitch { switch }, "{effect:?}");
            }
        }
    }

    #[test]
    fn every_mutation_is_refused_under_observe_without_ownership_and_before_preflight() {
        for effect in mutating() {
            assert!(permit(effect, &Circumstances { rollout: RolloutMode::Observe, ..FREE }).is_err());
            let asked_for = matches!(effect, EffectKind::AddLabels | EffectKind::Acknowledge);
            assert_eq!(permit(effect, &Circumstances { owned: false, ..FREE }).is_ok(), asked_for, "{effect:?}");
            assert!(permit(effect, &Circumstances { preflight_missing: true, ..FREE }).is_err());
        }
    }

    #[test]
    fn mutate_allows_everything_but_the_merge() {
        let now = Circumstances { rollout: RolloutMode::Mutate, ..FREE };
        for effect in EffectKind::ALL {
            assert_eq!(permit(effect, &now).is_ok(), effect != EffectKind::MergePr, "{effect:?}");
        }
    }

    #[test]
    fn stopping_and_reading_are_never_refused() {
        for switch in SWITCHES {
            let now = Circumstances {
                switch: Some(switch),
                rollout: RolloutMode::Observe,
                preflight_missing: true,
                owned: false,
            };
            assert!(permit(EffectKind::StopRun, &now).is_ok());
            assert!(permit(EffectKind::RefreshTickets, &now).is_ok());
            assert!(permit(EffectKind::InspectPr, &now).is_ok());
        }
    }

    #[test]
    fn only_taking_out_of_a_queue_leaves_under_a_switch() {
        let writes = |kind: &EffectKind| kind.reach() != Reach::Harmless;
        for switch in SWITCHES {
            let now = Circumstances { switch: Some(switch), owned: false, ..FREE };
            let leaving: Vec<EffectKind> =
                EffectKind::ALL.into_iter().filter(writes).filter(|kind| permit(*kind, &now).is_ok()).collect();
            assert_eq!(leaving, [EffectKind::Dequeue]);
            let observe = Circumstances { rollout: RolloutMode::Observe, ..now };
            assert_eq!(permit(EffectKind::Dequeue, &observe).unwrap_err(), Refusal::Observe);
        }
    }

    #[test]
    fn the_list_of_kinds_is_complete() {
        let names: std::collections::BTreeSet<_> = EffectKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), EffectKind::ALL.len());
    }
}
