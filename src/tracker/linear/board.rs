//! Reads whole issues by their ids, and decodes a page of issues.

use std::collections::BTreeMap;

use serde_json::Value;

use super::LinearTracker;
use super::cursors::Cursors;
use super::documents::issues::{IssueFilter, IssuesIssuesNodes as Node, Variables};
use super::documents::{Issues, issues};
use super::people::Mentioned;
use super::scope::{by_ids, is_uuid};
use super::ticket::{is_cut_off, lacks_history, people_in, ticket};
use crate::domain::ids::TicketId;
use crate::domain::ticket::Ticket;
use crate::tracker::{Found, TrackerError};

/// Page sizes of a reading. Linear counts complexity by the requested sizes, not by the number of results.
pub(super) struct Sizes {
    pub first: i64,
    labels: i64,
    relations: i64,
    comments: i64,
    history: i64,
}

/// Many issues, with lists that are long enough for most of them.
pub(super) const WIDE: Sizes = Sizes { first: 35, labels: 10, relations: 5, comments: 5, history: 10 };
/// A few issues, with lists that are long enough for nearly all of them.
pub(super) const DEEP: Sizes = Sizes { first: 10, labels: 20, relations: 20, comments: 40, history: 10 };
/// One issue, to continue its lists where another reading was truncated.
const REST: Sizes = Sizes { first: 1, labels: 50, relations: 50, comments: 100, history: 100 };

/// The result of reading one issue by its id.
pub enum Seen {
    Node(Box<Node>),
    Unreadable(String),
}

