//! Turns an issue into a ticket.

use super::GithubTracker;
use super::ids::{IssueRef, time};
use super::marks::read_ticket_body;
use super::wire::{GraphqlIssue, RestIssue, RestUser};
use crate::domain::ids::TicketKey;
use crate::domain::ticket::{Blocker, Dispatchable, Ticket, normalise_labels, state_in};

/// An issue, read through REST or GraphQL.
#[derive(Debug, Clone)]
pub struct Issue {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub is_open: bool,
    pub author: Option<RestUser>,
    /// As they are spelt in the repository.
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub milestone: Option<String>,
    pub url: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: String,
    pub parent: Option<IssueRef>,
    /// The issue's column, if a project is the board.
    pub column: Option<String>,
}

impl GithubTracker {
    pub(super) fn issue_of_rest(&self, issue: RestIssue, column: Option<String>) -> Issue {
        let parent = issue.parent_issue_url.as_deref();
        Issue {
            number: issue.number,
            title: issue.title,
            body: issue.body.unwrap_or_default(),
            is_open: issue.state == "open",
            author: issue.user,
            labels: issue.labels.iter().map(|label| label.name().to_owned()).collect(),
            assignees: issue.assignees.unwrap_or_default().into_iter().map(|user| user.login).collect(),
            milestone: issue.milestone.map(|milestone| milestone.title),
            url: issue.html_url,
            created_at: issue.created_at,
            updated_at: issue.updated_at,
            parent: parent.and_then(|url| IssueRef::of_api_url(url, &self.board.owner, &self.board.name)),
            column,
        }
    }

    /// Converts an issue of GraphQL. The error says which field is missing.
    pub(super) fn issue_of_graphql(&self, issue: &GraphqlIssue, column: Option<String>) -> Result<Issue, String> {
        let missing = |what: &str| format!("GitHub's answer has no {what}");
        let labels = issue.labels.as_ref().ok_or_else(|| missing("labels"))?;
        let assignees = issue.assignees.iter().flat_map(|all| all.each());
        let parent = issue.parent.as_ref().map(|parent| {
            let url = format!("{}/issues/{}", parent.repository.name_with_owner, parent.number);
            IssueRef::of_api_url(&url, &self.board.owner, &self.board.name)
        });
        Ok(Issue {
            number: issue.number.ok_or_else(|| missing("number"))?,
            title: issue.title.clone().ok_or_else(|| missing("title"))?,
            body: issue.body.clone().unwrap_or_default(),
            is_open: issue.state.as_deref().ok_or_else(|| missing("state"))? == "OPEN",
            author: issue.author.as_ref().map(|actor| actor.as_user()),
            labels: labels.each().map(|label| label.name.clone()).collect(),
            assignees: assignees.map(|actor| actor.as_user().login).collect(),
            milestone: issue.milestone.as_ref().map(|milestone| milestone.title.clone()),
            url: issue.url.clone(),
            created_at: issue.created_at.clone(),
            updated_at: issue.updated_at.clone().ok_or_else(|| missing("time of its last change"))?,
            parent: parent.flatten(),
            column,
        })
    }

    pub(super) fn state_of(&self, issue: &Issue) -> String {
        self.board.columns.state(issue.is_open, &issue.labels, issue.column.as_deref())
    }

    /// Builds the ticket. The people of the issue and its blockers must have been looked up before.
    pub(super) fn ticket(&self, issue: &Issue, blocked_by: Vec<Blocker>) -> Ticket {
        // Anybody can write a line that looks like the runner's own.
        let (description, priority) = match self.is_our_account(issue.author.as_ref()) {
            true => read_ticket_body(&issue.body),
            false => (issue.body.as_str(), None),
        };
        Ticket {
            id: IssueRef::here(issue.number).id(),
            key: TicketKey::new(format!("GH-{}", issue.number)),
            title: issue.title.clone(),
            description: Some(description.to_owned()).filter(|text| !text.trim().is_empty()),
            priority,
            state: self.state_of(issue),
            branch_name: None,
            url: issue.url.clone(),
            assignee: issue.assignees.first().cloned(),
            author: Some(self.author(issue.author.as_ref())),
            // A label that represents a state is left out: otherwise the runner's own moves would look like new labels.
            labels: normalise_labels(issue.labels.iter().filter(|label| !self.board.columns.is_state(label))),
            blocked_by,
            parent: issue.parent.as_ref().map(IssueRef::id),
            dispatchable: self.dispatchable(issue),
            created_at: issue.created_at.as_deref().and_then(time),
            updated_at: time(&issue.updated_at),
            native_ref: None,
            comments: None,
            state_changed: None,
            history: Default::default(),
        }
    }

    /// Returns the login of the account that issues have to be assigned to. `None` if the workflow file does not require one.
    pub(super) fn assignee_wanted(&self) -> Option<String> {
        let wanted = self.board.assignee.as_deref()?;
        let ours = (wanted == "me").then(|| self.our_known_login()).flatten();
        Some(ours.unwrap_or_else(|| wanted.to_owned()))
    }

    /// Whether the assignee and the milestone allow work on this issue.
    fn dispatchable(&self, issue: &Issue) -> Dispatchable {
        if let Some(wanted) = self.assignee_wanted().filter(|wanted| !state_in(wanted, &issue.assignees)) {
            return Dispatchable::No(format!("it is not assigned to {wanted} (`tracker.provider.assignee`)"));
        }
        let milestone = issue.milestone.iter().cloned().collect::<Vec<_>>();
        if let Some(wanted) = self.board.milestone.as_ref().filter(|wanted| !state_in(wanted, &milestone)) {
            return Dispatchable::No(format!("it is not in milestone `{wanted}` (`tracker.provider.milestone`)"));
        }
        Dispatchable::Yes
    }

    /// Whether the issue has every required label. A blank one matches nothing.
    pub(super) fn is_wanted(&self, issue: &Issue) -> bool {
        let has = |wanted: &String| !wanted.trim().is_empty() && state_in(wanted, &issue.labels);
        self.board.required_labels.iter().all(has)
    }
}
