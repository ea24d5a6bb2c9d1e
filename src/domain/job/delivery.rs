//! The way of a job's work to the base branch: branch, head, pull request, and how often each step was tried.

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
    /// The branch's head as last seen.
    pub head: Option<CommitId>,
    /// The head that the forge's git remote is known to have: the last one that we pushed or adopted there.
    pub remote_head: Option<CommitId>,
    /// The last head that we pushed ourselves. What is beyond it at the remote is a person's.
    #[serde(default)]
    pub pushed_head: Option<CommitId>,
    /// The run that made the head.
    #[serde(default)]
    pub made_by: Option<RunId>,
    /// Runs whose commits have not been pushed: whoever looks at the forge has not seen them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpublished: Vec<RunId>,
    pub pr: Option<Box<PrFacts>>,
    /// Updates of the branch onto the base for the landing that is under way.
    pub update_attempts: u32,
    /// Merges in a row that failed for a passing reason.
    pub merge_attempts: u32,
    /// How often the failed checks of this head were run again.
    #[serde(default)]
    pub reruns: u32,
    /// When that was asked for last.
    #[serde(default)]
    pub rerun_at: Option<Timestamp>,
    #[serde(default)]
    pub reviews: Seldom<Reviews>,
    /// What people were last told of in a comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<Box<Announced>>,
    /// Since when it has been ready to land, which is its place in the line. Kept while our own update of it is checked.
    #[serde(default)]
    pub in_line_since: Option<Timestamp>,
    /// Since when the line waits for it: it was first, its branch had to be updated, and that is being checked.
    #[serde(default)]
    pub landing_since: Option<Timestamp>,
    /// The head that a run has prepared for its merge.
    #[serde(default)]
    pub prepared_head: Option<CommitId>,
    /// It is in the forge's own merge queue, as far as we know.
    #[serde(default)]
    pub in_forge_queue: bool,
    /// The head that the rework which is asked for is about: red, or in conflict. Nothing is to be mended on another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rework_head: Option<CommitId>,
}

/// A head that people have to decide on, with the last run that dealt with somebody's words about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    pub head: CommitId,
    pub run: Option<RunId>,
    /// Words stand against it that no run has dealt with, and what to do about them was told.
    #[serde(default)]
    pub held: bool,
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
    /// The branch that it would be merged into.
    pub base_branch: String,
    pub labels: Vec<String>,
    pub mergeability: Mergeability,
    pub checks: ChecksSummary,
    /// Names of checks that were seen on any of its heads: one that has not reported on this head is still to come.
    #[serde(default)]
    pub known_checks: Vec<String>,
    /// Since when this head has been visible.
    pub head_since: Timestamp,
    /// What the look rested on that showed this head first; `after` is the moment at which it was taken in.
    #[serde(default)]
    pub head_shown: Option<Basis>,
    /// The ticket was seen outside of every approval state by somebody who asked after this head was shown.
    #[serde(default)]
    pub seen_unapproved: bool,
    /// Our last write to it.
    pub write: Option<PrWrite>,
    /// What has to hold before it is merged, as the last settled look shows it.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Our last write to a pull request or its branch. Looks that were asked before its answer say nothing about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum PrWrite {
    /// On its way.
    Sent { what: PrWriteKind },
    /// Answered at this moment; not visible in a look yet.
    Answered { what: PrWriteKind, moment: Moment, at: Timestamp },
    /// The answer was lost, or the effect was given up: it may be done.
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
    /// The forge could not be asked to the last page.
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

    /// What an approval is about: the pull request's head, else the branch's.
    pub fn current_head(&self) -> Option<&CommitId> {
        self.pr.as_ref().map(|pr| &pr.head).or(self.head.as_ref())
    }

    /// Another branch for work that begins anew; what belongs to the old one is left with it.
    pub fn take_new_branch(&mut self, prefix: &str, key: &str, title: &str) {
        let generation = self.branch.generation + 1;
        self.branch = BranchName { name: branch_name(prefix, key, title, generation), generation };
        self.pr = None;
        self.head = None;
        self.remote_head = None;
        self.pushed_head = None;
        self.unpublished.clear();
    }

    /// A run has made commits.
    pub fn made_commits(&mut self, run: &RunId) {
        if !self.unpublished.contains(run) {
            self.unpublished.push(run.clone());
        }
    }
}
