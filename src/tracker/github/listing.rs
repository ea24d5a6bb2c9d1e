//! Reads issues page by page. An issue that cannot be read is left out and reported; it does not hide the others.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::GithubTracker;
use super::ticket::Issue;
use super::wire::RestIssue;
use crate::domain::hash::stable_hash;
use crate::domain::ticket::{Ticket, state_in};
use crate::domain::time::Timestamp;
use crate::github::{GithubError, Purpose, with_query};
use crate::tracker::TrackerError;

/// An issue of a listing, with a hash that differs between its versions.
pub struct Row {
    pub issue: RestIssue,
    pub hash: u64,
}

/// The rows of several pages.
#[derive(Default)]
pub struct Rows {
    pub rows: Vec<Row>,
    /// The time of the first response by the server's clock.
    pub date: Option<Timestamp>,
}

#[derive(Deserialize)]
struct NumberAlone {
    number: u64,
}

impl GithubTracker {
    /// Returns all tickets in one of these states.
    pub(super) async fn tickets_in(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        let columns = self.columns_now().await?;
        let rows = self.list(states).await?;
        let issues = rows.rows.into_iter().map(|row| {
            let column = columns.as_ref().and_then(|columns| columns.of(row.issue.number));
            self.issue_of_row(row.issue, column)
        });
        let mut issues: Vec<Issue> = issues.filter(|issue| state_in(&self.state_of(issue), states)).collect();
        issues.sort_by_key(|issue| issue.number);
        issues.dedup_by_key(|issue| issue.number);
        self.tickets(issues).await
    }

    /// Lists every issue that may be in one of these states.
    pub(super) async fn list(&self, states: &[String]) -> Result<Rows, GithubError> {
        let columns = &self.board.columns;
        let state = match (columns.may_be_open(states), columns.may_be_closed(states)) {
            (true, true) => "all",
            (true, false) => "open",
            (false, true) => "closed",
            (false, false) => return Ok(Rows::default()),
        };
        let query = [("state", state), ("sort", "created"), ("direction", "asc"), ("per_page", "100")];
        let mut pages = self.github.pages(Purpose::Watch, &with_query(&self.path("/issues"), &query));
        let mut rows = Rows::default();
        while let Some(page) = pages.next().await? {
            rows.date = rows.date.or(page.date);
            self.read_page(&page.body, &mut rows.rows)?;
        }
        Ok(rows)
    }

    /// Reads the issues of one page.
    pub(super) fn read_page(&self, body: &[u8], rows: &mut Vec<Row>) -> Result<(), GithubError> {
        let page: Vec<&RawValue> = serde_json::from_slice(body).map_err(|error| {
            let words = if error.is_eof() { "it breaks off".to_owned() } else { error.to_string() };
            GithubError::Unreadable(format!("a page of issues: {words}"))
        })?;
        for item in page {
            match serde_json::from_str::<RestIssue>(item.get()) {
                Ok(issue) if issue.pull_request.is_some() => {}
                Ok(issue) => {
                    self.say_left_out(issue.number, None);
                    rows.push(Row { issue, hash: stable_hash(&[item.get()]) });
                }
                Err(error) => self.leave_out(item.get(), &error),
            }
        }
        Ok(())
    }

    fn leave_out(&self, item: &str, error: &serde_json::Error) {
        let number = serde_json::from_str::<NumberAlone>(item).map_or(0, |found| found.number);
        tracing::warn!(number, %error, "an issue of the list cannot be read and is left out");
        self.say_left_out(number, Some(format!("GH-{number}: GitHub's description of it cannot be read ({error})")));
    }

    /// Converts a row, and remembers the number of dependencies that it reports.
    pub(super) fn issue_of_row(&self, issue: RestIssue, column: Option<String>) -> Issue {
        if let Some(summary) = &issue.issue_dependencies_summary {
            self.dependencies.told(issue.number, &issue.updated_at, summary.total_blocked_by);
        }
        self.issue_of_rest(issue, column)
    }

    /// Converts issues into tickets, after looking up their people and blockers.
    pub(super) async fn tickets(&self, issues: Vec<Issue>) -> Result<Vec<Ticket>, TrackerError> {
        let authors: Vec<_> = issues.iter().filter_map(|issue| issue.author.as_ref()).collect();
        self.meet(&authors).await?;
        let wanted: Vec<&Issue> = issues.iter().filter(|issue| self.is_wanted(issue)).collect();
        let mut blockers = self.blockers(&wanted).await?;
        Ok(issues.iter().map(|issue| self.ticket(issue, blockers.remove(&issue.number).unwrap_or_default())).collect())
    }
}
