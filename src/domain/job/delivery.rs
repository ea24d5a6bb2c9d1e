//! How a job's work gets to the base branch: branch, head, pull request, and how often each step was tried.

use serde::{Deserialize, Serialize};

use super::reviews::Reviews;
use crate::domain::basis::{Basis, Moment};
use crate::domain::branch::branch_name;
use crate::domain::condition::Condition;
use crate::domain::ids::{CommitId, PrNumber, RunId};
use crate::domain::pr::{Mergeability, PrState};
use crate::domain::seldom::Seldom;
use crate::domain::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub branch: BranchName,
    /// The head of the branch as last seen.
    pub head: Option<CommitId>,
    /// The head that the forge's git remote is known to have: the last one that the runner pushed or adopted there.
    pub remote_head: Option<CommitId>,
    /// The last head that the runner pushed itself. Commits beyond it at the remote are a person's.
    #[serde(default)]
    pub pushed_head: Option<CommitId>,
    /// The run that made the head.
    #[serde(default)]
    pub made_by: Option<RunId>,
    /// Runs whose commits have not been pushed, so that nobody can have seen them on the forge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpublished: Vec<RunId>,
    pub pr: Option<Box<PrFacts>>,
    /// Updates of the branch onto the base, counted for the landing that is under way.
    pub update_attempts: u32,
    /// Consecutive merges that failed for a temporary reason.
    pub merge_attempts: u32,
    /// How often the failed checks of this head were run again.
    #[serde(default)]
    pub reruns: u32,
    /// When the failed checks were last run again.
    #[serde(default)]
    pub rerun_at: Option<Timestamp>,
    #[serde(default)]
    pub reviews: Seldom<Reviews>,
    /// The head that people were last told about in a comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<Box<Announced>>,
    /// Since when the job has been ready to land, which is its place in the merge line. Kept while the runner's own update of the branch is
    /// checked.
    #[serde(default)]
    pub in_line_since: Option<Timestamp>,
    /// Since when the merge line waits for this job: it was first, its branch had to be updated, and the result is being checked.
    #[serde(default)]
    pub landing_since: Option<Timestamp>,
    /// The head that a run has prepared for the merge (`merge.executor: prompt`).
    #[serde(default)]
    pub prepared_head: Option<CommitId>,
    /// Whether the job is in the forge's own merge queue, as far as the runner knows.
    #[serde(default)]
    pub in_forge_queue: bool,
    /// The head that the queued rework is about: its checks failed, or it conflicts with the base. If the branch moves to another head,
    /// this rework is not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rework_head: Option<CommitId>,
}

/// A head that people were asked to decide on, with the last run that dealt with remarks about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    pub head: CommitId,
    pub run: Option<RunId>,
    /// Whether people were told that remarks stand against this head with which no run has dealt.
    #[serde(default)]
    pub held: bool,
}

/// A branch name; `generation` grows when the closed pull request makes a new branch necessary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchName {
    pub name: String,
    pub generation: u32,
}

/// What is known about the job's pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrFacts {
    pub number: PrNumber,
    pub url: Option<String>,
    pub state: PrState,
    pub head: CommitId,
    pub base: Option<CommitId>,
    /// The branch that the pull request would be merged into.
    pub base_branch: String,
    pub labels: Vec<String>,
    pub mergeability: Mergeability,
    pub checks: ChecksSummary,
    /// Names of checks that were seen on any head of the pull request. One that has not reported on the current head is still awaited.
    #[serde(default)]
    pub known_checks: Vec<String>,
    /// Since when the current head has been visible.
    pub head_since: Timestamp,
    /// The basis of the look that first showed this head; its `after` is the moment at which the engine took in the look.
    #[serde(default)]
    pub head_shown: Option<Basis>,
    /// Whether a reading that was asked for after this head was shown has shown the ticket outside of every approval state.
    #[serde(default)]
    pub seen_unapproved: bool,
    /// The runner's last write to the pull request or its branch.
    pub write: Option<PrWrite>,
    /// The merge conditions as the last settled look shows them.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// The runner's last write to a pull request or its branch. Looks that were asked before the answer to it say nothing about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum PrWrite {
    /// On its way, not answered yet.
    Sent { what: PrWriteKind },
    /// Answered at this moment, but not visible in a look yet.
    Answered { what: PrWriteKind, moment: Moment, at: Timestamp },
    /// The answer was lost, or the effect was given up, so the write may or may not have happened.
    MaybeDone { what: PrWriteKind, moment: Moment, at: Timestamp },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrWriteKind {
    Push,
    Open,
    Reopen,
    Update,
    Merge,
}

impl PrWrite {
    pub fn kind(&self) -> PrWriteKind {
        match self {
            Self::Sent { what } | Self::Answered { what, .. } | Self::MaybeDone { what, .. } => *what,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksSummary {
    /// The forge's list of checks could not be read to the last page.
    Unknown,
    NoneYet,
    Pending,
    Passed,
    Failed,
}

impl ChecksSummary {
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::NoneYet => "none yet",
            Self::Pending => "pending",
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }
}

impl Delivery {
    pub fn on(branch: BranchName) -> Self {
        Self {
            branch,
            head: None,
            remote_head: None,
            pushed_head: None,
            made_by: None,
            unpublished: Vec::new(),
            pr: None,
            update_attempts: 0,
            merge_attempts: 0,
            reruns: 0,
            rerun_at: None,
            reviews: Seldom::default(),
            announced: None,
            in_line_since: None,
            landing_since: None,
            prepared_head: None,
            in_forge_queue: false,
            rework_head: None,
        }
    }

    /// Returns the head that an approval is about: the pull request's, or the branch's if there is no pull request.
    pub fn current_head(&self) -> Option<&CommitId> {
        self.pr.as_ref().map(|pr| &pr.head).or(self.head.as_ref())
    }

    /// Gives the job another branch for work that begins anew. The pull request and the heads stay with the old branch.
    pub fn take_new_branch(&mut self, prefix: &str, key: &str, title: &str) {
        let generation = self.branch.generation + 1;
        self.branch = BranchName { name: branch_name(prefix, key, title, generation), generation };
        self.pr = None;
        self.head = None;
        self.remote_head = None;
        self.pushed_head = None;
        self.unpublished.clear();
    }

    /// Notes that a run has made commits which are not pushed yet.
    pub fn made_commits(&mut self, run: &RunId) {
        if !self.unpublished.contains(run) {
            self.unpublished.push(run.clone());
        }
    }
}
