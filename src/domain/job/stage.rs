//! Where a job stands. Each stage owns the data that only it needs; each wait says what would end it.

use serde::{Deserialize, Serialize};

use super::work::{ReworkTrigger, Work};
use crate::domain::basis::Moment;
use crate::domain::failure::RunFailure;
use crate::domain::fingerprint::Fingerprint;
use crate::domain::ids::{CommitId, PrNumber, RunId, TicketKey};
use crate::domain::phase::Phase;
use crate::domain::run::StopReason;
use crate::domain::time::Timestamp;

/// Where the job stands, with the data that only this stage needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "at")]
pub enum Stage {
    Queued {
        work: Work,
        wait: Wait,
        since: Timestamp,
    },
    Working {
        work: Work,
        run: RunId,
        stopping: Option<StopReason>,
        since: Timestamp,
    },
    WaitingForChecks {
        on: CheckWait,
        since: Timestamp,
    },
    WaitingForHuman {
        on: HumanWait,
        since: Timestamp,
    },
    Blocked {
        cause: BlockCause,
        resume: Work,
        since: Timestamp,
    },
    ReadyToMerge {
        head: CommitId,
        hold: MergeHold,
        /// When the job became first in line. Only a look that was asked later lets it be merged.
        turn: Option<Turn>,
        since: Timestamp,
    },
    Merging {
        head: CommitId,
        /// Whether a person stopped the job meanwhile: it is set aside if the merge does not go through.
        withdrawn: bool,
        since: Timestamp,
    },
    /// `ticket_closed` tells whether the ticket was seen in a terminal state since the merge. Only then does a reopened ticket start anew.
    Done {
        how: DoneHow,
        ticket_closed: bool,
        since: Timestamp,
    },
    Released {
        why: ReleaseReason,
        since: Timestamp,
    },
}

impl Stage {
    pub fn phase(&self) -> Phase {
        match self {
            Self::Queued { .. } => Phase::Queued,
            Self::Working { work, .. } => work.phase(),
            Self::WaitingForChecks { .. } => Phase::WaitingForChecks,
            Self::WaitingForHuman { .. } => Phase::WaitingForHuman,
            Self::Blocked { .. } => Phase::Blocked,
            Self::ReadyToMerge { .. } => Phase::ReadyToMerge,
            Self::Merging { .. } => Phase::Merging,
            Self::Done { .. } => Phase::Done,
            Self::Released { .. } => Phase::Released,
        }
    }

    pub fn since(&self) -> Timestamp {
        match self {
            Self::Queued { since, .. }
            | Self::Working { since, .. }
            | Self::WaitingForChecks { since, .. }
            | Self::WaitingForHuman { since, .. }
            | Self::Blocked { since, .. }
            | Self::ReadyToMerge { since, .. }
            | Self::Merging { since, .. }
            | Self::Done { since, .. }
            | Self::Released { since, .. } => *since,
        }
    }

    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Working { run, .. } => Some(run),
            _ => None,
        }
    }
}

/// When it became a job's turn to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub moment: Moment,
    pub since: Timestamp,
}

/// Why a queued job has no worker yet, as far as that is its own doing. Reasons that hold for many jobs (a pause of everything, no free
/// slot, a usage limit) are a [`Hindrance`](super::Hindrance).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum Wait {
    /// Eligible. The job's place in line is worked out when the job is settled.
    // The aliases are waits that earlier versions stored with each job.
    #[serde(alias = "slot", alias = "state_slot", alias = "quota", alias = "observe", alias = "preflight")]
    #[serde(alias = "daily_budget", alias = "tracker", alias = "shutting_down")]
    Ready,
    Blockers {
        keys: Vec<TicketKey>,
    },
    Cycle {
        keys: Vec<TicketKey>,
    },
    Retry {
        attempt: u32,
        due: Timestamp,
        error: RunFailure,
    },
    /// A run ended well without finishing the ticket; the next one continues it.
    Continuation {
        due: Timestamp,
    },
    /// A switch on this ticket alone: its own pause, or a label on the ticket or on its pull request.
    KillSwitch {
        source: SwitchSource,
    },
    Labels {
        missing: Vec<String>,
    },
    NotOurs {
        because: String,
    },
}

