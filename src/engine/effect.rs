//! What the engine wants done. Imperative, plain data; each result comes back as an event.

use serde::{Deserialize, Serialize};

use super::permit::EffectKind;
use crate::domain::comment::Acknowledgement;
use crate::domain::evidence::Verification;
use crate::domain::failure::RunFailure;
use crate::domain::ids::{CommentId, CommitId, EffectId, PrNumber, RunId, SessionId, TicketId};
use crate::domain::job::{BlockCause, HumanMessage, ReworkCause, Work};
use crate::domain::pr::MergeMethod;
use crate::domain::remark::RemarkKind;
use crate::domain::route::Route;
use crate::domain::run::{Salvage, StopReason};
use crate::domain::ticket::NewTicket;
use crate::domain::time::Timestamp;

/// One thing to do. Dropping it would lose a decision, hence `must_use`.
#[must_use]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub id: EffectId,
    /// `None` only for what concerns no single ticket.
    pub ticket: Option<TicketId>,
    /// Nothing that was made before can be what it makes.
    #[serde(default)]
    pub decided_at: Timestamp,
    pub action: Action,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Action {
    StartRun {
        run: RunId,
        work: Work,
        attempt: u32,
        branch: String,
        resume: Option<SessionId>,
        /// Which agent does it, decided with the run.
        route: Route,
        /// Open remarks for the prompt. The run reports which of them it delivered.
        undelivered: Vec<HumanMessage>,
    },
    StopRun {
        run: RunId,
        reason: StopReason,
    },
    Steer {
        run: RunId,
        how: Steering,
    },
    RefreshTickets {
        ids: Vec<TicketId>,
    },
    WriteWorkpad {
        shows: String,
    },
    Comment {
        /// Makes a repetition find the first one.
        key: String,
        said: Said,
    },
    /// Moves the ticket, if it is still in one of the columns `from`.
    MoveTicket {
        from: Vec<String>,
        state: String,
    },
    /// Adds labels because somebody said so in the comment `told`.
    AddLabels {
        labels: Vec<String>,
        told: ToldIn,
    },
    /// Answers a comment that told us to do something: with a reaction where there are any, else in words. `aloud`: in words
    /// in any case.
    Acknowledge {
        told: ToldIn,
        how: Acknowledgement,
        aloud: bool,
        key: String,
        said: Said,
    },
    CreateTicket {
        key: String,
        new: NewTicket,
    },
    /// Links the pull request to the ticket; the same address again is no second link.
    AttachLink {
        url: String,
        title: String,
    },
    PushBranch {
        branch: String,
        head: CommitId,
    },
    OpenPr {
        branch: String,
        head: CommitId,
    },
    ReopenPr {
        number: PrNumber,
    },
    InspectPr {
        number: PrNumber,
    },
    /// Asks for a remark by its id, because a complete reading did not have it.
    CheckRemark {
        kind: RemarkKind,
        id: CommentId,
    },
    MergePr {
        number: PrNumber,
        head: CommitId,
        base_branch: String,
        method: MergeMethod,
    },
    UpdateBranch {
        number: PrNumber,
        head: CommitId,
    },
    /// Takes it out of the forge's own merge queue.
    Dequeue {
        number: PrNumber,
    },
    /// Brings our part of the pull request's text up to date; `ready`: it is not a draft any more.
    UpdatePr {
        number: PrNumber,
        ready: bool,
    },
    /// Our gates' result on this commit, as a commit status.
    PublishGates {
        head: CommitId,
    },
    /// Lets failed jobs run once more.
    RerunChecks {
        number: PrNumber,
        checks: Vec<String>,
    },
    /// Answers in a conversation on the pull request, and resolves it where the workflow says so.
    AnswerThread {
        number: PrNumber,
        thread: CommentId,
        key: String,
        said: Said,
        resolve: bool,
    },
    /// What our review found and what became of it, as one comment.
    ReviewComment {
        number: PrNumber,
        key: String,
    },
    /// Asks somebody to look again.
    RequestReview {
        number: PrNumber,
        reviewer: String,
    },
    RunGate {
        branch: String,
        head: CommitId,
    },
    /// What was checked, kept with the run, with the commit and in the pull request.
    WriteReceipt {
        commit: CommitId,
    },
    /// The job is over: its merged branch and leftovers go.
    CleanUp {
        branch: String,
        merged_head: Option<CommitId>,
    },
    Notify {
        text: String,
    },
}

/// The comment that told us to do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldIn {
    pub comment: CommentId,
    /// `None` where it stands on the ticket.
    pub pr: Option<PrNumber>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Steering {
    Say {
        message: HumanMessage,
    },
    WrapUp {
        spent: String,
    },
    /// It has been silent for so long.
    Nudge {
        silent_s: u64,
    },
    StopAfterTurn,
}

