//! Dirigent's durable record about one ticket. The ledger owns it; the engine changes it.

use serde::{Deserialize, Serialize};

use super::comment::Author;
use super::evidence::{Evidence, EvidenceKind, Receipt, tail};
use super::failure::RunFailure;
use super::ids::{CommentId, CommitId, PoolName, PrNumber, RunId, SessionId, TicketId, TicketKey};
use super::phase::Phase;
use super::pr::{Mergeability, PrState};
use super::run::{RunKind, StopReason};
use super::ticket::{Blocker, Dispatchable, Ticket};
use super::time::Timestamp;
use super::usage::Usage;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub ticket: TicketFacts,
    pub stage: Stage,
    pub branch: BranchName,
    /// The branch's head as last seen.
    pub head: Option<CommitId>,
    pub pr: Option<PrFacts>,
    /// Runs ever started.
    pub attempts: u32,
    /// Failures in a row that count against `agent.max_retries`.
    pub failures: u32,
    pub rework_cycles: u32,
    /// Runs in a row that ended well and left the ticket active.
    #[serde(default)]
    pub continuations: u32,
    pub rebase_attempts: u32,
    pub review_passes: u32,
    /// Over the job's whole life.
    pub spent: Usage,
    pub run_ms: u64,
    /// Since a person last cleared the budget: what the caps are compared with.
    pub budget_used: Usage,
    pub budget_run_ms: u64,
    pub pause: Option<Pause>,
    /// The column we moved the ticket to last; a change to it is not a person's.
    pub moved_to: Option<String>,
    /// The last move that was confirmed: a look that still shows where it came from may be an old one.
    pub moved: Option<Moved>,
    /// Fingerprint of the attempt that was started last, taken when it started.
    pub tried: Option<String>,
    /// Fingerprint of the last finished attempt that brought nothing.
    pub fruitless: Option<String>,
    /// The conversation to go on with.
    pub session: Option<SessionId>,
    pub receipt: Option<Receipt>,
    /// The head that a person approved by command or by moving the ticket.
    pub approved_head: Option<CommitId>,
    /// The head that a review run read and found good.
    pub reviewed_head: Option<CommitId>,
    /// Trusted words that the next prompt must carry.
    pub unheard: Vec<HumanWord>,
    pub workpad: Workpad,
    /// What the last finished run said about its work.
    pub summary: Option<String>,
    /// Where uncommitted work of a run that did not end well was saved; gone with the next one that does.
    #[serde(default)]
    pub salvage: Option<String>,
    /// Why the last run did not end well; gone with the next one that does.
    pub last_failure: Option<RunFailure>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The part of a ticket that decisions depend on. Texts stay in the tracker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketFacts {
    pub id: TicketId,
    pub key: TicketKey,
    pub title: String,
    pub state: String,
    pub priority: Option<i64>,
    pub labels: Vec<String>,
    pub blocked_by: Vec<Blocker>,
    pub parent: Option<TicketId>,
    pub author: Option<Author>,
    pub assignee: Option<String>,
    pub url: Option<String>,
    pub dispatchable: Dispatchable,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    /// The newest comment that was taken in; later ones are news.
    pub newest_comment: Option<CommentId>,
    /// Its time, for when the comment itself was edited away.
    pub newest_comment_at: Option<Timestamp>,
    /// The newest comment by somebody whose words count.
    pub newest_trusted_comment: Option<CommentId>,
}

impl Job {
    /// A job for a ticket that was never seen before.
    pub fn new(ticket: TicketFacts, branch: BranchName, now: Timestamp) -> Self {
        Self {
            ticket,
            stage: Stage::Queued { work: Work::Implement, wait: Wait::Turn, since: now },
            branch,
            head: None,
            pr: None,
            attempts: 0,
            failures: 0,
            rework_cycles: 0,
            continuations: 0,
            rebase_attempts: 0,
            review_passes: 0,
            spent: Usage::default(),
            run_ms: 0,
            budget_used: Usage::default(),
            budget_run_ms: 0,
            pause: None,
            moved_to: None,
            moved: None,
            tried: None,
            fruitless: None,
            session: None,
            receipt: None,
            approved_head: None,
            reviewed_head: None,
            unheard: Vec::new(),
            workpad: Workpad::default(),
            summary: None,
            salvage: None,
            last_failure: None,
            created_at: now,
            updated_at: now,
        }
    }
}

