//! Repeated polling, at the cost of one request while nothing changes.
//!
//! A tick requests the issues and comments that changed since the last reading, with some overlap: replicas may show changes late,
//! and changes that were reported already are recognised by their time of change. A sweep compares every issue on the board. It is
//! needed because Linear does not document whether a relation changes its issue's time of change, and because no change reports an
//! issue that left the scope.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LinearTracker;
use super::board::Seen;
use super::cursors::Cursors;
use super::documents::issues::IssuesIssuesNodes as Node;
use super::documents::{Changes, Digests, changes, digests};
use super::listing::Listing;
use super::scope::{recast, time_of, time_text};
use super::ticket::{comment_time, digest, digest_of};
use crate::domain::ticket::{Ticket, state_in};
use crate::domain::time::Timestamp;
use crate::tracker::{BoardAnswer, BoardReading, Mark, TrackerError};

/// How much later than it happened a change may become visible.
const OVERLAP: Duration = Duration::from_secs(120);
/// The most changes of one tick. If there are more, the whole board is listed.
const MOST_CHANGES: i64 = 200;
const SWEPT_AT_ONCE: i64 = 200;

/// The content of a mark.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Told {
    /// The time of the last request, by Linear's clock.
    at: Timestamp,
    /// The time of the last sweep or listing, by the local clock.
    swept: Timestamp,
    /// The issues and comments of the overlap that were reported already, each with its time of change.
    issues: BTreeMap<String, String>,
    comments: BTreeMap<String, String>,
}

/// The current state of issues that changed.
enum Changed {
    Tickets(Vec<Node>, Vec<Ticket>),
    /// Some are not on the board any more. Only a whole listing can report that.
    Left(Vec<Left>),
}

/// An issue that is not on the board any more: the time of its last change, and its comments with theirs.
struct Left {
    id: String,
    updated_at: String,
    comments: Vec<(String, String)>,
}

impl Left {
    fn of(node: Node) -> Self {
        let comments = node.comments.nodes.into_iter().map(|comment| (comment.id, comment.updated_at));
        Self { id: node.id, updated_at: node.updated_at, comments: comments.collect() }
    }
}

/// Each issue on the board, by id, with a hash of what the runner knows about it.
pub type Digest = HashMap<u128, u64>;

impl LinearTracker {
    pub(super) async fn tick(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        if let Some(wait) = self.client.budget().near_its_end() {
            let why = "what is left of Linear's limit is kept for what is under way".to_owned();
            return Err(TrackerError::Later { wait, why });
        }
        let told: Option<Told> = since.and_then(|mark| serde_json::from_str(&mark.0).ok());
        let Some(told) = told else { return self.tell_everything(states, Vec::new()).await };
        if now().since(told.swept) >= self.sweep_every {
            self.sweep(states, told).await
        } else {
            self.delta(states, told).await
        }
    }

    /// Lists the whole board. `left` are issues that left the board and so made the listing necessary; they are recorded as
    /// reported.
    async fn tell_everything(&self, states: &[String], left: Vec<Left>) -> Result<BoardReading, TrackerError> {
        let began = now();
        let Listing { nodes, asked_at } = self.list(states).await?;
        let tickets = self.tickets(&nodes).await?;
        let at = asked_at.unwrap_or(began);
        let issues = nodes.iter().map(|node| (node.id.clone(), node.updated_at.clone()));
        let mut told = Told { at, swept: began, issues: issues.collect(), comments: BTreeMap::new() };
        for comment in nodes.iter().flat_map(|node| &node.comments.nodes) {
            told.comments.insert(comment.id.clone(), comment.updated_at.clone());
        }
        for Left { id, updated_at, comments } in left {
            told.issues.entry(id).or_insert(updated_at);
            told.comments.extend(comments);
        }
        told.forget();
        *self.digests.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(nodes.iter().filter_map(|node| Some((number(&node.id)?, digest_of(node)))).collect());
        Ok(BoardReading { asked_at, answer: BoardAnswer::Listed { tickets, mark: Some(told.mark()) } })
    }

    async fn delta(&self, states: &[String], told: Told) -> Result<BoardReading, TrackerError> {
        let since = told.window();
        let scope: changes::NullableIssueFilter = recast(&self.scope.filter())?;
        let asked = changes::Variables {
            issues: Some(recast(&self.scope.changed_since(&since))?),
            comments: Some(changes::CommentFilter {
                updated_at: Some(changes::DateComparator { gte: Some(since), ..Default::default() }),
                issue: Some(scope),
                ..Default::default()
            }),
            first: MOST_CHANGES,
        };
        let answer = self.client.ask::<Changes>(asked).await?;
        let (issues, comments) = (answer.data.issues, answer.data.comments);
        if issues.page_info.has_next_page || comments.page_info.has_next_page {
            return self.tell_everything(states, Vec::new()).await;
        }
        let known = |of: &BTreeMap<String, String>, id: &String, at: &String| of.get(id) == Some(at);
        let mut changed: Vec<String> = issues
            .nodes
            .iter()
            .filter(|one| !known(&told.issues, &one.id, &one.updated_at))
            .map(|one| one.id.clone())
            .collect();
        let said = comments.nodes.iter().filter(|one| !known(&told.comments, &one.id, &one.updated_at));
        changed.extend(said.filter_map(|one| one.issue_id.clone()));
        changed.sort();
        changed.dedup();
        if changed.is_empty() {
            return Ok(BoardReading { asked_at: answer.asked_at, answer: BoardAnswer::Unchanged });
        }
        let (nodes, tickets) = match self.changed_tickets(changed).await? {
            Changed::Tickets(nodes, tickets) => (nodes, tickets),
            Changed::Left(left) => return self.tell_everything(states, left).await,
        };
        let mut next = Told { at: answer.asked_at.unwrap_or_else(now).max(told.at), ..told };
        // Recorded as they were read. If that was from an older replica, the change is reported again at the next tick.
        next.issues.extend(nodes.iter().map(|node| (node.id.clone(), node.updated_at.clone())));
        for comment in comments.nodes {
            let shown = tickets.iter().find_map(|ticket| comment_time(ticket, &comment.id));
            if shown.is_some() && shown == time_of(&comment.updated_at) {
                next.comments.insert(comment.id, comment.updated_at);
            }
        }
        next.forget();
        self.note_digests(states, &nodes);
        let answer_given = BoardAnswer::Changed { tickets, mark: next.mark() };
        Ok(BoardReading { asked_at: answer.asked_at, answer: answer_given })
    }