impl LinearTracker {
    /// Reads these issues with all pages of their inner lists, whether in scope or not. An id that is missing from the result was
    /// not shown.
    pub(super) async fn read_deeply(&self, ids: Vec<String>) -> Result<BTreeMap<String, Seen>, TrackerError> {
        let mut found = BTreeMap::new();
        for ids in ids.chunks(DEEP.first as usize) {
            let asked = variables(&by_ids(ids.to_vec()), &DEEP, None, true);
            let (nodes, _) = read_page(self.client.ask_loosely::<Issues>(asked).await?.data)?;
            for node in nodes {
                match decode(node) {
                    Ok(mut node) => {
                        let id = node.id.clone();
                        let seen = match self.read_on(&mut node).await? {
                            Ok(()) => Seen::Node(Box::new(node)),
                            Err(Malformed { why, .. }) => Seen::Unreadable(why),
                        };
                        found.insert(id, seen);
                    }
                    Err(Malformed { id, why }) => {
                        found.insert(id, Seen::Unreadable(why));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Reads the remaining pages of the inner lists of one issue. An inner error says that one of them does not fit the schema; that
    /// concerns this issue alone.
    async fn read_on(&self, node: &mut Node) -> Result<Result<(), Malformed>, TrackerError> {
        let mut pages: BTreeMap<&str, Cursors> = BTreeMap::new();
        while is_cut_off(node) {
            let filter = by_ids(vec![node.id.clone()]);
            let sizes = Sizes {
                labels: if node.labels.page_info.has_next_page { REST.labels } else { 1 },
                relations: if node.inverse_relations.page_info.has_next_page { REST.relations } else { 1 },
                comments: if node.comments.page_info.has_next_page { REST.comments } else { 1 },
                history: if lacks_history(node) { REST.history } else { 1 },
                ..REST
            };
            let asked = Variables {
                labels_after: node.labels.page_info.end_cursor.clone(),
                relations_after: node.inverse_relations.page_info.end_cursor.clone(),
                comments_after: node.comments.page_info.end_cursor.clone(),
                history_after: node.history.page_info.end_cursor.clone(),
                ..variables(&filter, &sizes, None, true)
            };
            let (more, _) = read_page(self.client.ask_loosely::<Issues>(asked).await?.data)?;
            let more = match decode(more.into_iter().next().ok_or_else(|| gone_meanwhile(node))?) {
                Ok(more) => more,
                Err(malformed) => return Ok(Err(malformed)),
            };
            macro_rules! append {
                ($list:ident, $needed:expr) => {
                    if $needed {
                        // The cursor that this request followed.
                        let info = &node.$list.page_info;
                        let followed = pages.entry(stringify!($list)).or_default();
                        followed.after(info.has_next_page, info.end_cursor.clone())?;
                        node.$list.nodes.extend(more.$list.nodes);
                        node.$list.page_info = more.$list.page_info;
                    }
                };
            }
            append!(labels, node.labels.page_info.has_next_page);
            append!(inverse_relations, node.inverse_relations.page_info.has_next_page);
            append!(comments, node.comments.page_info.has_next_page);
            append!(history, lacks_history(node));
        }
        Ok(Ok(()))
    }

    pub(super) async fn tickets(&self, nodes: &[Node]) -> Result<Vec<Ticket>, TrackerError> {
        let mut people = Mentioned::default();
        nodes.iter().for_each(|node| people_in(node, &self.states.approval, &mut people));
        self.people.meet(&self.client, people).await?;
        Ok(nodes.iter().map(|node| ticket(node, &self.scope, &self.people)).collect())
    }

    pub(super) async fn by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        let real = ids.iter().filter(|id| is_uuid(id.as_str())).map(|id| id.as_str().to_lowercase()).collect();
        let mut seen = self.read_deeply(real).await?;
        let nodes: Vec<Node> = seen
            .values()
            .filter_map(|seen| match seen {
                Seen::Node(node) => Some((**node).clone()),
                Seen::Unreadable(_) => None,
            })
            .collect();
        let tickets = self.tickets(&nodes).await?;
        let mut tickets: BTreeMap<TicketId, Ticket> =
            tickets.into_iter().map(|ticket| (ticket.id.clone(), ticket)).collect();
        let mut found = |id: &TicketId| match seen.remove(&id.as_str().to_lowercase()) {
            None => Found::NotVisible,
            Some(Seen::Unreadable(why)) => Found::Unreadable(why),
            Some(Seen::Node(node)) if node.trashed == Some(true) => Found::Gone("somebody deleted it".to_owned()),
            Some(Seen::Node(node)) => match (self.scope.excludes(&node), tickets.remove(id)) {
                (Some(why), _) => Found::Gone(why),
                (None, Some(ticket)) => Found::Ticket(ticket),
                (None, None) => Found::NotVisible,
            },
        };
        Ok(ids.iter().map(|id| (id.clone(), found(id))).collect())
    }
}

fn gone_meanwhile(node: &Node) -> TrackerError {
    TrackerError::Pagination(format!("{} was not shown any more while it was read", node.identifier))
}

pub(super) fn variables(filter: &IssueFilter, sizes: &Sizes, after: Option<String>, archived: bool) -> Variables {
    Variables {
        filter: Some(filter.clone()),
        first: sizes.first,
        after,
        archived,
        labels: sizes.labels,
        labels_after: None,
        relations: sizes.relations,
        relations_after: None,
        comments: sizes.comments,
        comments_after: None,
        history: sizes.history,
        history_after: None,
    }
}

/// A record that does not fit the schema.
pub(super) struct Malformed {
    pub id: String,
    pub why: String,
}

pub(super) fn decode(value: Value) -> Result<Node, Malformed> {
    let id = value["id"].as_str().map_or_else(|| "an issue without an id".to_owned(), str::to_owned);
    let node: Node =
        serde_json::from_value(value).map_err(|error| Malformed { id: id.clone(), why: error.to_string() })?;
    let blank = [("title", &node.title), ("identifier", &node.identifier), ("state", &node.state.name)]
        .into_iter()
        .find(|(_, text)| text.trim().is_empty());
    match blank {
        Some((name, _)) => Err(Malformed { id, why: format!("its {name} is empty") }),
        None => Ok(node),
    }
}

/// Returns the records of a page, and the information about the next page.
pub(super) fn read_page(mut data: Value) -> Result<(Vec<Value>, issues::IssuesIssuesPageInfo), TrackerError> {
    let info: issues::IssuesIssuesPageInfo = serde_json::from_value(data["issues"]["pageInfo"].take())
        .map_err(|error| TrackerError::Response(format!("a page does not say whether it is the last one: {error}")))?;
    let Value::Array(nodes) = data["issues"]["nodes"].take() else {
        return Err(TrackerError::Response("a page has no list of issues".to_owned()));
    };
    Ok((nodes, info))
}