impl Job {
    /// What an approval is about: the pull request's head, else the branch's.
    pub fn current_head(&self) -> Option<&CommitId> {
        self.pr.as_ref().map(|pr| &pr.head).or(self.head.as_ref())
    }
}

impl TicketFacts {
    pub fn of(ticket: &Ticket) -> Self {
        Self {
            id: ticket.id.clone(),
            key: ticket.key.clone(),
            title: ticket.title.clone(),
            state: ticket.state.clone(),
            priority: ticket.priority,
            labels: ticket.labels.clone(),
            blocked_by: ticket.blocked_by.clone(),
            parent: ticket.parent.clone(),
            author: ticket.author.clone(),
            assignee: ticket.assignee.clone(),
            url: ticket.url.clone(),
            dispatchable: ticket.dispatchable.clone(),
            created_at: ticket.created_at,
            updated_at: ticket.updated_at,
            newest_comment: ticket.comments.last().map(|comment| comment.id.clone()),
            newest_comment_at: ticket.comments.iter().filter_map(|comment| comment.created_at).max(),
            newest_trusted_comment: None,
        }
    }
}

/// `generation` grows when a closed pull request asks for a new branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchName {
    pub name: String,
    pub generation: u32,
}

/// What is known of the job's pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrFacts {
    pub number: PrNumber,
    pub url: Option<String>,
    pub state: PrState,
    pub head: CommitId,
    pub base: Option<CommitId>,
    pub labels: Vec<String>,
    pub mergeability: Mergeability,
    pub checks: ChecksSummary,
    /// Since when this head has been waiting for checks.
    pub head_since: Timestamp,
    /// The newest review or thread comment that was acted on.
    pub review_cursor: Option<CommentId>,
    /// When we opened it again: a look that still shows it closed may be an old one.
    #[serde(default)]
    pub reopened_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksSummary {
    NoneYet,
    Pending,
    Passed,
    Failed,
}

impl ChecksSummary {
    pub fn name(self) -> &'static str {
        match self {
            Self::NoneYet => "none yet",
            Self::Pending => "pending",
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }
}

/// A column that the ticket left because we moved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub from: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub since: Timestamp,
    pub by: String,
}

/// Something a trusted person wrote, on its way to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanWord {
    pub from: String,
    pub text: String,
    pub at: Timestamp,
    pub urgent: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workpad {
    pub comment: Option<CommentId>,
    pub written_at: Option<Timestamp>,
    /// Hash of what it shows, so that a mere timestamp is no change.
    pub shows: Option<String>,
}

/// What the next or current run has to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Work {
    Implement,
    Review { head: CommitId },
    Rework { cause: ReworkCause },
}

impl Work {
    /// The phase of a job while a run does this.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Implement => Phase::Implementing,
            Self::Review { .. } => Phase::Reviewing,
            Self::Rework { .. } => Phase::Rework,
        }
    }

    pub fn kind(&self) -> RunKind {
        match self {
            Self::Implement => RunKind::Implement,
            Self::Review { .. } => RunKind::Review,
            Self::Rework { .. } => RunKind::Rework,
        }
    }
}

/// Why the work has to be done again, with what proves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReworkCause {
    pub trigger: ReworkTrigger,
    pub summary: String,
    pub evidence: Vec<Evidence>,
}

