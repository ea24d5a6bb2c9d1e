//! Repeated polling: reads what changed, in all states and with any labels, so that issues that left the filter are seen too.
//!
//! If nothing changed, a poll costs one request with the response 304. The window of a request begins some time before the newest
//! known change, because a replica may show a change late. Issues of the window that were seen already are recognised by their
//! hash.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GithubTracker;
use super::ids::{shown, time};
use super::listing::{Row, Rows};
use super::project::ColumnsNow;
use super::ticket::Issue;
use crate::domain::ticket::{same_state, state_in};
use crate::domain::time::Timestamp;
use crate::github::{GithubError, Purpose, Unless, with_query};
use crate::tracker::{BoardAnswer, BoardReading, Mark, TrackerError};

/// Replicas have been observed to lag for many minutes.
const OVERLAP_MS: i64 = 10 * 60_000;
/// GitHub's times are whole seconds: an issue that changed this recently may change again without a new time.
const FRESH_MS: i64 = 2_000;
/// When a window holds more issues than this, its beginning is moved forward.
const MOST_IN_WINDOW: usize = 50;
/// After this time the whole board is listed again, because deleted and transferred issues appear in no window.
const RELISTED_AFTER_MS: i64 = 3_600_000;
/// If more columns than this changed, the board is listed instead of reading each issue.
const MOST_MOVED: usize = 20;

/// The content of a mark of this tracker.
#[derive(Debug, Serialize, Deserialize)]
struct Position {
    states: Vec<String>,
    since: i64,
    etag: Option<String>,
    /// The issues seen in the window, by number: the time of the last change, and the hash.
    seen: BTreeMap<u64, (i64, u64)>,
    /// The time of the last listing, by the local clock.
    listed_at: i64,
    /// The hash of the project's columns.
    columns: Option<u64>,
}

/// The issues that changed since a position.
struct Changes {
    rows: Rows,
    etag: Option<String>,
}

impl Position {
    fn read(mark: &Mark) -> Option<Self> {
        serde_json::from_str(&mark.0).ok()
    }

    fn mark(&self) -> Mark {
        Mark(serde_json::to_string(self).unwrap_or_default())
    }

