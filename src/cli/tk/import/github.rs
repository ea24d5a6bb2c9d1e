//! Imports GitHub issues: a JSON array from `gh issue list --json ...` or from the REST API.

use serde::Deserialize;
use serde_json::Value;

use super::{Foreign, one_line, tags, time};
use crate::cli::tk::failure::Failure;

#[derive(Debug, Deserialize)]
struct Issue {
    number: u64,
    title: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default, alias = "stateReason")]
    state_reason: Option<String>,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    assignees: Vec<Account>,
    #[serde(default, alias = "createdAt")]
    created_at: Option<String>,
    /// The comments themselves from `gh`, only their number from the API.
    #[serde(default)]
    comments: Value,
    /// Set only for pull requests, which are not imported.
    #[serde(default)]
    pull_request: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Label {
    Named { name: String },
    Plain(String),
}

#[derive(Debug, Deserialize)]
struct Account {
    login: String,
}

#[derive(Debug, Deserialize)]
struct Comment {
    #[serde(default, alias = "user")]
    author: Option<Account>,
    body: String,
    #[serde(default, alias = "createdAt")]
    created_at: Option<String>,
}

pub fn parse(text: &str) -> Result<Vec<Foreign>, Failure> {
    let issues: Vec<Issue> = serde_json::from_str(text)
        .map_err(|error| Failure::said(format!("this is not a JSON array of GitHub issues: {error}")))?;
    issues.into_iter().filter(|issue| issue.pull_request.is_none()).map(ticket).collect()
}

fn ticket(issue: Issue) -> Result<Foreign, Failure> {
    let mut ticket = Foreign::new(format!("gh-{}", issue.number), &issue.title);
    let closed = issue.state.as_deref().is_some_and(|state| state.eq_ignore_ascii_case("closed"));
    let reason = issue.state_reason.unwrap_or_default().to_lowercase();
    ticket.cancelled = closed && (reason == "not_planned" || reason == "duplicate");
    let draft = &mut ticket.draft;
    draft.status = if closed { "closed" } else { "open" }.into();
    draft.external_ref = format!("gh-{}", issue.number);
    draft.assignee = issue.assignees.first().map(|account| one_line(&account.login)).unwrap_or_default();
    let names = issue.labels.iter().map(|label| match label {
        Label::Named { name } | Label::Plain(name) => name.as_str(),
    });
    draft.tags = tags(names.clone());
    if names.clone().any(|name| name.eq_ignore_ascii_case("bug")) {
        draft.kind = "bug".into();
    }
    draft.description = issue.body.unwrap_or_default().replace("\r\n", "\n").trim_end().to_owned();
    if let Some(created) = issue.created_at.as_deref().and_then(time) {
        draft.created = created;
    }
    let created = draft.created.clone();
    if issue.comments.is_array() {
        let comments: Vec<Comment> = serde_json::from_value(issue.comments)
            .map_err(|error| Failure::said(format!("the comments of issue {} are malformed: {error}", issue.number)))?;
        for comment in comments {
            let when = comment.created_at.as_deref().and_then(time).unwrap_or_else(|| created.clone());
            let body = comment.body.replace("\r\n", "\n");
            let text = comment.author.map(|author| format!("{}: {body}", author.login)).unwrap_or(body);
            ticket.notes.push((when, text));
        }
    }
    Ok(ticket)
}
