//! Asking again and again: what changed since, over all states and labels, so that what left the filter is seen.
//!
//! A board on which nothing happened costs one request, answered with 304. The window of the question begins a while before the newest
//! change that was seen, because a replica may show a change late; what was seen in it already is told apart by its hash.

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

/// Replicas have been seen to lag for many minutes.
const OVERLAP_MS: i64 = 10 * 60_000;
/// GitHub's times are whole seconds: what changed this recently may change again without showing.
const FRESH_MS: i64 = 2_000;
/// What a window holds at most before it is moved on.
const MOST_IN_WINDOW: usize = 50;
/// After this the board is listed anew: what was deleted or transferred is in no window.
const RELISTED_AFTER_MS: i64 = 3_600_000;
/// More moved columns than this are better listed than asked for one by one.
const MOST_MOVED: usize = 20;

/// What a mark of this tracker stands for.
#[derive(Debug, Serialize, Deserialize)]
struct Position {
    states: Vec<String>,
    since: i64,
    etag: Option<String>,
    /// What was seen in the window, by number: its time of change and its hash.
    seen: BTreeMap<u64, (i64, u64)>,
    /// By our own clock.
    listed_at: i64,
    /// The columns of the project.
    columns: Option<u64>,
}

/// What a question about changes was answered with.
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

    /// Everything, and then what changed meanwhile, so that the next question has an answer to be compared with.
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
                // An older replica than the one before answers: neither its rows nor its tag stand for anything.
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

    /// An issue that only its column moved; nothing if it is not there any more.
    async fn issue_by_number(&self, number: u64, columns: Option<&ColumnsNow>) -> Result<Option<Issue>, GithubError> {
        match self.github.get(Purpose::Watch, &self.issue_path(number, "")).await {
            Ok(issue) => Ok(Some(self.issue_in(Row { issue, hash: 0 }, columns))),
            Err(GithubError::NotFound(_) | GithubError::Gone(_) | GithubError::Moved(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The issues of all states that changed since then, newest first; `None` if it is what the tag stands for.
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

    /// The position after what was seen in the window.
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
