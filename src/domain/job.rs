//! The job: Dirigent's durable record about one ticket. The ledger stores it; the engine changes it.

mod delivery;
mod facts;
mod hindrance;
mod people;
mod reviews;
mod spending;
mod stage;
mod work;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::basis::WriteStatus;
use super::evidence::Receipt;
use super::failure::RunFailure;
use super::finding::ReviewFinding;
use super::fingerprint::Fingerprint;
use super::ids::{CommentId, CommitId, RunId, SessionId};
use super::remark::{Remark, RemarkKind, RemarkStatus};
use super::seldom::{Seldom, unwritten};
use super::ticket::{same_state, state_in};
use super::time::Timestamp;

pub use delivery::{Announced, BranchName, ChecksSummary, Delivery, PrFacts, PrWrite, PrWriteKind};
pub use facts::TicketFacts;
pub use hindrance::Hindrance;
pub use people::{Approval, HumanMessage, NamedHead, Pause, People};
pub use reviews::{Reviews, SettledFinding, UnreadableReview};
pub use spending::Spending;
pub use stage::{BlockCause, CheckWait, DoneHow, HumanWait, MergeHold, ReleaseReason, Stage, SwitchSource, Turn, Wait};
pub use work::{ReworkCause, ReworkTrigger, Work};

/// The runner's own comments on the ticket and its pull request: from the key in the comment's marker to the comment's id.
pub type OurComments = BTreeMap<String, CommentId>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub ticket: TicketFacts,
    pub stage: Stage,
    pub delivery: Delivery,
    pub spending: Seldom<Spending>,
    pub evidence: Seldom<EvidenceRecord>,
    pub people: Seldom<People>,
    /// How many runs were ever started.
    pub attempts: u32,
    /// Consecutive failures that count against `agent.max_retries`.
    pub failures: u32,
    /// Consecutive runs that were lost because the runner itself stopped, which is not the job's failure.
    #[serde(default)]
    pub losses: u32,
    pub rework_cycles: u32,
    /// Consecutive runs that ended well and left the ticket active.
    #[serde(default)]
    pub continuations: u32,
    /// The runner's move of the ticket to another column, until a reading shows it.
    pub column: Option<Box<ColumnWrite>>,
    /// The directory that the ticket keeps across runs (`workspace.mode: directory`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<LastingDirectory>,
    /// Where the job's own worker has moved the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_by_worker: Option<Box<WorkerMove>>,
    /// The agent conversation that the next run resumes.
    pub session: Option<SessionId>,
    pub workpad: Seldom<Workpad>,
    /// The runner's own comments that are known to exist, by key. A comment that carries one of these keys and has another id is a copy.
    #[serde(default, skip_serializing_if = "OurComments::is_empty")]
    pub comments: OurComments,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What was recorded about the job's attempts and their results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRecord {
    pub receipt: Option<Receipt>,
    /// What the last started attempt was told.
    pub started_with: Option<Fingerprint>,
    /// What the last finished attempt without any progress was told.
    pub no_progress_with: Option<Fingerprint>,
    /// The last finished run's own summary of its work.
    pub summary: Option<String>,
    /// The ref under which the uncommitted work of a failed run was saved. Cleared by the next run that ends well.
    #[serde(default)]
    pub salvage: Option<String>,
    /// Why the last run failed. Cleared by the next run that ends well.
    pub last_failure: Option<RunFailure>,
}

unwritten!(EvidenceRecord);

/// A directory that outlives runs and is removed when the ticket is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingDirectory {
    /// Why the directory was kept although the ticket is closed. The next start of the runner tries to remove it again.
    pub kept: Option<String>,
}

/// A move of the ticket that its own worker made through the tracker's API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerMove {
    pub run: RunId,
    pub from: String,
    pub state: String,
    /// Whether the claim behind the move was contradicted, so that the runner moves the ticket back.
    #[serde(default)]
    pub taken_back: bool,
}

/// The runner's own move of the ticket to another column, kept until a reading shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnWrite {
    /// Where the ticket may have been before the move. A reading that shows one of these columns may be outdated.
    pub from: Vec<String>,
    pub to: String,
    pub status: WriteStatus,
    /// The previous move, if no reading has shown that one either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<ColumnWrite>>,
}

impl ColumnWrite {
    /// Makes a move that is sent now, after `last`. An earlier move that was never answered is dropped.
    pub fn sent(from: Vec<String>, to: String, last: Option<Box<Self>>) -> Box<Self> {
        let earlier = last.and_then(|mut last| {
            let before = last.earlier.take();
            match last.status {
                WriteStatus::Sent => before,
                WriteStatus::Confirmed { .. } | WriteStatus::MaybeDone { .. } => Some(last),
            }
        });
        Box::new(Self { from, to, status: WriteStatus::Sent, earlier })
    }

