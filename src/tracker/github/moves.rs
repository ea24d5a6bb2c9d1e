//! Moves a ticket: reads it just before, then writes in steps that can each be repeated.

use http::Method;
use serde_json::json;

use super::GithubTracker;
use super::columns::{CLOSED, Columns, OPEN};
use super::error::about;
use super::ids::time;
use super::project::CardPlace;
use super::ticket::Issue;
use super::wire::RestIssue;
use crate::domain::ids::TicketId;
use crate::domain::ticket::{same_state, state_in};
use crate::domain::time::Timestamp;
use crate::github::{GithubError, Purpose};
use crate::tracker::{Move, TrackerError};

/// The state that a ticket is to have.
struct Target {
    is_open: bool,
    /// The label of that state, and the labels of other states.
    label: Option<String>,
    other_labels: Vec<String>,
    column: Option<String>,
}

impl GithubTracker {
    pub(super) async fn move_issue(&self, id: &TicketId, state: &str, from: &[String]) -> Result<Move, TrackerError> {
        let number = Self::number(id)?;
        let _writing = self.writing.lock().await;
        let mut issue = self.issue_now(id, number).await?;
        let place = match &self.board.columns {
            Columns::Project(project) => Some(self.place(project, number).await.map_err(about(id))?),
            Columns::OpenClosed | Columns::Labels(_) => None,
        };
        issue.column = place.as_ref().and_then(|place| place.column.clone());
        let target = self.target(state.trim(), place.as_ref())?;
        let actual = self.state_of(&issue);
        let already = same_state(&actual, state);
        if !already && !from.is_empty() && !state_in(&actual, from) {
            return Ok(Move::Elsewhere(actual));
        }
        let moved = self.go(id, &issue, &target, place.as_ref()).await?;
        self.label_done(id, &issue, state).await?;
        Ok(if already { Move::Already } else { Move::Moved(moved) })
    }

    fn target(&self, state: &str, place: Option<&CardPlace>) -> Result<Target, TrackerError> {
        let plain = |is_open| Target { is_open, label: None, other_labels: Vec::new(), column: None };
        let known = match (&self.board.columns, place) {
            (Columns::Labels(known), _) => {
                let others = |label: Option<&String>| {
                    known.iter().map(|one| one.label.clone()).filter(|one| Some(one) != label).collect()
                };
                if let Some(one) = known.iter().find(|one| same_state(&one.state, state)) {
                    let other_labels = others(Some(&one.label));
                    return Ok(Target { label: Some(one.label.clone()), other_labels, ..plain(!one.terminal) });
                }
                if same_state(state, OPEN) {
                    return Ok(Target { other_labels: others(None), ..plain(true) });
                }
                known.iter().map(|one| one.state.as_str()).collect::<Vec<_>>().join(", ")
            }
            (Columns::Project(project), Some(place)) => {
                if place.has_column(state) {
                    let is_open = !state_in(state, &project.terminal);
                    return Ok(Target { column: Some(state.to_owned()), ..plain(is_open) });
                }
                place.columns()
            }
            _ => String::new(),
        };
        match state {
            _ if same_state(state, CLOSED) => Ok(plain(false)),
            _ if same_state(state, OPEN) && place.is_none() => Ok(plain(true)),
            _ => {
                let known = [OPEN, CLOSED, known.as_str()].into_iter().filter(|words| !words.is_empty());
                let known = known.collect::<Vec<_>>().join(", ");
                Err(TrackerError::Refused(format!("`{state}` is not a state of this board, which has {known}")))
            }
        }
    }

    /// Performs the remaining steps. The step that shows the new state comes first.
    async fn go(
        &self,
        id: &TicketId,
        issue: &Issue,
        target: &Target,
        place: Option<&CardPlace>,
    ) -> Result<Option<Timestamp>, TrackerError> {
        let mut changed = None;
        if let (Some(place), Some(column)) = (place, &target.column)
            && !place.column.as_ref().is_some_and(|actual| same_state(actual, column))
        {
            self.move_in_project(place, column).await.map_err(about(id))?;
        }
        if let Some(label) = &target.label {
            self.change_labels(id, issue, std::slice::from_ref(label), &[]).await?;
        }
        if issue.is_open != target.is_open {
            changed = self.open_or_close(id, issue.number, target.is_open).await?;
        }
        self.change_labels(id, issue, &[], &target.other_labels).await?;
        Ok(changed)
    }

    async fn open_or_close(&self, id: &TicketId, number: u64, open: bool) -> Result<Option<Timestamp>, TrackerError> {
        let body = match open {
            true => json!({"state": "open"}),
            false => json!({"state": "closed", "state_reason": "completed"}),
        };
        let path = self.issue_path(number, "");
        let answer = self.github.write::<RestIssue>(Purpose::Write, Method::PATCH, &path, Some(&body)).await;
        let answer = answer.map_err(|error| match error {
            GithubError::Gone(_) => TrackerError::NotFound(id.clone()),
            other => about(id)(other),
        })?;
        if (answer.state == "open") != open {
            let words = format!("GitHub says that {id} is still {}; it takes the right to triage", answer.state);
            return Err(TrackerError::Refused(words));
        }
        Ok(time(&answer.updated_at))
    }
}
