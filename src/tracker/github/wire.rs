//! GitHub's JSON, as far as it is read. Fields that GitHub may omit or set to null are optional here.

use serde::Deserialize;

use crate::github::GithubError;

#[derive(Debug, Clone, Deserialize)]
pub struct RestIssue {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub body: Option<String>,
    pub state: String,
    pub state_reason: Option<String>,
    pub user: Option<RestUser>,
    #[serde(default)]
    pub labels: Vec<RestLabel>,
    pub assignees: Option<Vec<RestUser>>,
    pub milestone: Option<Named>,
    pub html_url: Option<String>,
    pub repository_url: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: String,
    pub pull_request: Option<serde::de::IgnoredAny>,
    pub parent_issue_url: Option<String>,
    pub issue_dependencies_summary: Option<DependencySummary>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct DependencySummary {
    pub total_blocked_by: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Named {
    #[serde(alias = "name")]
    pub title: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum RestLabel {
    Plain(String),
    Whole { name: Option<String> },
}

impl RestLabel {
    pub fn name(&self) -> &str {
        match self {
            Self::Plain(name) => name,
            Self::Whole { name } => name.as_deref().unwrap_or_default(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct RestUser {
    pub login: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub role_name: Option<String>,
    pub permissions: Option<Permissions>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Permissions {
    pub admin: bool,
    pub maintain: bool,
    pub push: bool,
    pub triage: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RestComment {
    pub id: u64,
    pub body: Option<String>,
    pub user: Option<RestUser>,
    pub issue_url: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
}

/// The permission of an account, as the repository reports it.
#[derive(Debug, Deserialize)]
pub struct CollaboratorPermission {
    pub permission: Option<String>,
    pub role_name: Option<String>,
    pub user: Option<RestUser>,
}

/// An account as GraphQL describes it.
#[derive(Debug, Clone, Deserialize)]
pub struct Actor {
    #[serde(rename = "__typename", default)]
    pub kind: String,
    pub login: String,
}

impl Actor {
    /// Converts to the form of REST, which appends `[bot]` to the login of a bot.
    pub fn as_user(&self) -> RestUser {
        let is_bot = self.kind == "Bot";
        let login = match is_bot && !self.login.ends_with("[bot]") {
            true => format!("{}[bot]", self.login),
            false => self.login.clone(),
        };
        RestUser { login, kind: is_bot.then(|| "Bot".to_owned()), role_name: None, permissions: None }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct Nodes<T> {
    pub nodes: Option<Vec<Option<T>>>,
    #[serde(rename = "pageInfo")]
    pub page_info: Option<PageInfo>,
}

impl<T> Nodes<T> {
    pub fn each(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.nodes.iter().flatten().flatten()
    }

    /// Returns the elements of a list that must be complete. GitHub sends null for what it could not read.
    pub fn whole(&self, what: &str) -> Result<Vec<&T>, GithubError> {
        let all = self.nodes.iter().flatten().map(Option::as_ref).collect::<Option<Vec<&T>>>();
        all.filter(|_| self.nodes.is_some())
            .ok_or_else(|| GithubError::Unreadable(format!("GitHub's answer does not have all {what}")))
    }

    /// Returns the elements of a list that is complete except for elements which GitHub does not show to this credential.
    pub fn shown(&self, what: &str, some_are_hidden: bool) -> Result<Vec<&T>, GithubError> {
        if some_are_hidden { Ok(self.each().collect()) } else { self.whole(what) }
    }

    /// Returns the cursor of the next page. `None` after the last one.
    pub fn next(&self, what: &str) -> Result<Option<&str>, GithubError> {
        let missing = |of: &str| GithubError::Pages(format!("a page of {what} does not say {of}"));
        match self.page_info.as_ref().ok_or_else(|| missing("whether it is the last one"))? {
            PageInfo { has_next_page: false, .. } => Ok(None),
            PageInfo { end_cursor, .. } => {
                end_cursor.as_deref().map(Some).ok_or_else(|| missing("where the next one is"))
            }
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    pub has_next_page: bool,
    pub end_cursor: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphqlIssue {
    #[serde(rename = "__typename")]
    pub kind: String,
    pub number: Option<u64>,
    pub title: Option<String>,
    pub body: Option<String>,
    pub state: Option<String>,
    pub state_reason: Option<String>,
    pub author: Option<Actor>,
    /// The account that changed the text last.
    pub editor: Option<Actor>,
    pub last_edited_at: Option<String>,
    pub labels: Option<Nodes<NamedLabel>>,
    pub assignees: Option<Nodes<Actor>>,
    pub milestone: Option<Named>,
    pub url: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    pub parent: Option<GraphqlParent>,
    pub comments: Option<Nodes<GraphqlComment>>,
    pub timeline_items: Option<Nodes<TimelineItem>>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct NamedLabel {
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct GraphqlParent {
    pub number: u64,
    pub repository: NameWithOwner,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameWithOwner {
    pub name_with_owner: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphqlComment {
    pub full_database_id: Option<String>,
    pub body: String,
    pub author: Option<Actor>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
}

/// An event of an issue. For kinds of events that are not requested, only the kind is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineItem {
    #[serde(rename = "__typename")]
    pub kind: String,
    pub actor: Option<Actor>,
    pub created_at: Option<String>,
    pub label: Option<NamedLabel>,
    pub assignee: Option<AssignedTo>,
}

/// The assignee of an event. Assignees that are not accounts have no login.
#[derive(Debug, Clone, Deserialize)]
pub struct AssignedTo {
    #[serde(rename = "__typename", default)]
    kind: String,
    login: Option<String>,
}

impl AssignedTo {
    pub fn login(&self) -> Option<String> {
        let login = self.login.clone()?;
        Some(Actor { kind: self.kind.clone(), login }.as_user().login)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectItem {
    pub id: String,
    #[serde(default)]
    pub is_archived: bool,
    pub project: Option<ProjectRef>,
    pub content: Option<ProjectContent>,
    pub field_value_by_name: Option<ColumnValue>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ProjectRef {
    pub id: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ProjectContent {
    pub number: Option<u64>,
    pub repository: Option<NameWithOwner>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ColumnValue {
    pub name: Option<String>,
    pub updated_at: Option<String>,
}
