//! Something that a trusted person wants and that is open until it is answered.
//!
//! Remarks belong to a job, not to a head: a verdict on an old head still stands after a push.

use serde::{Deserialize, Serialize};

use super::ids::{CommentId, CommitId, RunId};
use super::time::Timestamp;

/// Where a remark was made. Reviews, threads and comments have id spaces of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    /// A review that requests changes.
    Verdict,
    /// A conversation on a line of the pull request.
    Thread,
    PrComment,
    TicketComment,
    /// By a command at the terminal or through the API.
    Message,
    /// What our own review of a head found.
    Finding,
}

impl RemarkKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Verdict => "review",
            Self::Thread => "thread",
            Self::PrComment => "pull request comment",
            Self::TicketComment => "comment",
            Self::Message => "message",
            Self::Finding => "finding",
        }
    }
}

/// Which remark, in which version of its text. An edit is another version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RemarkKey {
    pub kind: RemarkKind,
    pub id: CommentId,
    pub version: String,
}

impl RemarkKey {
    /// What a worker calls it: short enough to be typed, the same in every prompt and every run.
    pub fn handle(&self) -> String {
        if self.kind == RemarkKind::Finding {
            return self.id.to_string();
        }
        let hash = super::hash::stable_hash(&[self.kind.name(), self.id.as_str()]);
        format!("r{:06x}", hash & 0xff_ffff)
    }

    /// The same remark, perhaps in another version.
    pub fn is_same_remark(&self, other: &Self) -> bool {
        self.kind == other.kind && self.id == other.id
    }
}

/// What a remark does to a job that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkEffect {
    /// Goes along when there is a rework anyway.
    None,
    /// Nothing is merged until somebody says how to go on.
    Hold,
    /// Starts a rework.
    Rework,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    pub key: RemarkKey,
    pub author: String,
    pub text: String,
    /// `path` or `path:line`, where it is about one.
    pub place: Option<String>,
    /// The head that a review read.
    pub head: Option<CommitId>,
    pub at: Timestamp,
    pub effect: RemarkEffect,
    pub urgent: bool,
    pub status: RemarkStatus,
    /// What a run made of it was told where it was said.
    #[serde(default)]
    pub told: bool,
    /// By a bot of `review.bots`: it gets one round, and never stands against what people say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_bot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum RemarkStatus {
    Open,
    /// A run reported that its prompt or a message carried it.
    Delivered {
        run: RunId,
    },
    /// The run that got it made a commit and said nothing about it.
    Addressed {
        run: RunId,
    },
    Answered {
        run: RunId,
        commit: CommitId,
    },
    Explained {
        run: RunId,
        words: String,
    },
    Declined {
        run: RunId,
        why: String,
    },
    /// Resolved, dismissed, hidden, or gone when it was asked for.
    Withdrawn {
        how: String,
        at: Timestamp,
    },
    /// A person accepted it as it is, or overruled it, for the head that they named.
    Overruled {
        by: String,
        head: CommitId,
    },
}

/// A worker's answer to a remark that was delivered to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum RemarkAnswer {
    Fixed { text: String },
    Explained { text: String },
    Declined { text: String },
}

impl Remark {
    /// A comment that a run was given before any reading brought it. It holds until it is known what it says.
    pub fn unread(key: RemarkKey, at: Timestamp) -> Self {
        Self {
            key,
            author: "somebody".to_owned(),
            text: String::new(),
            place: None,
            head: None,
            at,
            effect: RemarkEffect::Hold,
            urgent: false,
            status: RemarkStatus::Open,
            told: false,
            by_bot: false,
        }
    }

    pub fn is_unread(&self) -> bool {
        self.text.is_empty() && self.key.kind == RemarkKind::TicketComment
    }

    /// Waits for a run to take it up.
    pub fn is_open(&self) -> bool {
        matches!(self.status, RemarkStatus::Open)
    }

    /// Nothing more comes of it.
    pub fn is_over(&self) -> bool {
        matches!(self.status, RemarkStatus::Withdrawn { .. } | RemarkStatus::Overruled { .. })
    }

    /// A verdict stands until its author takes it back or somebody overrules it, answered or not.
    pub fn is_standing_verdict(&self) -> bool {
        self.key.kind == RemarkKind::Verdict && !self.is_over()
    }

    /// Whether nothing may be merged while it is as it is.
    pub fn holds_merge(&self) -> bool {
        if self.effect == RemarkEffect::None {
            return false;
        }
        match self.status {
            RemarkStatus::Open
            | RemarkStatus::Delivered { .. }
            | RemarkStatus::Addressed { .. }
            | RemarkStatus::Explained { .. }
            | RemarkStatus::Declined { .. } => true,
            RemarkStatus::Answered { .. } => self.is_standing_verdict(),
            RemarkStatus::Withdrawn { .. } | RemarkStatus::Overruled { .. } => false,
        }
    }

    /// Whether an approval of a head accepts it: a run has dealt with it, and the person has seen what came of that.
    pub fn is_accepted_by_approval(&self) -> bool {
        self.key.kind != RemarkKind::Verdict
            && matches!(
                self.status,
                RemarkStatus::Addressed { .. } | RemarkStatus::Explained { .. } | RemarkStatus::Declined { .. }
            )
    }

    /// The run that took it up.
    pub fn dealt_with_by(&self) -> Option<&RunId> {
        match &self.status {
            RemarkStatus::Delivered { run }
            | RemarkStatus::Addressed { run }
            | RemarkStatus::Answered { run, .. }
            | RemarkStatus::Explained { run, .. }
            | RemarkStatus::Declined { run, .. } => Some(run),
            RemarkStatus::Open | RemarkStatus::Withdrawn { .. } | RemarkStatus::Overruled { .. } => None,
        }
    }

    /// Who said what, in one line for a prompt or a comment.
    pub fn sentence(&self) -> String {
        let place = self.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        match self.key.kind {
            RemarkKind::Verdict => format!("{} requests changes: {}", self.author, self.text),
            RemarkKind::Finding => format!("{} {place}{}", self.key.id, self.text),
            _ => format!("{place}{}: {}", self.author, self.text),
        }
    }
}
