//! Imports issues of Beads: one JSON object per line.

use serde::Deserialize;

use super::{Foreign, one_line, references, tags, time};
use crate::cli::tk::failure::Failure;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Statuses {
    /// Statuses are kept as they are, even unknown ones.
    Verbatim,
    /// Unknown statuses become `open`. This loses nothing: what holds a ticket back is in its dependencies.
    Mapped,
}

#[derive(Debug, Deserialize)]
struct Issue {
    id: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    issue_type: Option<String>,
    #[serde(default)]
    priority: Option<i64>,
    #[serde(default)]
    assignee: Option<String>,
    #[serde(default)]
    external_ref: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    design: Option<String>,
    #[serde(default)]
    acceptance_criteria: Option<String>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default)]
    labels: Option<Vec<String>>,
    #[serde(default)]
    comments: Option<Vec<Comment>>,
    #[serde(default)]
    dependencies: Option<Vec<Dependency>>,
}

#[derive(Debug, Deserialize)]
struct Comment {
    #[serde(default)]
    author: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    depends_on_id: String,
    #[serde(rename = "type", default)]
    kind: String,
}

pub fn parse(text: &str, statuses: Statuses) -> Result<Vec<Foreign>, Failure> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let issue: Issue = serde_json::from_str(line)
                .map_err(|error| Failure::said(format!("line {} is not a beads issue: {error}", number + 1)))?;
            Ok(ticket(issue, statuses))
        })
        .collect()
}

fn ticket(issue: Issue, statuses: Statuses) -> Foreign {
    let dependencies = issue.dependencies.unwrap_or_default();
    let of_kind = |kind: &str| -> Vec<String> {
        references(dependencies.iter().filter(|dep| dep.kind == kind).map(|dep| dep.depends_on_id.clone()).collect())
    };
    let mut ticket = Foreign::new(issue.id, &issue.title.unwrap_or_default());
    let draft = &mut ticket.draft;
    let status = one_line(&issue.status.unwrap_or_else(|| "open".into()));
    draft.status = match status.as_str() {
        "open" | "in_progress" | "closed" => status,
        _ if statuses == Statuses::Mapped => "open".into(),
        _ => status,
    };
    draft.deps = of_kind("blocks");
    draft.parent = of_kind("parent-child").into_iter().next().unwrap_or_default();
    draft.created = issue.created_at.map(|created| one_line(&created)).unwrap_or_default();
    draft.kind = issue.issue_type.map(|kind| one_line(&kind)).unwrap_or_else(|| "task".into());
    draft.priority = issue.priority.unwrap_or(2).to_string();
    draft.assignee = one_line(&issue.assignee.unwrap_or_default());
    draft.external_ref = one_line(&issue.external_ref.unwrap_or_default());
    draft.tags = tags(issue.labels.iter().flatten().map(String::as_str));
    draft.description = issue.description.unwrap_or_default();
    draft.design = issue.design.unwrap_or_default();
    draft.acceptance = issue.acceptance_criteria.unwrap_or_default();
    let created = time(&draft.created).unwrap_or_else(crate::tracker::tk::timestamp_now);
    ticket.links = of_kind("related");
    ticket.notes.extend(issue.notes.filter(|notes| !notes.is_empty()).map(|notes| (created.clone(), notes)));
    for comment in issue.comments.into_iter().flatten() {
        let when = comment.created_at.as_deref().and_then(time).unwrap_or_else(|| created.clone());
        let text = comment.text.unwrap_or_default();
        let text = comment.author.map(|author| format!("{author}: {text}")).unwrap_or(text);
        ticket.notes.push((when, text));
    }
    ticket
}
