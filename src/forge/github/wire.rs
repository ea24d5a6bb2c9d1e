//! The parts of GitHub's responses that are read. Fields that may be missing are optional, and unknown words stay strings.

use serde::Deserialize;
use serde_json::Value;

use crate::domain::time::Timestamp;

pub fn time(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}

/// A pull request of the REST API.
#[derive(Debug, Clone, Deserialize)]
pub struct RestPull {
    pub number: u64,
    pub node_id: String,
    pub html_url: Option<String>,
    pub title: String,
    pub body: Option<String>,
    pub state: String,
    #[serde(default)]
    pub draft: bool,
    pub user: Option<PullUser>,
    pub head: RestSide,
    pub base: RestSide,
    pub merged_at: Option<String>,
    #[serde(default)]
    pub labels: Vec<PullLabel>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RestSide {
    #[serde(rename = "ref")]
    pub branch: String,
    pub sha: String,
    pub repo: Option<RestRepo>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RestRepo {
    pub full_name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PullUser {
    pub login: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PullLabel {
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PullComment {
    pub id: u64,
    pub node_id: String,
    pub body: Option<String>,
    pub user: Option<PullUser>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct NodeId {
    pub node_id: String,
}

/// One page of a list of the GraphQL API.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: serde::de::DeserializeOwned")]
pub struct Page<T> {
    /// The items; one that is null could not be read.
    pub nodes: Option<Vec<Option<T>>>,
    pub page_info: GraphPageInfo,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphPageInfo {
    pub has_next_page: bool,
    pub end_cursor: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct GraphActor {
    #[serde(rename = "__typename")]
    pub kind: String,
    pub login: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct GraphLabel {
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Oid {
    pub oid: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryName {
    pub name_with_owner: String,
}

/// A pull request of the GraphQL API.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphPull {
    pub id: String,
    pub number: u64,
    pub url: Option<String>,
    pub title: String,
    pub state: String,
    pub is_draft: bool,
    pub author: Option<GraphActor>,
    pub head_ref_name: String,
    pub head_ref_oid: String,
    pub head_repository: Option<RepositoryName>,
    pub base_ref_name: String,
    pub base_ref_oid: String,
    pub mergeable: String,
    pub merge_state_status: Option<String>,
    #[serde(default)]
    pub is_in_merge_queue: bool,
    pub review_decision: Option<String>,
    pub merge_commit: Option<Oid>,
    pub labels: Option<Page<GraphLabel>>,
    pub reviews: Option<Page<GraphReview>>,
    pub review_threads: Option<Page<GraphThread>>,
    pub comments: Option<Page<GraphComment>>,
    pub status_check_rollup: Option<GraphRollup>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphReview {
    pub id: String,
    pub author: Option<GraphActor>,
    pub state: String,
    pub commit: Option<Oid>,
    pub body: String,
    pub submitted_at: Option<String>,
    #[serde(default)]
    pub is_minimized: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphThread {
    pub id: String,
    pub is_resolved: bool,
    pub path: Option<String>,
    pub line: Option<u32>,
    pub original_line: Option<u32>,
    pub comments: Option<Page<GraphComment>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphComment {
    pub id: String,
    pub author: Option<GraphActor>,
    pub body: String,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    #[serde(default)]
    pub is_minimized: bool,
    /// The review that a comment belongs to; only comments in conversations on lines have one.
    pub pull_request_review: Option<Id>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Id {
    pub id: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct GraphRollup {
    pub contexts: Option<Page<GraphCheck>>,
}

/// A check run of an App, or a commit status.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "__typename")]
pub enum GraphCheck {
    #[serde(rename_all = "camelCase")]
    CheckRun {
        database_id: Option<u64>,
        name: String,
        status: String,
        conclusion: Option<String>,
        details_url: Option<String>,
        permalink: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    StatusContext { context: String, state: String, description: Option<String>, target_url: Option<String> },
    #[serde(other)]
    Unknown,
}

/// The response to a query about one repository. The keys of `repository` are aliases that the query chose.
#[derive(Debug, Deserialize)]
pub struct InRepository {
    pub viewer: Option<PullUser>,
    pub repository: Option<serde_json::Map<String, Value>>,
}

/// The response to a query about one object by its id.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: serde::de::DeserializeOwned")]
pub struct ByNode<T> {
    pub node: Option<T>,
}
