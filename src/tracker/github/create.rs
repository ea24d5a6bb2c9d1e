//! Creates tickets. A repeated call with the same key does not create a second one.

use http::Method;
use serde::de::IgnoredAny;
use serde_json::json;

use super::GithubTracker;
use super::columns::Columns;
use super::error::about;
use super::ids::{IssueRef, shown};
use super::marks::{carries, ticket_body};
use super::wire::RestIssue;
use crate::domain::ids::TicketId;
use crate::domain::ticket::{NewTicket, normalise_labels};
use crate::domain::time::Timestamp;
use crate::github::{GithubError, Purpose, with_query};
use crate::tracker::TrackerError;

/// How far back a ticket with the same key is searched.
const LOOKED_BACK_MS: i64 = 30 * 24 * 3_600_000;

/// The issues to which a new ticket is related.
struct Relations {
    /// The parent, with its path.
    parent: Option<(TicketId, String)>,
    /// The blockers, with GitHub's own ids for them.
    blockers: Vec<(TicketId, u64)>,
}

impl GithubTracker {
    pub(super) async fn create(&self, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        let _writing = self.writing.lock().await;
        // Looked up before the ticket is created, so that a ticket with an impossible relation is not created at all.
        let relations = self.relations_of(new).await?;
        let made = match self.made_before(key).await? {
            Some(made) => made,
            None => {
                let body = json!({
                    "title": new.title,
                    "body": ticket_body(&new.description, new.priority, key),
                    "labels": spelt_once(&new.labels, self.board.columns.first_label()),
                });
                self.github.write(Purpose::Write, Method::POST, &self.path("/issues"), Some(&body)).await?
            }
        };
        if let Columns::Project(project) = &self.board.columns
            && let Some(first) = &project.first
        {
            let place = self.place(project, made.number).await?;
            if place.column.is_none() && place.has_column(first) {
                self.move_in_project(&place, first).await?;
            }
        }
        self.relate(&made, &relations).await?;
        Ok(IssueRef::here(made.number).id())
    }

    /// Returns the issue with this key among those that the runner's account created recently.
    async fn made_before(&self, key: &str) -> Result<Option<RestIssue>, TrackerError> {
        let creator = self.our_login().await?;
        let now = jiff::Timestamp::now().as_millisecond();
        let since = shown(Timestamp(now - LOOKED_BACK_MS));
        let query = [
            ("state", "all"),
            ("creator", creator.as_str()),
            ("since", since.as_str()),
            ("sort", "created"),
            ("direction", "desc"),
            ("per_page", "100"),
        ];
        let mut pages = self.github.pages(Purpose::Write, &with_query(&self.path("/issues"), &query));
        while let Some(page) = pages.next().await? {
            let mut rows = Vec::new();
            self.read_page(&page.body, &mut rows)?;
            let is_it = |issue: &RestIssue| issue.body.as_deref().is_some_and(|body| carries(body, key));
            if let Some(row) = rows.into_iter().find(|row| is_it(&row.issue)) {
                return Ok(Some(row.issue));
            }
        }
        Ok(None)
    }

    /// Looks up the parent and the blockers of a new ticket. They may be in other repositories.
    async fn relations_of(&self, new: &NewTicket) -> Result<Relations, TrackerError> {
        let path = |id: &TicketId| {
            let which = IssueRef::read(id).ok_or_else(|| TrackerError::NotFound(id.clone()))?;
            Ok::<_, TrackerError>(match &which.elsewhere {
                None => self.issue_path(which.number, ""),
                Some((owner, name)) => format!("/repos/{owner}/{name}/issues/{}", which.number),
            })
        };
        let parent = match &new.parent {
            Some(parent) => Some((parent.clone(), path(parent)?)),
            None => None,
        };
        let mut blockers = Vec::with_capacity(new.blocked_by.len());
        for blocker in &new.blocked_by {
            let issue = self.github.get::<RestIssue>(Purpose::Write, &path(blocker)?).await.map_err(about(blocker))?;
            blockers.push((blocker.clone(), issue.id));
        }
        Ok(Relations { parent, blockers })
    }

    /// Adds the parent and the blockers that the issue does not have yet.
    async fn relate(&self, made: &RestIssue, relations: &Relations) -> Result<(), TrackerError> {
        if let Some((parent, path)) = relations.parent.as_ref().filter(|_| made.parent_issue_url.is_none()) {
            let body = json!({"sub_issue_id": made.id});
            self.write_relation(&format!("{path}/sub_issues"), &body, parent).await?;
        }
        let known = match (&relations.blockers[..], &made.issue_dependencies_summary) {
            ([], _) => return Ok(()),
            (_, Some(summary)) if summary.total_blocked_by == 0 => Vec::new(),
            _ => self.blocking_ids(made.number).await?,
        };
        for (blocker, id) in &relations.blockers {
            if !known.contains(id) {
                let path = self.issue_path(made.number, "/dependencies/blocked_by");
                self.write_relation(&path, &json!({"issue_id": id}), blocker).await?;
            }
        }
        Ok(())
    }

    async fn blocking_ids(&self, number: u64) -> Result<Vec<u64>, TrackerError> {
        let path = with_query(&self.issue_path(number, "/dependencies/blocked_by"), &[("per_page", "100")]);
        match self.github.list::<RestIssue>(Purpose::Write, &path).await {
            Ok(all) => Ok(all.into_iter().map(|issue| issue.id).collect()),
            Err(GithubError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    async fn write_relation(&self, path: &str, body: &serde_json::Value, to: &TicketId) -> Result<(), TrackerError> {
        match self.github.write::<IgnoredAny>(Purpose::Write, Method::POST, path, Some(body)).await {
            Ok(_) => Ok(()),
            // The relation exists already or is not allowed. The ticket itself exists, and its text says where it comes from.
            Err(GithubError::Refused(refusal)) if refusal.status == 422 => {
                tracing::warn!(%to, %refusal, "a new ticket could not be related");
                Ok(())
            }
            // An older Enterprise Server has neither sub-issues nor dependencies.
            Err(GithubError::NotFound(words)) => {
                tracing::warn!(%to, words, "a new ticket could not be related: GitHub has no such relation here");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the labels, each once in its first spelling, and the label of the first state.
fn spelt_once<'a>(labels: &'a [String], first: Option<&'a str>) -> Vec<&'a str> {
    let given = |wanted: &String| labels.iter().map(|label| label.trim()).find(|label| label.to_lowercase() == *wanted);
    let known = normalise_labels(labels);
    known.iter().filter_map(given).chain(first).collect()
}