    /// Whether a reading that shows this column may be outdated.
    pub fn may_come_from(&self, column: &str) -> bool {
        let earlier = self.earlier.as_ref();
        state_in(column, &self.from)
            || earlier.is_some_and(|earlier| same_state(column, &earlier.to) || state_in(column, &earlier.from))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workpad {
    pub comment: Option<CommentId>,
    pub written_at: Option<Timestamp>,
    /// What the comment shows, so that a changed timestamp alone does not cause a write.
    pub shows: Option<String>,
}

unwritten!(Workpad);

impl Job {
    /// Makes a job for a ticket that was never seen before.
    pub fn new(ticket: TicketFacts, branch: BranchName, now: Timestamp) -> Self {
        Self {
            ticket,
            stage: Stage::Queued { work: Work::Implement, wait: Wait::Ready, since: now },
            delivery: Delivery::on(branch),
            spending: Seldom::default(),
            evidence: Seldom::default(),
            people: Seldom::default(),
            attempts: 0,
            failures: 0,
            losses: 0,
            rework_cycles: 0,
            continuations: 0,
            column: None,
            directory: None,
            moved_by_worker: None,
            session: None,
            workpad: Seldom::default(),
            comments: OurComments::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Frees parts that are empty again. Most jobs only wait, and each part of each of them costs memory.
    pub fn tidy(&mut self) {
        self.spending.tidy();
        self.evidence.tidy();
        self.people.tidy();
        self.workpad.tidy();
        self.delivery.reviews.tidy();
    }

    /// Returns the head that an approval is about: the pull request's, or the branch's if there is no pull request.
    pub fn current_head(&self) -> Option<&CommitId> {
        self.delivery.current_head()
    }

    /// Whether an approval accepts this remark as dealt with: a run has dealt with it, and that run's commits are published, so that the
    /// person could see them.
    pub fn is_accepted_by_approval(&self, remark: &Remark) -> bool {
        let is_published = |run: &RunId| !self.delivery.unpublished.contains(run);
        remark.is_accepted_by_approval() && remark.dealt_with_by().is_none_or(is_published)
    }

    /// Gives the job another branch for work that begins anew. The pull request, the receipt and the review's findings stay with the old
    /// branch.
    pub fn take_new_branch(&mut self, prefix: &str) {
        self.delivery.take_new_branch(prefix, self.ticket.key.as_str(), &self.ticket.title);
        self.evidence.receipt = None;
        self.people.remarks.retain(|remark| remark.key.kind != RemarkKind::Finding);
    }

    /// Returns in one line how a finding was answered.
    pub fn answer_to(&self, finding: &ReviewFinding) -> String {
        match self.people.remark(&finding.key()).map(|remark| &remark.status) {
            Some(RemarkStatus::Answered { commit, .. }) => format!("fixed in {}", commit.short()),
            Some(RemarkStatus::Addressed { .. }) => "a commit was made since".to_owned(),
            Some(RemarkStatus::Explained { words, .. }) => format!("explained: {words}"),
            Some(RemarkStatus::Declined { why, .. }) => format!("declined: {why}"),
            Some(RemarkStatus::Overruled { by, .. }) => format!("accepted as it is by {by}"),
            Some(RemarkStatus::Open | RemarkStatus::Delivered { .. } | RemarkStatus::Withdrawn { .. }) | None => {
                "not answered yet".to_owned()
            }
        }
    }

    /// Returns the conversation that a run of this work resumes. A reviewer has a conversation of its own.
    pub fn session_of(&mut self, work: &Work) -> &mut Option<SessionId> {
        match work {
            Work::Implement | Work::Rework { .. } => &mut self.session,
            Work::Review { .. } => &mut self.delivery.reviews.session,
        }
    }

    /// Whether the job's own worker has moved the ticket to this state. Then a run that is under way may finish; and while the runner moves
    /// the ticket back, the state means nothing.
    pub fn is_where_its_worker_put_it(&self, state: &str) -> bool {
        let goes_back = |moved: &WorkerMove| {
            moved.taken_back && self.column.as_ref().is_some_and(|write| same_state(&write.to, &moved.from))
        };
        self.moved_by_worker.as_deref().is_some_and(|moved| {
            same_state(&moved.state, state) && (self.stage.run() == Some(&moved.run) || goes_back(moved))
        })
    }

    /// Returns the column that the ticket is in, or will be in once the runner's own move has arrived.
    pub fn intended_column(&self) -> &str {
        self.column.as_ref().map_or(self.ticket.state.as_str(), |write| write.to.as_str())
    }
}