    fn is_about(&self, states: &[String]) -> bool {
        self.states.len() == states.len() && self.states.iter().zip(states).all(|(a, b)| same_state(a, b))
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn changed_at(row: &Row) -> i64 {
    time(&row.issue.updated_at).map_or(0, |at| at.0)
}

impl GithubTracker {
    pub(super) async fn poll_board(
        &self,
        states: &[String],
        since: Option<&Mark>,
    ) -> Result<BoardReading, TrackerError> {
        if states.is_empty() {
            let answer = BoardAnswer::Listed { tickets: Vec::new(), mark: None };
            return Ok(BoardReading { asked_at: None, answer });
        }
        let before = self.project.last();
        let columns = self.columns_now().await?;
        let position = since.and_then(Position::read).filter(|position| {
            position.is_about(states)
                && (0..RELISTED_AFTER_MS).contains(&(now() - position.listed_at))
                && position.columns == before.as_ref().map(ColumnsNow::hash)
        });
        let moved = match (&before, &columns) {
            (Some(before), Some(columns)) => columns.moved_since(before),
            _ => Vec::new(),
        };
        match position.filter(|_| moved.len() <= MOST_MOVED) {
            Some(position) => self.poll_changes(position, columns.as_ref(), &moved).await,
            None => self.poll_all(states, columns.as_ref()).await,
        }
    }

    /// Lists everything, and then reads what changed meanwhile, so that the next poll has a response to compare with.
    async fn poll_all(&self, states: &[String], columns: Option<&ColumnsNow>) -> Result<BoardReading, TrackerError> {
        let listed_at = now();
        let listed = self.list(states).await?;
        let asked_at = listed.date;
        let newest = listed.rows.iter().map(changed_at).max();
        let newest = newest.unwrap_or_else(|| asked_at.map_or(listed_at, |date| date.0));
        let position = Position {
            states: states.to_vec(),
            since: newest - OVERLAP_MS,
            etag: None,
            seen: BTreeMap::new(),
            listed_at,
            columns: columns.map(ColumnsNow::hash),
        };
        let Changes { rows: window, etag } = self.changes_since(&position).await?.unwrap_or_else(Changes::none);
        let position = self.moved_on(position, &window, etag);
        let rows = listed.rows.into_iter().chain(window.rows).map(|row| (row.issue.number, row));
        let rows: BTreeMap<u64, Row> = rows.collect();
        let issues = rows.into_values().map(|row| self.issue_in(row, columns));
        let issues: Vec<Issue> = issues.filter(|issue| state_in(&self.state_of(issue), states)).collect();
        let answer = BoardAnswer::Listed { tickets: self.tickets(issues).await?, mark: Some(position.mark()) };
        Ok(BoardReading { asked_at, answer })
    }

    async fn poll_changes(
        &self,
        position: Position,
        columns: Option<&ColumnsNow>,
        moved: &[u64],
    ) -> Result<BoardReading, TrackerError> {
        let changes = self.changes_since(&position).await?;
        if changes.is_none() && moved.is_empty() {
            return Ok(BoardReading { asked_at: None, answer: BoardAnswer::Unchanged });
        }
        let hash = columns.map(ColumnsNow::hash);
        let asked_at = changes.as_ref().and_then(|changes| changes.rows.date);
        let (rows, position) = match changes {
            None => (Vec::new(), Position { columns: hash, ..position }),
            Some(Changes { mut rows, etag }) => {
                let stale =
                    |row: &Row| position.seen.get(&row.issue.number).is_some_and(|(at, _)| changed_at(row) < *at);
                // An older replica served this response: its older rows and its etag are ignored.
                let etag = etag.filter(|_| !rows.rows.iter().any(stale));
                rows.rows.retain(|row| !stale(row));
                let known = position.seen.clone();
                let next = self.moved_on(Position { columns: hash, ..position }, &rows, etag);
                rows.rows.retain(|row| known.get(&row.issue.number) != Some(&(changed_at(row), row.hash)));
                (rows.rows, next)
            }
        };
        let mut issues: Vec<Issue> = rows.into_iter().map(|row| self.issue_in(row, columns)).collect();
        for number in moved {
            if !issues.iter().any(|issue| issue.number == *number) {
                issues.extend(self.issue_by_number(*number, columns).await?);
            }
        }
        let answer = BoardAnswer::Changed { tickets: self.tickets(issues).await?, mark: position.mark() };
        Ok(BoardReading { asked_at, answer })
    }

    fn issue_in(&self, row: Row, columns: Option<&ColumnsNow>) -> Issue {
        let column = columns.and_then(|columns| columns.of(row.issue.number));
        self.issue_of_row(row.issue, column)
    }

    /// Reads an issue of which only the column changed. `None` if it is gone.
    async fn issue_by_number(&self, number: u64, columns: Option<&ColumnsNow>) -> Result<Option<Issue>, GithubError> {
        match self.github.get(Purpose::Watch, &self.issue_path(number, "")).await {
            Ok(issue) => Ok(Some(self.issue_in(Row { issue, hash: 0 }, columns))),
            Err(GithubError::NotFound(_) | GithubError::Gone(_) | GithubError::Moved(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the issues of all states that changed since the position, the newest first. `None` if nothing changed since the etag.
    async fn changes_since(&self, position: &Position) -> Result<Option<Changes>, GithubError> {
        let since = shown(Timestamp(position.since));
        let query = [
            ("state", "all"),
            ("sort", "updated"),
            ("direction", "desc"),
            ("per_page", "100"),
            ("since", since.as_str()),
        ];
        let path = with_query(&self.path("/issues"), &query);
        let first = match self.github.get_unless(Purpose::Watch, &path, position.etag.as_deref()).await? {
            Unless::Unchanged { .. } => return Ok(None),
            Unless::Fetched(first) => first,
        };
        let mut rows = Rows { rows: Vec::new(), date: first.date };
        self.read_page(&first.body, &mut rows.rows)?;
        let mut pages = self.github.pages_after(Purpose::Watch, &first)?;
        while let Some(page) = pages.next().await? {
            self.read_page(&page.body, &mut rows.rows)?;
        }
        Ok(Some(Changes { rows, etag: first.etag }))
    }

    /// Returns the position after this window.
    fn moved_on(&self, position: Position, window: &Rows, etag: Option<String>) -> Position {
        let date = window.date.map_or_else(now, |date| date.0);
        let is_fresh = |row: &&Row| changed_at(row) > date - FRESH_MS;
        let any_fresh = window.rows.iter().any(|row| is_fresh(&row));
        let seen = window.rows.iter().filter(|row| !is_fresh(row));
        let mut seen: BTreeMap<u64, (i64, u64)> =
            seen.map(|row| (row.issue.number, (changed_at(row), row.hash))).collect();
        let mut next = Position { etag: etag.filter(|_| !any_fresh), ..position };
        if window.rows.len() > MOST_IN_WINDOW {
            let newest = window.rows.iter().map(changed_at).max().unwrap_or(next.since);
            let since = (newest - OVERLAP_MS).max(next.since);
            if since > next.since {
                seen.retain(|_, (at, _)| *at >= since);
                next = Position { since, etag: None, ..next };
            }
        }
        Position { seen, ..next }
    }
}

impl Changes {
    fn none() -> Self {
        Self { rows: Rows::default(), etag: None }
    }
}