/// The short comments on a ticket. Worded by `templates/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Said {
    Started {
        run: RunId,
        attempt: u32,
        branch: String,
    },
    Blocked {
        cause: BlockCause,
        sentence: String,
        next: String,
        #[serde(default)]
        detail: Option<String>,
    },
    PrOpened {
        number: PrNumber,
        url: Option<String>,
        branch: String,
        verification: Option<Verification>,
        #[serde(default)]
        head: Option<CommitId>,
    },
    /// Another head than the one that the pull request was opened with waits for somebody.
    Waiting {
        head: CommitId,
        sentence: String,
        next: String,
    },
    Rework {
        cycle: u32,
        limit: u32,
        cause: ReworkCause,
    },
    Done {
        commit: Option<CommitId>,
        by_us: bool,
        verification: Option<Verification>,
    },
    GaveUp {
        sentence: String,
    },
    Salvaged {
        run: RunId,
        salvage: Salvage,
        failure: Option<RunFailure>,
    },
    BranchReady {
        branch: String,
        head: Option<CommitId>,
    },
    /// The worker says done, and what it made is in the ticket's own directory.
    HandedOver {
        run: RunId,
    },
    /// The ticket is closed, and its directory is kept.
    DirectoryKept {
        because: String,
    },
    /// The worker's own words, through the desk.
    Worker {
        run: RunId,
        text: String,
    },
    Asked {
        run: RunId,
        question: String,
    },
    /// To somebody who told us to do something. `head` is what it names.
    Reply {
        to: String,
        text: String,
        head: Option<CommitId>,
    },
    /// To a remark: `fixed`, `explained`, `declined` or `addressed`.
    Answer {
        how: String,
        commit: Option<CommitId>,
        words: Option<String>,
    },
}

impl Said {
    /// The head that it names: whoever answers has seen that one.
    pub fn names(&self) -> Option<&CommitId> {
        match self {
            Self::PrOpened { head, .. } | Self::Reply { head, .. } => head.as_ref(),
            Self::Waiting { head, .. } => Some(head),
            _ => None,
        }
    }
}

impl Action {
    pub fn kind(&self) -> EffectKind {
        match self {
            Self::StartRun { .. } => EffectKind::StartRun,
            Self::StopRun { .. } => EffectKind::StopRun,
            Self::Steer { .. } => EffectKind::Steer,
            Self::RefreshTickets { .. } => EffectKind::RefreshTickets,
            Self::WriteWorkpad { .. } => EffectKind::WriteWorkpad,
            Self::Comment { .. } => EffectKind::Comment,
            Self::MoveTicket { .. } => EffectKind::MoveTicket,
            Self::AddLabels { .. } => EffectKind::AddLabels,
            Self::Acknowledge { .. } => EffectKind::Acknowledge,
            Self::CreateTicket { .. } => EffectKind::CreateTicket,
            Self::AttachLink { .. } => EffectKind::AttachLink,
            Self::PushBranch { .. } => EffectKind::PushBranch,
            Self::OpenPr { .. } => EffectKind::OpenPr,
            Self::ReopenPr { .. } => EffectKind::ReopenPr,
            Self::InspectPr { .. } => EffectKind::InspectPr,
            Self::CheckRemark { .. } => EffectKind::CheckRemark,
            Self::MergePr { .. } => EffectKind::MergePr,
            Self::UpdateBranch { .. } => EffectKind::UpdateBranch,
            Self::Dequeue { .. } => EffectKind::Dequeue,
            Self::UpdatePr { .. } => EffectKind::UpdatePr,
            Self::PublishGates { .. } => EffectKind::PublishGates,
            Self::RerunChecks { .. } => EffectKind::RerunChecks,
            Self::AnswerThread { .. } => EffectKind::AnswerThread,
            Self::ReviewComment { .. } => EffectKind::ReviewComment,
            Self::RequestReview { .. } => EffectKind::RequestReview,
            Self::RunGate { .. } => EffectKind::RunGate,
            Self::WriteReceipt { .. } => EffectKind::WriteReceipt,
            Self::CleanUp { .. } => EffectKind::CleanUp,
            Self::Notify { .. } => EffectKind::Notify,
        }
    }

    /// Written to the outbox and done again after a crash. The others are asked for anew by the next tick.
    pub fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::StopRun { .. }
                | Self::Steer { .. }
                | Self::RefreshTickets { .. }
                | Self::InspectPr { .. }
                | Self::CheckRemark { .. }
                | Self::Notify { .. }
        )
    }
}
