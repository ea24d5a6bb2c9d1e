//! Labels: each is added or removed by itself, so that simultaneous changes by others to the rest are kept.

use http::Method;
use serde::de::IgnoredAny;
use serde_json::json;

use super::GithubTracker;
use super::error::about;
use super::ticket::Issue;
use super::wire::RestIssue;
use crate::domain::ids::TicketId;
use crate::domain::ticket::{normalise_labels, same_state, state_in};
use crate::github::{GithubError, Purpose, Unless, segment};
use crate::tracker::TrackerError;

impl GithubTracker {
    /// Reads the issue without the cache, because the next write depends on its current state.
    pub(super) async fn issue_now(&self, id: &TicketId, number: u64) -> Result<Issue, TrackerError> {
        let path = self.issue_path(number, "");
        let fetched = self.github.get_unless(Purpose::Write, &path, None).await.map_err(about(id))?;
        let Unless::Fetched(fetched) = fetched else {
            return Err(TrackerError::Response("unchanged, and nobody said since when".to_owned()));
        };
        let issue: RestIssue = serde_json::from_slice(&fetched.body)
            .map_err(|error| TrackerError::Response(format!("issue {number}: {error}")))?;
        if issue.pull_request.is_some() {
            return Err(TrackerError::NotFound(id.clone()));
        }
        Ok(self.issue_of_rest(issue, None))
    }

    pub(super) async fn change_labels(
        &self,
        id: &TicketId,
        issue: &Issue,
        add: &[String],
        remove: &[String],
    ) -> Result<(), TrackerError> {
        let wanted = add.iter().map(|label| label.trim()).filter(|label| !label.is_empty());
        let mut missing: Vec<&str> = Vec::new();
        for label in wanted.filter(|label| !state_in(label, &issue.labels)) {
            if !missing.iter().any(|known| same_state(known, label)) {
                missing.push(label);
            }
        }
        if !missing.is_empty() {
            let (path, body) = (self.issue_path(issue.number, "/labels"), json!({"labels": missing}));
            let added = self.github.write::<IgnoredAny>(Purpose::Write, Method::POST, &path, Some(&body)).await;
            added.map_err(about(id))?;
        }
        for label in issue.labels.iter().filter(|label| state_in(label, remove)) {
            let path = self.issue_path(issue.number, &format!("/labels/{}", segment(label)));
            match self.github.write_blindly(Purpose::Write, Method::DELETE, &path, None::<&()>).await {
                // The label was removed meanwhile. It cannot be the issue that is missing, because it was read just now.
                Ok(()) | Err(GithubError::NotFound(_)) => {}
                Err(error) => return Err(about(id)(error)),
            }
        }
        Ok(())
    }

    /// Adds and removes the labels configured for finished tickets, if `state` is the state for them.
    pub(super) async fn label_done(&self, id: &TicketId, issue: &Issue, state: &str) -> Result<(), TrackerError> {
        let done = &self.board.done;
        if !same_state(state, &done.state)
            || normalise_labels(done.add_labels.iter().chain(&done.remove_labels)).is_empty()
        {
            return Ok(());
        }
        self.change_labels(id, issue, &done.add_labels, &done.remove_labels).await
    }
}
