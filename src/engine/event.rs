//! Events: what the engine is told. The names are in the past tense, because all of it has happened already.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::permit::Refusal;
use crate::domain::basis::Basis;
use crate::domain::evidence::GateResult;
use crate::domain::hint::Hint;
use crate::domain::ids::{CommentId, CommitId, EffectId, PrNumber, RunId, TicketId};
use crate::domain::job::Job;
use crate::domain::lane::Lane;
use crate::domain::pr::PullRequest;
use crate::domain::remark::{RemarkKey, RemarkKind};
use crate::domain::run::{Activity, ProcessMark, RunReport, Salvage};
use crate::domain::ticket::Ticket;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// Recovery is over: these runs of an earlier life of the runner are lost.
    Recovered {
        lost: Vec<LostRun>,
    },
    /// The archived jobs of tickets that the next event is about.
    Recalled {
        jobs: Vec<Job>,
    },
    /// A complete list of the tickets in the states of interest.
    Polled {
        tickets: Vec<Ticket>,
        base: Option<CommitId>,
        basis: Basis,
    },
    /// The tickets that have changed on the board since the last answer, in any state. The other tickets are not mentioned.
    PolledChanges {
        tickets: Vec<Ticket>,
        base: Option<CommitId>,
        basis: Basis,
    },
    /// The last answer still holds, word for word. No poll failed and no workflow was loaded in between. `basis` is that of the repeated
    /// answer.
    PolledUnchanged {
        base: Option<CommitId>,
        basis: Basis,
    },
    PollFailed {
        error: String,
    },
    /// The result of reading each of these tickets by its id.
    TicketsRefreshed {
        found: Vec<(TicketId, Lookup)>,
        basis: Basis,
    },
    /// These tickets or pull requests may have changed.
    Hinted {
        hints: Vec<Hint>,
    },
    RunStarted {
        run: RunId,
        process: ProcessMark,
        worktree: PathBuf,
        /// `None` for a directory without a repository in it.
        head: Option<CommitId>,
    },
    RunProgress {
        run: RunId,
        activity: Activity,
    },
    RunFinished {
        run: RunId,
        report: RunReport,
    },
    PrObserved {
        ticket: TicketId,
        pr: PullRequest,
        basis: Basis,
    },
    /// The pull request could not be read.
    PrLookFailed {
        ticket: TicketId,
        number: PrNumber,
        error: String,
    },
    /// A remark that was missing from a complete reading was read by its id.
    RemarkChecked {
        ticket: TicketId,
        kind: RemarkKind,
        id: CommentId,
        found: RemarkFound,
    },
    /// Calls of this lane (an adapter's queue of calls) wait: the service limits the runner, or it refused the credentials.
    LanePaused {
        lane: Lane,
        until: Option<Timestamp>,
        why: String,
        /// Whether no call succeeds until a person restores the access.
        locked_out: bool,
    },
    /// A call of this lane succeeded.
    LaneWorks {
        lane: Lane,
    },
    EffectDone {
        effect: EffectId,
        result: EffectResult,
    },
    EffectFailed {
        effect: EffectId,
        error: EffectError,
    },
    /// The kill-switch file appeared or was removed.
    SwitchesChanged {
        file: bool,
    },
    PolicyReloaded,
    /// The runner itself was not running for this long (a machine asleep, a stopped process) and received nothing.
    WasAway {
        away: Duration,
    },
    /// A due time has come.
    TimerFired,
    Operator {
        command: OperatorCommand,
        by: String,
    },
    /// A trusted person's words that did not come with a ticket (a command at the terminal).
    HumanSaid {
        ticket: TicketId,
        by: String,
        text: String,
        urgent: bool,
    },
    Shutdown,
}

