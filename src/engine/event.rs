//! What the engine is told. Past tense: all of it has happened already.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::permit::Refusal;
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommentId, CommitId, EffectId, RunId, TicketId};
use crate::domain::job::HumanMessage;
use crate::domain::pr::PullRequest;
use crate::domain::run::{Activity, ProcessMark, RunReport, Salvage};
use crate::domain::ticket::Ticket;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The past was settled: these runs of an earlier life are over.
    Recovered {
        lost: Vec<LostRun>,
    },
    /// A complete list of the tickets in the states of interest.
    Polled {
        tickets: Vec<Ticket>,
        base: Option<CommitId>,
    },
    /// The list of the last `Polled` still holds, to the letter. No poll failed and no workflow was loaded in between.
    PolledUnchanged {
        base: Option<CommitId>,
    },
    PollFailed {
        error: String,
    },
    /// A complete answer about `asked`: what is missing is gone.
    TicketsRefreshed {
        asked: Vec<TicketId>,
        tickets: Vec<Ticket>,
    },
    RunStarted {
        run: RunId,
        process: ProcessMark,
        worktree: PathBuf,
        base: CommitId,
        head: CommitId,
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
        pr: Option<PullRequest>,
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
    /// A trusted word that did not come with a ticket (a command, a webhook).
    HumanSaid {
        ticket: TicketId,
        word: HumanMessage,
    },
    Shutdown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostRun {
    pub run: RunId,
    pub salvage: Option<Salvage>,
    pub head: Option<CommitId>,
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
    Approve {
        ticket: TicketId,
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
            | Self::Approve { ticket }
            | Self::Forget { ticket } => Some(ticket),
        }
    }
}

/// What came of an effect that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into the engine")]
pub enum EffectResult {
    /// Nothing to say but that it is done.
    Plain,
    Commented {
        comment: CommentId,
    },
    Opened {
        pr: PullRequest,
    },
    Merged {
        commit: Option<CommitId>,
    },
    Gated {
        results: Vec<GateResult>,
    },
}

impl std::fmt::Display for EffectError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Permanent { detail } | Self::Transient { detail, .. } | Self::NotNow { because: detail } => {
                out.write_str(detail)
            }
            Self::Refused { refusal } => refusal.fmt(out),
            Self::HeadMoved { actual } => write!(out, "the branch is at {}", actual.short()),
            Self::Conflict { files } => write!(out, "conflicts in {}", files.join(", ")),
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
    /// Something is in the way for now.
    NotNow {
        because: String,
    },
}