impl ReworkCause {
    /// What proves it, short enough for a comment: the end of what a command printed, or the first remarks.
    pub fn shown(&self) -> Option<String> {
        const LINES: usize = 10;
        const CHARACTERS: usize = 1_000;
        let parts = self.evidence.iter().filter_map(|evidence| match &evidence.kind {
            EvidenceKind::Command { command, output, .. } => {
                Some(format!("$ {command}\n{}", tail(output, LINES, CHARACTERS)))
            }
            // The summary names the files of a conflict already.
            EvidenceKind::Note { text } if self.trigger != ReworkTrigger::MergeConflict => {
                Some(tail(text, LINES, CHARACTERS))
            }
            EvidenceKind::Note { .. } | EvidenceKind::File { .. } | EvidenceKind::Test { .. } => None,
        });
        let shown = parts.take(3).collect::<Vec<_>>().join("\n");
        (!shown.trim().is_empty()).then_some(shown)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReworkTrigger {
    CheckFailed,
    MergeConflict,
    ChangesRequested,
    ReviewFinding,
    UnresolvedThread,
    TicketComment,
    ReworkState,
    GateFailed,
    Contradicted,
    /// A person moved the branch or asked for another round by command.
    Operator,
}

/// Where the job stands, with the data that only this place needs.
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
        since: Timestamp,
    },
    Merging {
        head: CommitId,
        since: Timestamp,
    },
    /// `ticket_closed`: the ticket was seen in a terminal state since; only then does a reopened ticket start anew.
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

/// Why a queued job has no worker yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum Wait {
    /// Eligible; the next decision starts it.
    Turn,
    Slot,
    StateSlot {
        state: String,
    },
    Blockers {
        keys: Vec<TicketKey>,
    },
    Cycle {
        keys: Vec<TicketKey>,
    },
    Wave {
        wave: u32,
    },
    Retry {
        attempt: u32,
        due: Timestamp,
        error: RunFailure,
    },
    /// A run that ended well goes on with the same ticket.
    Continuation {
        due: Timestamp,
    },
    Quota {
        pool: PoolName,
        until: Timestamp,
    },
    KillSwitch {
        source: SwitchSource,
    },
    Observe,
    Preflight,
    Labels {
        missing: Vec<String>,
    },
    NotOurs {
        because: String,
    },
    DailyBudget {
        what: String,
        until: Timestamp,
    },
    /// The board could not be read; nothing is started on old knowledge.
    Tracker,
    ShuttingDown,
}

/// Where a kill switch was pulled.
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
    /// `gates.task` runs on this commit.
    Gates { head: CommitId },
    /// The branch is being pushed and the pull request opened.
    Opening { head: CommitId },
    /// The forge's checks.
    Forge { head: CommitId },
    /// The forge has not worked out whether it can be merged.
    Mergeability { head: CommitId },
    /// The base is being merged into the branch.
    BranchUpdate { head: CommitId },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum HumanWait {
    /// Somebody other than the author approves the head.
    Approval { head: CommitId },
    /// There is no forge: the branch is the result.
    Branch { branch: String },
    /// Nothing to check with, and the workflow does not take that for a pass.
    NoChecks { head: CommitId },
    /// The worker wants its plan approved.
    Plan,
    /// The pull request is a draft.
    Draft,
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
        fingerprint: String,
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
    /// Stopped by a person while its finished work was being judged: a retry goes on with that work.
    SetAside,
    MergeRefused {
        because: String,
    },
    /// A write to the tracker or forge is refused for good.
    EffectRefused {
        effect: String,
        because: String,
    },
    ReviewPasses {
        limit: u32,
    },
    /// Run after run ended well, and the ticket is still active.
    NoEnd {
        runs: u32,
    },
}

/// Why a job whose gates all pass has not been merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for")]
pub enum MergeHold {
    Slot {
        behind: Option<TicketKey>,
    },
    MergeDisabled,
    RolloutForbids,
    KillSwitch {
        source: SwitchSource,
    },
    /// The forge (or the user's work tree) is in the way for now.
    Forge {
        because: String,
        retry_at: Timestamp,
    },
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
    /// By command: it stays so until a retry.
    GivenBack,
    Gone,
}
