//! What a pull request has besides its conversation.

use jiff::Timestamp;

use super::issue::Reaction;

#[derive(Clone, Debug)]
pub struct Pull {
    pub id: u64,
    pub number: u64,
    /// Owner of the repository that the head branch is in: another one for a pull request from a fork.
    pub head_owner: String,
    pub head_ref: String,
    pub head_sha: String,
    pub base_ref: String,
    pub base_sha: String,
    pub draft: bool,
    pub merged: Option<Merged>,
    pub mergeable: Mergeable,
    pub auto_merge: Option<AutoMerge>,
    pub reviewers: Vec<String>,
    pub teams: Vec<String>,
    pub reviews: Vec<Review>,
    pub threads: Vec<Thread>,
    pub queued: Option<Queued>,
}

#[derive(Clone, Debug)]
pub struct Merged {
    pub at: Timestamp,
    pub by: String,
    pub sha: String,
}

/// GitHub computes whether a pull request can be merged when somebody asks, and says null until it knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Mergeable {
    /// Nobody asked since the head or the base moved.
    Unasked,
    /// Asked; null for so many more times.
    Computing(u32),
    Known(bool),
}

#[derive(Clone, Debug)]
pub struct AutoMerge {
    pub by: String,
    pub method: String,
    pub at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Queued {
    pub id: u64,
    pub by: String,
    pub at: Timestamp,
    pub head: String,
    /// `QUEUED`, `AWAITING_CHECKS`, `MERGEABLE`, `UNMERGEABLE`, `LOCKED`
    pub state: String,
}

#[derive(Clone, Debug)]
pub struct Review {
    pub id: u64,
    pub author: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED`, `PENDING`
    pub state: String,
    pub body: String,
    pub commit: String,
    pub submitted_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub id: u64,
    pub path: String,
    pub line: u64,
    pub outdated: bool,
    pub resolved_by: Option<String>,
    pub comments: Vec<ReviewComment>,
}

#[derive(Clone, Debug)]
pub struct ReviewComment {
    pub id: u64,
    pub review: u64,
    pub author: Option<String>,
    pub body: String,
    pub commit: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub reactions: Vec<Reaction>,
}

pub fn local_branch(owner: &str, head_owner: &str, branch: &str) -> String {
    if head_owner == owner { branch.to_owned() } else { format!("forks/{head_owner}/{branch}") }
}

impl Pull {
    /// The branch in the bare repository: those of forks are kept under a name of their own.
    pub fn local_head(&self, owner: &str) -> String {
        local_branch(owner, &self.head_owner, &self.head_ref)
    }

    pub fn review(&self, id: u64) -> Option<&Review> {
        self.reviews.iter().find(|review| review.id == id)
    }

    /// A review comment with the thread that it is in.
    pub fn comment(&self, id: u64) -> Option<(&Thread, &ReviewComment)> {
        self.threads.iter().find_map(|thread| Some((thread, thread.comments.iter().find(|one| one.id == id)?)))
    }

    /// The last verdict of each reviewer: a comment does not replace one.
    pub fn verdicts(&self) -> Vec<&Review> {
        let mut last: Vec<&Review> = Vec::new();
        for review in &self.reviews {
            if matches!(review.state.as_str(), "APPROVED" | "CHANGES_REQUESTED" | "DISMISSED") {
                last.retain(|other| other.author != review.author);
                last.push(review);
            }
        }
        last
    }
}
