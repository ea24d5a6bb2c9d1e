//! The part of a ticket that decisions depend on. The texts stay in the tracker.

use serde::{Deserialize, Serialize};

use crate::domain::comment::{Author, Comment, text_version};
use crate::domain::hash::stable_hash;
use crate::domain::ids::{TicketId, TicketKey};
use crate::domain::remark::RemarkKey;
use crate::domain::ticket::{Blocker, Dispatchable, History, StateChange, Ticket};
use crate::domain::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketFacts {
    pub id: TicketId,
    pub key: TicketKey,
    pub title: String,
    /// A hash of the title and the text.
    #[serde(default)]
    pub text_hash: u64,
    pub state: String,
    #[serde(default)]
    pub state_changed: Option<StateChange>,
    pub priority: Option<i64>,
    pub labels: Vec<String>,
    pub blocked_by: Vec<Blocker>,
    pub parent: Option<TicketId>,
    pub author: Option<Author>,
    pub assignee: Option<String>,
    pub url: Option<String>,
    pub dispatchable: Dispatchable,
    /// The history from the last reading that included it.
    #[serde(default)]
    pub history: History,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    /// Hashes of the comments that were taken in, each with its version. Any other comment or version is new.
    #[serde(default)]
    pub known_comments: Vec<u64>,
    /// Comments up to this time count as known: an older version of Dirigent took them in without recording each.
    #[serde(default)]
    pub known_until: Option<Timestamp>,
    /// Whether only a list has shown the ticket so far, and its comments have not been read.
    #[serde(default)]
    pub unheard: bool,
    /// Whether the ticket was moved and no reading has told yet by whom.
    #[serde(default)]
    pub mover_unread: bool,
    /// A hash of the comments that trusted people wrote.
    #[serde(default)]
    pub trusted_comments: u64,
}

impl TicketFacts {
    /// Returns the facts of a ticket without its comments, which are taken in one by one.
    pub fn of(ticket: &Ticket) -> Self {
        Self {
            id: ticket.id.clone(),
            key: ticket.key.clone(),
            title: ticket.title.clone(),
            text_hash: stable_hash(&[&ticket.title, ticket.description.as_deref().unwrap_or_default()]),
            state: ticket.state.clone(),
            state_changed: ticket.state_changed.clone(),
            priority: ticket.priority,
            labels: ticket.labels.clone(),
            blocked_by: ticket.blocked_by.clone(),
            parent: ticket.parent.clone(),
            author: ticket.author.clone(),
            assignee: ticket.assignee.clone(),
            url: ticket.url.clone(),
            dispatchable: ticket.dispatchable.clone(),
            history: ticket.history.clone(),
            created_at: ticket.created_at,
            updated_at: ticket.updated_at,
            known_comments: Vec::new(),
            known_until: None,
            unheard: ticket.comments.is_none(),
            mover_unread: false,
            trusted_comments: 0,
        }
    }

    pub fn knows(&self, comment: &Comment) -> bool {
        let is_old = self.known_until.is_some() && comment.created_at.is_some_and(|at| Some(at) <= self.known_until);
        is_old || self.known_comments.contains(&comment_hash(comment))
    }

    pub fn take_in(&mut self, comment: &Comment) {
        self.remember(comment_hash(comment));
    }

    /// Marks as known a comment that a run's prompt carried before any reading brought it, so that it is not new when a reading does.
    pub fn deliver_early(&mut self, key: &RemarkKey) {
        self.remember(stable_hash(&[key.id.as_str(), &key.version]));
    }

    pub fn has_taken_in(&self, key: &RemarkKey) -> bool {
        self.known_comments.contains(&stable_hash(&[key.id.as_str(), &key.version]))
    }

    fn remember(&mut self, hash: u64) {
        if !self.known_comments.contains(&hash) {
            self.known_comments.push(hash);
        }
    }
}

/// Returns the hash of a comment in one version.
fn comment_hash(comment: &Comment) -> u64 {
    stable_hash(&[comment.id.as_str(), &text_version(&comment.body)])
}
