//! Remarks: what a trusted person asked for, open until it is answered.
//!
//! Remarks belong to a job, not to a head: a verdict on an old head still stands after a push.

use serde::{Deserialize, Serialize};

use super::ids::{CommentId, CommitId, RunId};
use super::time::Timestamp;

/// Where a remark was made. Reviews, threads and comments each have their own id space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    /// A review that requests changes.
    Verdict,
    /// A conversation on a line of the pull request.
    Thread,
    PrComment,
    TicketComment,
    /// A message by a command at the terminal or through the API.
    Message,
    /// A finding of the runner's own review of a head.
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

/// Identifies a remark in one version of its text. An edit makes another version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RemarkKey {
    pub kind: RemarkKind,
    pub id: CommentId,
    pub version: String,
}

impl RemarkKey {
    /// Returns the name by which workers refer to the remark: short enough to type, and the same in every prompt and every run.
    pub fn handle(&self) -> String {
        if self.kind == RemarkKind::Finding {
            return self.id.to_string();
        }
        let hash = super::hash::stable_hash(&[self.kind.name(), self.id.as_str()]);
        format!("r{:06x}", hash & 0xff_ffff)
    }

    /// Returns the name by which an approval overrules exactly this version of the remark, and no later one.
    pub fn versioned(&self) -> String {
        format!("{}@{:06x}", self.handle(), super::hash::stable_hash(&[&self.version]) & 0xff_ffff)
    }

    /// Whether both keys are of the same remark, perhaps in different versions.
    pub fn is_same_remark(&self, other: &Self) -> bool {
        self.kind == other.kind && self.id == other.id
    }
}

/// What a remark does to a job that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkEffect {
    /// Included when there is a rework anyway.
    None,
    /// Nothing is merged until a person says how to go on.
    Hold,
    /// Starts a rework.
    Rework,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    pub key: RemarkKey,
    pub author: String,
    pub text: String,
    /// `path` or `path:line`, if the remark is about one file.
    pub place: Option<String>,
    /// The head that the reviewer read.
    pub head: Option<CommitId>,
    pub at: Timestamp,
    pub effect: RemarkEffect,
    pub urgent: bool,
    pub status: RemarkStatus,
    /// Whether the run's answer was posted where the remark was made.
    #[serde(default)]
    pub told: bool,
    /// Written by a bot of `review.bots`, which gets one round of rework and never stands against what people say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_bot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum RemarkStatus {
    Open,
    /// A run reported that its prompt or a message carried the remark.
    Delivered {
        run: RunId,
    },
    /// The run that received the remark made a commit and did not answer it.
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
    /// Resolved, dismissed or hidden, or found to be deleted when it was read by its id.
    Withdrawn {
        how: String,
        at: Timestamp,
    },
    /// A person accepted the remark as it is, or overruled it, for the head that they named.
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
    /// Makes a remark for a comment that a run was given before any reading brought it. It holds a merge until its text is known.
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

    /// Whether the remark still waits for a run to take it up.
    pub fn is_open(&self) -> bool {
        matches!(self.status, RemarkStatus::Open)
    }

    /// Whether the remark is settled for good: withdrawn or overruled.
    pub fn is_over(&self) -> bool {
        matches!(self.status, RemarkStatus::Withdrawn { .. } | RemarkStatus::Overruled { .. })
    }

    /// Whether this is a verdict that stands. Answered or not, it stands until its author withdraws it or a person overrules it.
    pub fn is_standing_verdict(&self) -> bool {
        self.key.kind == RemarkKind::Verdict && !self.is_over()
    }

    /// Whether the remark in its present status forbids a merge.
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

    /// Whether an approval of a head accepts the remark: a run has dealt with it, and the approving person has seen the result. Verdicts
    /// are never accepted this way.
    pub fn is_accepted_by_approval(&self) -> bool {
        self.key.kind != RemarkKind::Verdict
            && matches!(
                self.status,
                RemarkStatus::Addressed { .. } | RemarkStatus::Explained { .. } | RemarkStatus::Declined { .. }
            )
    }

    /// Returns the run that took up the remark.
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

    /// Returns author and text in one line, for a prompt or a comment.
    pub fn sentence(&self) -> String {
        let place = self.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        match self.key.kind {
            RemarkKind::Verdict => format!("{} requests changes: {}", self.author, self.text),
            RemarkKind::Finding => format!("{} {place}{}", self.key.id, self.text),
            _ => format!("{place}{}: {}", self.author, self.text),
        }
    }
}
