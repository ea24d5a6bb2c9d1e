//! Effects: what the engine wants done, as plain data with names in the imperative. Each result comes back as an event.

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
    /// `None` only for an effect that concerns no single ticket.
    pub ticket: Option<TicketId>,
    /// When the effect was decided. Anything that existed before cannot be its result.
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
        /// Which agent does the run.
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
        /// Lets a repeated comment find the one that the first try made.
        key: String,
        said: Said,
    },
    /// Moves the ticket, if it is still in one of the columns `from`.
    MoveTicket {
        from: Vec<String>,
        state: String,
    },
    /// Adds labels because the comment `told` asked for it.
    AddLabels {
        labels: Vec<String>,
        told: ToldIn,
    },
    /// Answers a comment that gave the runner an instruction: with a reaction where the service has them, otherwise in words. With `aloud`,
    /// in words in any case.
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
    /// Links the pull request to the ticket. The same address again does not make a second link.
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
    /// Reads a remark by its id, because a complete reading did not have it.
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
    /// Takes the pull request out of the forge's own merge queue.
    Dequeue {
        number: PrNumber,
    },
    /// Brings the runner's part of the pull request's text up to date. With `ready`, also marks it as not a draft any more.
    UpdatePr {
        number: PrNumber,
        ready: bool,
    },
    /// Publishes the gates' result on this commit as a commit status.
    PublishGates {
        head: CommitId,
    },
    /// Runs the failed checks once more.
    RerunChecks {
        number: PrNumber,
        checks: Vec<String>,
    },
    /// Answers in a conversation on the pull request. With `resolve`, also resolves it.
    AnswerThread {
        number: PrNumber,
        thread: CommentId,
        key: String,
        said: Said,
        resolve: bool,
    },
    /// Writes one comment with the findings of the runner's review and how they were answered.
    ReviewComment {
        number: PrNumber,
        key: String,
    },
    /// Asks a reviewer to look again.
    RequestReview {
        number: PrNumber,
        reviewer: String,
    },
    RunGate {
        branch: String,
        head: CommitId,
    },
    /// Stores what was checked: with the run, with the commit and in the pull request.
    WriteReceipt {
        commit: CommitId,
    },
    /// Removes the merged branch and the leftovers of a finished job.
    CleanUp {
        branch: String,
        merged_head: Option<CommitId>,
    },
}

/// The comment that gave the runner an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldIn {
    pub comment: CommentId,
    /// The pull request with the comment; `None` if it is on the ticket.
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
    /// Asks an agent that has been silent for this long to go on.
    Nudge {
        silent_s: u64,
    },
    StopAfterTurn,
}

/// The short comments on a ticket. Their wording is in `templates/`.
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
    /// A head waits for people that is not the one with which the pull request was opened.
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
    Salvaged {
        run: RunId,
        salvage: Salvage,
        failure: Option<RunFailure>,
    },
    BranchReady {
        branch: String,
        head: Option<CommitId>,
    },
    /// The worker declared the work done, and the result is in the ticket's own directory.
    HandedOver {
        run: RunId,
    },
    /// The ticket is closed, and its directory is kept.
    DirectoryKept {
        because: String,
    },
    /// The worker's own words, through the desk (the socket for its `tk`).
    Worker {
        run: RunId,
        text: String,
    },
    Asked {
        run: RunId,
        question: String,
    },
    /// A reply to a person who gave the runner an instruction. `head` is the head that the text names.
    Reply {
        to: String,
        text: String,
        head: Option<CommitId>,
    },
    /// An answer to a remark. `how` is `fixed`, `explained`, `declined`, `addressed` or `settled`.
    Answer {
        how: String,
        commit: Option<CommitId>,
        words: Option<String>,
    },
}

impl Said {
    /// Returns the head that the comment names. A person who answers below the comment has seen that head.
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
        }
    }

    /// Whether the effect is written to the outbox and done again after a crash. The others are decided anew where they are still needed.
    pub fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::StopRun { .. }
                | Self::Steer { .. }
                | Self::RefreshTickets { .. }
                | Self::InspectPr { .. }
                | Self::CheckRemark { .. }
        )
    }
}