    /// Reads the current state of these issues.
    async fn changed_tickets(&self, ids: Vec<String>) -> Result<Changed, TrackerError> {
        let (mut nodes, mut left) = (Vec::new(), Vec::new());
        for (id, seen) in self.read_deeply(ids).await? {
            match seen {
                Seen::Node(node) if node.trashed == Some(true) || self.scope.excludes(&node).is_some() => {
                    left.push(Left::of(*node));
                }
                Seen::Node(node) => nodes.push(*node),
                Seen::Unreadable(why) => tracing::warn!(issue = id, why, "a changed issue cannot be understood"),
            }
        }
        if !left.is_empty() {
            return Ok(Changed::Left(left));
        }
        let tickets = self.tickets(&nodes).await?;
        Ok(Changed::Tickets(nodes, tickets))
    }

    async fn sweep(&self, states: &[String], told: Told) -> Result<BoardReading, TrackerError> {
        let known = self.digests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut known) = known else { return self.tell_everything(states, Vec::new()).await };
        let began = now();
        let filter: digests::IssueFilter = recast(&self.scope.in_states(states))?;
        let (mut changed, mut pages, mut after, mut asked_at) = (Vec::new(), Cursors::default(), None::<String>, None);
        loop {
            let asked = digests::Variables { filter: Some(filter.clone()), first: SWEPT_AT_ONCE, after: after.clone() };
            let answer = self.client.ask::<Digests>(asked).await?;
            asked_at = asked_at.or(answer.asked_at);
            for issue in answer.data.issues.nodes {
                let relations = issue.inverse_relations.nodes.iter().map(|relation| &relation.id);
                let digest = digest(&issue.updated_at, &issue.state.id, &issue.label_ids, relations);
                if number(&issue.id).and_then(|number| known.remove(&number)) != Some(digest) {
                    changed.push(issue.id);
                }
            }
            let info = answer.data.issues.page_info;
            after = pages.after(info.has_next_page, info.end_cursor)?;
            if after.is_none() {
                break;
            }
        }
        // Issues that the sweep did not find are not on the board any more.
        changed.extend(known.into_keys().map(text_of));
        let asked_for = changed.len();
        match self.changed_tickets(changed).await? {
            Changed::Tickets(nodes, tickets) if nodes.len() == asked_for => {
                let mut next = Told { swept: began, ..told };
                next.issues.extend(nodes.iter().map(|node| (node.id.clone(), node.updated_at.clone())));
                next.forget();
                self.note_digests(states, &nodes);
                Ok(BoardReading { asked_at, answer: BoardAnswer::Changed { tickets, mark: next.mark() } })
            }
            Changed::Tickets(..) => self.tell_everything(states, Vec::new()).await,
            Changed::Left(left) => self.tell_everything(states, left).await,
        }
    }

    fn note_digests(&self, states: &[String], nodes: &[Node]) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(digests) = digests.as_mut() else { return };
        for node in nodes {
            let Some(number) = number(&node.id) else { continue };
            if state_in(&node.state.name, states) && node.archived_at.is_none() && self.scope.is_for_us(node) {
                digests.insert(number, digest_of(node));
            } else {
                digests.remove(&number);
            }
        }
    }
}

impl Told {
    /// Returns the time from which changes are requested.
    fn window(&self) -> String {
        let overlap = i64::try_from(OVERLAP.as_millis()).unwrap_or(0);
        time_text(Timestamp(self.at.0.saturating_sub(overlap)))
    }

    /// Drops what is older than the overlap, which no request returns again.
    fn forget(&mut self) {
        let window = time_of(&self.window());
        let is_recent = |_: &String, at: &mut String| time_of(at) >= window;
        self.issues.retain(is_recent);
        self.comments.retain(is_recent);
    }

    fn mark(&self) -> Mark {
        Mark(serde_json::to_string(self).unwrap_or_default())
    }
}

/// Converts an id to a number, which saves memory: the digests of thousands of issues are kept all the time.
fn number(id: &str) -> Option<u128> {
    u128::from_str_radix(&id.replace('-', ""), 16).ok()
}

fn text_of(number: u128) -> String {
    let hex = format!("{number:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}
