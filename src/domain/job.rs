//! Dirigent's durable record about one ticket. The ledger owns it; the engine changes it.

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

/// Which comment carries which of our keys.
pub type OurComments = BTreeMap<String, CommentId>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub ticket: TicketFacts,
    pub stage: Stage,
    pub delivery: Delivery,
    pub spending: Seldom<Spending>,
    pub evidence: Seldom<EvidenceRecord>,
    pub people: Seldom<People>,
    /// Runs ever started.
    pub attempts: u32,
    /// Failures in a row that count against `agent.max_retries`.
    pub failures: u32,
    /// Runs in a row that were lost with the runner, which is not the job's failure.
    #[serde(default)]
    pub losses: u32,
    pub rework_cycles: u32,
    /// Runs in a row that ended well and left the ticket active.
    #[serde(default)]
    pub continuations: u32,
    /// A column that we moved the ticket to and that no reading has shown yet.
    pub column: Option<Box<ColumnWrite>>,
    /// The directory that it keeps across runs (`workspace.mode: directory`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<LastingDirectory>,
    /// Where its own worker has moved the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_by_worker: Option<Box<WorkerMove>>,
    /// The conversation to go on with.
    pub session: Option<SessionId>,
    pub workpad: Seldom<Workpad>,
    /// Comments of ours that are there, by their keys: a marker that stands elsewhere is a copy.
    #[serde(default, skip_serializing_if = "OurComments::is_empty")]
    pub comments: OurComments,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What was recorded about the job's attempts and their results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRecord {
    pub receipt: Option<Receipt>,
    /// What the attempt that was started last was told.
    pub started_with: Option<Fingerprint>,
    /// What the last finished attempt that brought nothing was told.
    pub no_progress_with: Option<Fingerprint>,
    /// What the last finished run said about its work.
    pub summary: Option<String>,
    /// Where uncommitted work of a run that did not end well was saved; gone with the next one that does.
    #[serde(default)]
    pub salvage: Option<String>,
    /// Why the last run did not end well; gone with the next one that does.
    pub last_failure: Option<RunFailure>,
}

unwritten!(EvidenceRecord);

/// A directory that outlives runs and goes when the ticket is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingDirectory {
    /// Why it stays although the ticket is closed. The next start tries again.
    pub kept: Option<String>,
}

/// A worker moved its own ticket, through the tracker's API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerMove {
    pub run: RunId,
    pub from: String,
    pub state: String,
    /// What it said by that does not hold: the ticket goes back.
    #[serde(default)]
    pub taken_back: bool,
}

/// Our move of the ticket to another column, until a reading shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnWrite {
    /// Where the ticket may have been before: a reading that shows one of these may be an old one.
    pub from: Vec<String>,
    pub to: String,
    pub status: WriteStatus,
    /// The move before this one, if nobody has seen that one either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<ColumnWrite>>,
}

impl ColumnWrite {
    /// A move that leaves now, after `last`.
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

    /// Whether a reading that shows this column may be an old one.
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
    /// What it shows, so that a mere timestamp is not a change.
    pub shows: Option<String>,
}

unwritten!(Workpad);

impl Job {
    /// A job for a ticket that was never seen before.
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

    /// Lets go of what was written and taken out again: most jobs wait, and each costs memory.
    pub fn tidy(&mut self) {
        self.spending.tidy();
        self.evidence.tidy();
        self.people.tidy();
        self.workpad.tidy();
        self.delivery.reviews.tidy();
    }

    /// What an approval is about: the pull request's head, else the branch's.
    pub fn current_head(&self) -> Option<&CommitId> {
        self.delivery.current_head()
    }

    /// Whether an approval accepts what a run made of this remark: the person has seen it.
    pub fn is_accepted_by_approval(&self, remark: &Remark) -> bool {
        let is_published = |run: &RunId| !self.delivery.unpublished.contains(run);
        remark.is_accepted_by_approval() && remark.dealt_with_by().is_none_or(is_published)
    }

    /// Another branch for work that begins anew; what belongs to the old one is left with it.
    pub fn take_new_branch(&mut self, prefix: &str) {
        self.delivery.take_new_branch(prefix, self.ticket.key.as_str(), &self.ticket.title);
        self.evidence.receipt = None;
        self.people.remarks.retain(|remark| remark.key.kind != RemarkKind::Finding);
    }

    /// What became of a finding, in one line.
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

    /// The conversation that this work goes on with. A reviewer has one of its own.
    pub fn session_of(&mut self, work: &Work) -> &mut Option<SessionId> {
        match work {
            Work::Implement | Work::Rework { .. } => &mut self.session,
            Work::Review { .. } => &mut self.delivery.reviews.session,
        }
    }

    /// Whether its own worker has moved the ticket there: the run under way is let to its end, and a move that is being taken back means
    /// nothing any more.
    pub fn is_where_its_worker_put_it(&self, state: &str) -> bool {
        let goes_back = |moved: &WorkerMove| {
            moved.taken_back && self.column.as_ref().is_some_and(|write| same_state(&write.to, &moved.from))
        };
        self.moved_by_worker.as_deref().is_some_and(|moved| {
            same_state(&moved.state, state) && (self.stage.run() == Some(&moved.run) || goes_back(moved))
        })
    }

    /// The column that the ticket is in, or will be in once our own move is through.
    pub fn intended_column(&self) -> &str {
        self.column.as_ref().map_or(self.ticket.state.as_str(), |write| write.to.as_str())
    }
}
