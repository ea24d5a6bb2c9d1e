//! Turns Linear's issue into a ticket.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::documents::issues::{
    IssuesIssuesNodes as Node, IssuesIssuesNodesCommentsNodes as CommentNode,
    IssuesIssuesNodesHistoryNodes as HistoryNode,
};
use super::marks::hidden;
use super::people::{Accounts, Mentioned};
use super::scope::{Scope, time_of};
use crate::domain::comment::{Author, Comment, TrustLevel, has_command_line};
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::ticket::{
    Blocker, Dispatchable, History, Labelled, StateChange, Ticket, normalise_labels, state_in,
};
use crate::domain::time::Timestamp;

/// The number of relations in a digest. If there are more, only other changes of the issue reveal a change of the rest.
const DIGESTED_RELATIONS: usize = 5;

/// Collects the accounts that appear in an issue, and those among them who may approve: by a command, or by the move into one of
/// these states.
pub fn people_in(node: &Node, approval_states: &[String], people: &mut Mentioned) {
    let comments = || node.comments.nodes.iter().filter_map(|comment| Some((comment.user.as_ref()?, &comment.body)));
    people.named.extend(node.creator.iter().map(|user| user.id.clone()));
    people.named.extend(comments().map(|(user, _)| user.id.clone()));
    people.named.extend(node.history.nodes.iter().filter_map(|entry| entry.actor_id.clone()));
    let telling = comments().filter(|(_, body)| has_command_line(body));
    people.approving.extend(telling.map(|(user, _)| user.id.clone()));
    if state_in(&node.state.name, approval_states) {
        people.approving.extend(last_mover(node).and_then(|entry| entry.actor_id.clone()));
    }
}

/// Whether an inner list of the reading is incomplete.
pub fn is_cut_off(node: &Node) -> bool {
    node.labels.page_info.has_next_page
        || node.inverse_relations.page_info.has_next_page
        || node.comments.page_info.has_next_page
        || lacks_history(node)
}

/// Whether more of the history has to be read. Its order is not documented, so it is read until its newest entries and a move among
/// them are there.
pub fn lacks_history(node: &Node) -> bool {
    if !node.history.page_info.has_next_page {
        return false;
    }
    let entries = &node.history.nodes;
    let newest_first = match (entries.first(), entries.last()) {
        (Some(first), Some(last)) => first.created_at > last.created_at,
        _ => false,
    };
    !newest_first || !entries.iter().any(|entry| entry.to_state_id.is_some())
}

/// Builds the ticket. Comments and the last move are left out if they were not read completely.
pub fn ticket(node: &Node, scope: &Scope, people: &Accounts) -> Ticket {
    let author = people.author(
        node.creator.as_ref().map(|user| user.id.as_str()),
        node.bot_actor
            .as_ref()
            .filter(|_| node.creator.is_none())
            .map(|bot| bot.name.as_deref().unwrap_or("an integration")),
        node.external_user_creator.as_ref().map(|user| user.name.as_str()),
    );
    let dispatchable = match (&node.archived_at, scope.is_for_us(node)) {
        (Some(_), _) => Dispatchable::No("it is archived".to_owned()),
        (None, false) => Dispatchable::No("it is neither assigned nor delegated to whom the workflow names".to_owned()),
        (None, true) => Dispatchable::Yes,
    };
    let whole_comments = !node.comments.page_info.has_next_page;
    Ticket {
        id: TicketId::new(&node.id),
        key: node.identifier.as_str().into(),
        title: node.title.clone(),
        description: node.description.clone().filter(|text| !text.trim().is_empty()),
        priority: priority(node.priority),
        state: node.state.name.clone(),
        branch_name: Some(node.branch_name.clone()).filter(|name| !name.is_empty()),
        url: Some(node.url.clone()).filter(|url| !url.is_empty()),
        assignee: node.assignee.as_ref().map(|user| user.display_name.clone()),
        author: Some(author),
        labels: normalise_labels(node.labels.nodes.iter().map(|label| label.name.as_str())),
        blocked_by: blockers(node),
        parent: node.parent.as_ref().map(|parent| TicketId::new(&parent.id)),
        dispatchable,
        created_at: time_of(&node.created_at),
        updated_at: time_of(&node.updated_at),
        native_ref: Some(serde_json::json!({
            "team": node.team.key,
            "project": node.project.as_ref().map(|project| &project.slug_id),
        })),
        comments: whole_comments.then(|| comments(&node.comments.nodes, people)),
        state_changed: last_move(node, people),
        history: History { labelled: labelled(node, people), ..History::default() },
    }
}

/// Converts a priority. 1 is urgent and 4 is low, as in the engine; 0 means none.
fn priority(priority: f64) -> Option<i64> {
    let whole = priority as i64;
    (whole > 0).then_some(whole)
}