/// The result of reading one ticket by its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into the engine")]
pub enum Lookup {
    Found {
        ticket: Ticket,
    },
    /// Deleted or moved elsewhere; it will not come back.
    Gone {
        because: String,
    },
    /// A complete answer did not include the ticket. It may be hidden from the runner, or the answer may lag behind.
    NotVisible,
    /// The ticket exists but cannot be parsed.
    Unreadable {
        because: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkFound {
    There,
    Gone,
    NotVisible,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostRun {
    pub run: RunId,
    pub salvage: Option<Salvage>,
    pub head: Option<CommitId>,
    /// All usage of the run, if it was written down next to the run's files.
    #[serde(default)]
    pub spent: Option<Usage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub enum OperatorCommand {
    PauseAll,
    ResumeAll,
    Pause {
        ticket: TicketId,
    },
    Resume {
        ticket: TicketId,
    },
    /// Ends the run and keeps the ticket blocked until a retry.
    Stop {
        ticket: TicketId,
    },
    /// Starts again with fresh counters.
    Retry {
        ticket: TicketId,
    },
    /// Approves the head that the person saw; without one, the current head.
    Approve {
        ticket: TicketId,
        head: Option<CommitId>,
        /// The remarks that the approval overrules, in these versions only.
        overrule: Vec<RemarkKey>,
    },
    /// Asks for changes.
    Reject {
        ticket: TicketId,
        text: String,
    },
    /// Gives the ticket back: nothing is done with it until a retry.
    Forget {
        ticket: TicketId,
    },
}

impl OperatorCommand {
    pub fn ticket(&self) -> Option<&TicketId> {
        match self {
            Self::PauseAll | Self::ResumeAll => None,
            Self::Pause { ticket }
            | Self::Resume { ticket }
            | Self::Stop { ticket }
            | Self::Retry { ticket }
            | Self::Approve { ticket, .. }
            | Self::Reject { ticket, .. }
            | Self::Forget { ticket } => Some(ticket),
        }
    }
}

/// The result of an effect that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into the engine")]
pub enum EffectResult {
    /// The effect is done, and there is nothing else to report.
    Plain,
    Commented {
        comment: CommentId,
    },
    /// The comment that was to be edited does not exist any more.
    CommentGone,
    Moved {
        /// When the ticket was changed, as the tracker reports it.
        version: Option<Timestamp>,
    },
    /// A person has moved the ticket meanwhile; it was left where it is.
    FoundElsewhere {
        state: String,
    },
    Opened {
        pr: PullRequest,
    },
    /// The base was merged into the branch. `same_diff`: the change against the base is what it was.
    Updated {
        head: CommitId,
        same_diff: bool,
    },
    Merged {
        commit: Option<CommitId>,
    },
    /// The pull request is in the forge's own merge queue.
    Queued,
    Gated {
        results: Vec<GateResult>,
    },
    /// The ticket's directory is kept, for this reason.
    Kept {
        because: String,
    },
    /// `unsigned` tells why the receipt was not signed although git has a key.
    ReceiptKept {
        signed: bool,
        unsigned: Option<String>,
    },
}

impl std::fmt::Display for EffectError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Permanent { detail }
            | Self::Transient { detail, .. }
            | Self::MaybeDone { detail }
            | Self::Auth { detail }
            | Self::NotNow { because: detail } => out.write_str(detail),
            Self::OtherBase { actual } => write!(out, "its base is `{actual}` now"),
            Self::Refused { refusal } => refusal.fmt(out),
            Self::HeadMoved { actual } => write!(out, "the branch is at {}", actual.short()),
            Self::Conflict { files } => write!(out, "conflicts in {}", files.join(", ")),
            Self::Apart { files, .. } => write!(out, "conflicts with a person's push in {}", files.join(", ")),
        }
    }
}

/// Why an effect failed, by what has to happen next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "error")]
pub enum EffectError {
    /// The same call may work later.
    Transient {
        detail: String,
        retry_after: Option<Duration>,
    },
    /// The answer was lost, so the effect may or may not have happened.
    MaybeDone {
        detail: String,
    },
    /// The runner's access was refused. The effect is held until access is granted again, never dropped.
    Auth {
        detail: String,
    },
    /// The pull request's base is not the job's.
    OtherBase {
        actual: String,
    },
    /// It will not work until a person changes something.
    Permanent {
        detail: String,
    },
    /// The permit was refused.
    Refused {
        refusal: Refusal,
    },
    HeadMoved {
        actual: CommitId,
    },
    Conflict {
        files: Vec<String>,
    },
    /// A person pushed to the branch, and their commits conflict with the runner's. The branch has theirs; the runner's are under the ref
    /// `kept`.
    Apart {
        files: Vec<String>,
        kept: String,
    },
    /// Something is in the way for now.
    NotNow {
        because: String,
    },
}
