//! An issue, or the conversation of a pull request.

use jiff::Timestamp;

#[derive(Clone, Debug)]
pub struct Issue {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub body: Option<String>,
    /// `None`: the account is gone.
    pub author: Option<String>,
    pub open: bool,
    pub state_reason: Option<String>,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub milestone: Option<u64>,
    /// The reason of the lock; an empty one if none was given.
    pub locked: Option<String>,
    pub comments: Vec<Comment>,
    pub events: Vec<Event>,
    pub reactions: Vec<Reaction>,
    pub blocked_by: Vec<u64>,
    pub sub_issues: Vec<u64>,
    pub is_pull: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub closed_by: Option<String>,
    /// Who changed its text last, and when.
    pub reworded: Option<(String, Timestamp)>,
}

#[derive(Clone, Debug)]
pub struct Comment {
    pub id: u64,
    pub author: Option<String>,
    pub body: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub reactions: Vec<Reaction>,
    /// Why it was hidden, if it was.
    pub minimized: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Reaction {
    pub id: u64,
    pub user: String,
    pub content: String,
    pub created_at: Timestamp,
}

/// An entry of the timeline.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: u64,
    pub actor: Option<String>,
    pub at: Timestamp,
    pub what: Happened,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    Labeled(String),
    Unlabeled(String),
    Assigned(String),
    Unassigned(String),
    Milestoned(String),
    Demilestoned(String),
    Renamed {
        from: String,
        to: String,
    },
    Closed {
        reason: Option<String>,
    },
    Reopened,
    Locked,
    Unlocked,
    Commented(u64),
    BlockedByAdded(u64),
    BlockedByRemoved(u64),
    SubIssueAdded(u64),
    SubIssueRemoved(u64),
    ReviewRequested(String),
    ReviewRequestRemoved(String),
    Reviewed(u64),
    ReviewDismissed {
        review: u64,
        message: String,
    },
    Committed(String),
    /// Everything that GitHub shows with an actor and a time and nothing else: `head_ref_force_pushed`, `merged`, `ready_for_review`, ...
    Plain {
        name: String,
        commit: Option<String>,
    },
}

impl Issue {
    pub fn comment(&self, id: u64) -> Option<&Comment> {
        self.comments.iter().find(|comment| comment.id == id)
    }

    pub fn comment_mut(&mut self, id: u64) -> Option<&mut Comment> {
        self.comments.iter_mut().find(|comment| comment.id == id)
    }

    pub fn has_label(&self, name: &str) -> bool {
        self.labels.iter().any(|label| label.eq_ignore_ascii_case(name))
    }
}