/// Where a kill switch was turned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchSource {
    File,
    TicketLabel,
    PrLabel,
    PauseAll,
    PauseTicket,
}

impl SwitchSource {
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "kill-switch file",
            Self::TicketLabel => "label on the ticket",
            Self::PrLabel => "label on the pull request",
            Self::PauseAll => "dirigent pause",
            Self::PauseTicket => "dirigent pause of this ticket",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum CheckWait {
    /// `gates.task` is running on this commit.
    Gates { head: CommitId },
    /// The branch is being pushed, and the pull request opened if there is none.
    Publishing { head: CommitId },
    /// The forge's checks have not finished.
    Forge { head: CommitId },
    /// The forge has not worked out yet whether the pull request can be merged.
    Mergeability { head: CommitId },
    /// The base is being merged into the branch.
    BranchUpdate { head: CommitId },
    /// The pull request is in the forge's own merge queue, which merges it in its turn there.
    ForgeQueue { head: CommitId },
    /// The ticket was closed while its pull request was open, and the forge is asked whether that was merged.
    TicketClosed { state: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum HumanWait {
    /// A person other than the author has to approve the head.
    Approval { head: CommitId },
    /// There is no forge; the branch is the result.
    Branch { branch: String },
    /// The worker declared the work done. The result is in the ticket's directory, and delivering it is not the runner's task.
    Directory,
    /// There are no gates or checks, and the workflow does not count that as a pass.
    NoChecks { head: CommitId },
    /// The pull request is a draft.
    Draft,
    /// The ticket's reviews are used up, and this head has not been reviewed.
    ReviewLimit { head: CommitId, limit: u32 },
    /// Remarks stand against a merge; `by` lists their authors.
    Remarks { head: CommitId, by: Vec<String> },
    /// A rule of the forge forbids the merge.
    Rule { head: CommitId, because: String },
    /// A person changed the pull request's base branch.
    OtherBase { head: CommitId, base: String },
    /// The merge failed repeatedly for reasons that should have been temporary.
    MergeStuck { head: CommitId, because: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum BlockCause {
    RetriesExhausted {
        attempts: u32,
        last: RunFailure,
    },
    Permanent {
        failure: RunFailure,
    },
    NoNewEvidence {
        fingerprint: Box<Fingerprint>,
    },
    /// Several runs in a row were lost because the runner itself stopped.
    LostAgain {
        times: u32,
    },
    ReworkLimitExceeded {
        limit: u32,
        trigger: ReworkTrigger,
    },
    BudgetExceeded {
        what: String,
        figure: String,
        cap: String,
    },
    WorkerAsked {
        question: String,
    },
    PrClosed {
        number: PrNumber,
    },
    StoppedByOperator,
    /// A person stopped the job while its finished work was being judged. A retry continues with that work.
    SetAside,
    /// The alias and the default are for older ledgers, which had a separate cause for used-up reviews.
    #[serde(alias = "review_passes")]
    MergeRefused {
        #[serde(default = "reviews_used_up")]
        because: String,
    },
    /// A write to the tracker or the forge was refused permanently.
    EffectRefused {
        effect: String,
        because: String,
    },
    /// The reviewer was asked twice, and its answer could not be parsed or is about another head.
    ReviewUnreadable {
        head: CommitId,
        because: String,
    },
    /// Several runs in a row ended well, and the ticket is still active.
    NoEnd {
        runs: u32,
    },
}

fn reviews_used_up() -> String {
    "its reviews were used up".to_owned()
}

/// Why a job whose merge conditions all hold has not been merged, as far as that is its own doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum MergeHold {
    /// The job waits for its turn, or has it and gets a last look.
    // The aliases are holds that earlier versions stored with each job.
    #[serde(alias = "slot", alias = "merge_disabled", alias = "rollout_forbids", alias = "kill_switch")]
    #[serde(alias = "last_look")]
    Queue,
    /// The forge (or the user's work tree) is in the way for now.
    Forge { because: String, retry_at: Timestamp },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum DoneHow {
    Merged { commit: Option<CommitId>, by_us: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum ReleaseReason {
    TicketClosed {
        state: String,
    },
    NotActive {
        state: String,
    },
    NotEligible {
        because: String,
    },
    /// By a person's command. The job stays released until a retry.
    GivenBack,
    Gone,
}
