//! Check runs, commit statuses, and the Actions runs behind check runs.

use jiff::Timestamp;

#[derive(Clone, Debug)]
pub struct Check {
    pub id: u64,
    pub suite: u64,
    pub sha: String,
    pub name: String,
    /// `queued`, `in_progress`, `completed`, `waiting`, ...
    pub status: String,
    pub conclusion: Option<String>,
    pub app: String,
    pub title: Option<String>,
    pub summary: Option<String>,
    pub details_url: Option<String>,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct Status {
    pub id: u64,
    pub sha: String,
    pub context: String,
    pub state: String,
    pub description: Option<String>,
    pub target_url: Option<String>,
    pub creator: String,
    pub at: Timestamp,
}

/// A run of a workflow.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: u64,
    pub suite: u64,
    pub sha: String,
    pub branch: String,
    pub workflow: String,
    pub event: String,
    pub status: String,
    pub conclusion: Option<String>,
    pub attempt: u64,
    pub jobs: Vec<Job>,
    pub at: Timestamp,
}

/// A job of a workflow run; its check run has the same id.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: u64,
    pub name: String,
    pub status: String,
    pub conclusion: Option<String>,
    pub steps: Vec<(String, String)>,
    pub log: String,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}
