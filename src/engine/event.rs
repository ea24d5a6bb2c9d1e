//! What the engine is told. The names are in the past tense: all of it has happened already.

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
    /// The past was settled: these runs of an earlier life are over.
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
    /// What has changed on the board since the last answer, in any state. It says nothing about the other tickets.
    PolledChanges {
        tickets: Vec<Ticket>,
        base: Option<CommitId>,
        basis: Basis,
    },
    /// The last answer still holds, word for word. No poll failed and no workflow was loaded in between. `basis` is that of
    /// the answer that is repeated.
    PolledUnchanged {
        base: Option<CommitId>,
        basis: Basis,
    },
    PollFailed {
        error: String,
    },
    /// An answer about each of these ids.
    TicketsRefreshed {
        found: Vec<(TicketId, Lookup)>,
        basis: Basis,
    },
    /// These may have changed.
    Hinted {
        hints: Vec<Hint>,
    },
    RunStarted {
        run: RunId,
        process: ProcessMark,
        worktree: PathBuf,
        base: Option<CommitId>,
        /// A directory without a repository in it has none.
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
    /// The pull request could not be looked at.
    PrLookFailed {
        ticket: TicketId,
        number: PrNumber,
        error: String,
    },
    /// A remark that was missing from a complete reading was asked for by its id.
    RemarkChecked {
        ticket: TicketId,
        kind: RemarkKind,
        id: CommentId,
        found: RemarkFound,
    },
    /// Calls of this lane wait: the other side limits us, or our access was refused.
    LanePaused {
        lane: Lane,
        until: Option<Timestamp>,
        why: String,
        /// Nobody gets in until a person restores our access.
        locked_out: bool,
    },
    /// A call of this lane went through.
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
    /// The kill-switch file appeared or went away.
    SwitchesChanged {
        file: bool,
    },
    PolicyReloaded,
    /// The runner itself did not run for so long (a machine asleep, a stopped process) and heard nobody.
    WasAway {
        away: Duration,
    },
    /// Something that was due is due now.
    TimerFired,
    Operator {
        command: OperatorCommand,
        by: String,
    },
    /// A trusted word that did not come with a ticket (a command at the terminal).
    HumanSaid {
        ticket: TicketId,
        by: String,
        text: String,
        urgent: bool,
    },
    Shutdown,
}

/// What came of asking for one ticket by its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into the engine")]
pub enum Lookup {
    Found {
        ticket: Ticket,
    },
    /// Deleted, moved elsewhere: it does not come back.
    Gone {
        because: String,
    },
    /// A complete answer does not have it. It may be hidden from us, or lag behind.
    NotVisible,
    /// It is there and cannot be understood.
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
    /// All that it spent, where that was written down beside it.
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
    /// The head that the person saw; without one, the current head.
    Approve {
        ticket: TicketId,
        head: Option<CommitId>,
        /// Remarks that it overrules; nothing that came later.
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

/// What came of an effect that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into the engine")]
pub enum EffectResult {
    /// It is done, and there is nothing else to report.
    Plain,
    Commented {
        comment: CommentId,
    },
    /// The comment that was to be edited is gone.
    CommentGone,
    Moved {
        /// When the tracker says that it was changed.
        version: Option<Timestamp>,
    },
    /// Somebody has moved the ticket meanwhile; it was left alone.
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
    /// It is in the forge's own merge queue.
    Queued,
    Gated {
        results: Vec<GateResult>,
    },
    /// The ticket's directory stays, for this reason.
    Kept {
        because: String,
    },
    /// `unsigned`: why nobody signed it, where git has a key.
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
    /// The answer was lost: it may have been done.
    MaybeDone {
        detail: String,
    },
    /// Our access was refused. The effect is held until it is granted again, never dropped.
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
    /// The permit said no.
    Refused {
        refusal: Refusal,
    },
    HeadMoved {
        actual: CommitId,
    },
    Conflict {
        files: Vec<String>,
    },
    /// A person pushed to the branch, and theirs contradicts ours. The branch is at theirs; ours is under the ref `kept`.
    Apart {
        files: Vec<String>,
        kept: String,
    },
    /// Something is in the way for now.
    NotNow {
        because: String,
    },
}