/// Returns the issues that have a relation `blocks` to this one. Linear has no other kind of blocker.
fn blockers(node: &Node) -> Vec<Blocker> {
    let blocking = node.inverse_relations.nodes.iter().filter(|relation| relation.type_ == "blocks");
    let blocker = |issue: &super::documents::issues::IssuesIssuesNodesInverseRelationsNodesIssue| Blocker {
        id: TicketId::new(&issue.id),
        key: issue.identifier.as_str().into(),
        state: Some(issue.state.name.clone()),
        failed: false,
    };
    blocking.map(|relation| blocker(&relation.issue)).collect()
}

fn comments(nodes: &[CommentNode], people: &Accounts) -> Vec<Comment> {
    let mut comments: Vec<Comment> = nodes
        .iter()
        .map(|node| {
            let user = node.user.as_ref().map(|user| user.id.as_str());
            let bot = node.bot_actor.as_ref().map(|bot| bot.name.as_deref().unwrap_or("an integration"));
            let outsider = node.external_user.as_ref().map(|user| user.name.as_str());
            Comment {
                id: CommentId::new(&node.id),
                author: people.author(user, bot, outsider),
                body: hidden(&node.body),
                created_at: time_of(&node.created_at),
                updated_at: time_of(&node.updated_at),
            }
        })
        .collect();
    oldest_first(&mut comments);
    comments
}

pub fn oldest_first(comments: &mut [Comment]) {
    comments.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
}

/// Returns the last move into the current state. `None` if the issue was never moved. If the history does not match the state,
/// because the two may come from different moments, the mover is somebody whose words do not count.
fn last_move(node: &Node, people: &Accounts) -> Option<StateChange> {
    if let Some(last) = last_mover(node) {
        return Some(StateChange { at: time_of(&last.created_at)?, by: Some(actor(last, people)) });
    }
    let was_moved = lacks_history(node) || node.history.nodes.iter().any(|entry| entry.to_state_id.is_some());
    let nobody = || Author::new("somebody whom Linear does not name", TrustLevel::Stranger);
    was_moved.then(|| StateChange { at: Timestamp::default(), by: Some(nobody()) })
}

fn last_mover(node: &Node) -> Option<&HistoryNode> {
    if lacks_history(node) {
        return None;
    }
    let moves = node.history.nodes.iter().filter(|entry| entry.to_state_id.is_some());
    let last = moves.max_by(|a, b| a.created_at.cmp(&b.created_at))?;
    (last.to_state_id.as_ref() == Some(&node.state.id)).then_some(last)
}

/// Returns the author of a history entry. An integration that acts for a person counts as an integration.
fn actor(entry: &HistoryNode, people: &Accounts) -> Author {
    let bot = entry.bot_actor.as_ref().map(|bot| bot.name.as_deref().unwrap_or("an integration"));
    people.author(entry.actor_id.as_deref(), bot, None)
}

/// Returns who added each current label, as far as the history was read.
fn labelled(node: &Node, people: &Accounts) -> Vec<Labelled> {
    let newest = |id: &String| {
        let added = |entry: &&HistoryNode| entry.added_label_ids.as_ref().is_some_and(|ids| ids.contains(id));
        node.history.nodes.iter().filter(added).max_by(|a, b| a.created_at.cmp(&b.created_at))
    };
    let labels = node.labels.nodes.iter();
    let known = labels.filter_map(|label| newest(&label.id).map(|entry| (label.name.trim().to_lowercase(), entry)));
    known.map(|(label, entry)| Labelled { label, by: actor(entry, people), at: time_of(&entry.created_at) }).collect()
}

/// Returns a hash of everything that a sweep compares.
pub fn digest<'a>(
    updated_at: &str,
    state: &str,
    labels: &[String],
    relations: impl Iterator<Item = &'a String>,
) -> u64 {
    let mut labels: Vec<&String> = labels.iter().collect();
    labels.sort();
    let mut relations: Vec<&String> = relations.take(DIGESTED_RELATIONS).collect();
    relations.sort();
    let mut hasher = DefaultHasher::new();
    (updated_at, state, labels, relations).hash(&mut hasher);
    hasher.finish()
}

pub fn digest_of(node: &Node) -> u64 {
    let relations = node.inverse_relations.nodes.iter().map(|relation| &relation.id);
    digest(&node.updated_at, &node.state.id, &node.label_ids, relations)
}

/// Returns the time at which a comment of the ticket was last changed. `None` if the ticket does not show the comment.
pub fn comment_time(ticket: &Ticket, comment: &str) -> Option<Timestamp> {
    ticket.known_comments().iter().find(|known| known.id.as_str() == comment)?.updated_at
}
