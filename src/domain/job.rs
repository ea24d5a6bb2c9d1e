//! Dirigent's durable record about one ticket. The ledger owns it; the engine changes it.

mod stage;
mod work;

use serde::{Deserialize, Serialize};

use super::branch::branch_name;
use super::comment::Author;
use super::evidence::Receipt;
use super::failure::RunFailure;
use super::ids::{CommentId, CommitId, PrNumber, SessionId, TicketId, TicketKey};
use super::pr::{Mergeability, PrState};
use super::ticket::{Blocker, Dispatchable, Ticket};
use super::time::Timestamp;
use super::usage::Usage;

pub use stage::{BlockCause, CheckWait, DoneHow, HumanWait, MergeHold, ReleaseReason, Stage, SwitchSource, Wait};
pub use work::{ReworkCause, ReworkTrigger, Work};

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
    pub started_with: Option<String>,
    /// Fingerprint of the last finished attempt that brought nothing.
    pub no_progress_with: Option<String>,
    /// The conversation to go on with.
    pub session: Option<SessionId>,
    pub receipt: Option<Receipt>,
    /// The head that a person approved by command or by moving the ticket.
    pub approved_head: Option<CommitId>,
    /// The head that a review run read and found good.
    pub reviewed_head: Option<CommitId>,
    /// Trusted words that the next prompt must carry.
    pub undelivered: Vec<HumanMessage>,
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
            stage: Stage::Queued { work: Work::Implement, wait: Wait::Ready, since: now },
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
            started_with: None,
            no_progress_with: None,
            session: None,
            receipt: None,
            approved_head: None,
            reviewed_head: None,
            undelivered: Vec::new(),
            workpad: Workpad::default(),
            summary: None,
            salvage: None,
            last_failure: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// What an approval is about: the pull request's head, else the branch's.
    pub fn current_head(&self) -> Option<&CommitId> {
        self.pr.as_ref().map(|pr| &pr.head).or(self.head.as_ref())
    }

    /// Another branch for work that begins anew; what belongs to the old one is left with it.
    pub fn take_new_branch(&mut self, prefix: &str) {
        let generation = self.branch.generation + 1;
        let name = branch_name(prefix, self.ticket.key.as_str(), &self.ticket.title, generation);
        self.branch = BranchName { name, generation };
        self.pr = None;
        self.head = None;
        self.receipt = None;
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
    /// Another one was asked for in its place, and the answer was lost: it may be open. The next opening finds it.
    #[serde(default)]
    pub replaced: bool,
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
pub struct HumanMessage {
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
