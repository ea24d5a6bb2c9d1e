//! The board itself, how it changes, and how a replica shows it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Fault;
use super::past::{Known, Past};
use crate::domain::comment::{Author, Comment, TrustLevel};
use crate::domain::ids::{CommentId, TicketId, TicketKey};
use crate::domain::ticket::{
    Blocker, Dispatchable, History, Labelled, NewTicket, StateChange, Ticket, normalise_labels, same_state, state_in,
};
use crate::domain::time::Timestamp;
use crate::tracker::{Account, Acknowledgement, Mark, TrackerError};

#[derive(Debug)]
pub(super) struct Board {
    tickets: BTreeMap<TicketId, Past>,
    /// Changed tickets whose hints were not sent yet.
    pub touched: BTreeSet<TicketId>,
    /// Tickets that the runner created, by their keys.
    pub keys: BTreeMap<String, TicketId>,
    unsaid: BTreeSet<CommentId>,
    made: u64,
    pub clock: Timestamp,
    pub tells_time: bool,
    pub reports_changes: bool,
    pub lists_comments: bool,
    pub faults: VecDeque<Fault>,
    pub calls: u64,
    pub outage: Option<TrackerError>,
    pub replicas: Vec<usize>,
    turn: usize,
    /// The person whose account the runner uses; `None` if it has its own.
    pub shared: Option<Author>,
    pub hidden: BTreeSet<TicketId>,
    pub unreadable: BTreeMap<TicketId, String>,
    pub listed_twice: BTreeSet<TicketId>,
    pub permissions: BTreeMap<String, TrustLevel>,
    pub reactions: Vec<(CommentId, Acknowledgement)>,
    pub links: BTreeMap<(TicketId, String), String>,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            tickets: BTreeMap::new(),
            touched: BTreeSet::new(),
            keys: BTreeMap::new(),
            unsaid: BTreeSet::new(),
            made: 0,
            clock: Timestamp(0),
            tells_time: false,
            reports_changes: false,
            lists_comments: true,
            faults: VecDeque::new(),
            calls: 0,
            outage: None,
            replicas: Vec::new(),
            turn: 0,
            shared: None,
            hidden: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            listed_twice: BTreeSet::new(),
            permissions: BTreeMap::new(),
            reactions: Vec::new(),
            links: BTreeMap::new(),
        }
    }
}

impl Board {
    pub fn account(&self) -> Account {
        match &self.shared {
            Some(person) => Account { login: person.name.clone(), shared_with_person: true },
            None => Account { login: Author::ourselves().name, shared_with_person: false },
        }
    }

    /// Returns the author of the runner's own writes.
    pub fn ourselves(&self) -> Author {
        self.shared.clone().unwrap_or_else(Author::ourselves)
    }

    pub fn person(&self) -> Author {
        self.shared.clone().unwrap_or_else(|| Author::new("somebody", TrustLevel::Admin))
    }

    pub fn newest(&self, id: &TicketId) -> Option<&Ticket> {
        self.tickets.get(id).and_then(Past::newest)
    }

    pub fn find(&self, id: &TicketId) -> Result<&Ticket, TrackerError> {
        self.newest(id).ok_or_else(|| TrackerError::NotFound(id.clone()))
    }

    pub fn put(&mut self, mut ticket: Ticket) {
        ticket.labels = normalise_labels(&ticket.labels);
        self.touched.insert(ticket.id.clone());
        self.tickets.entry(ticket.id.clone()).or_default().push(Some(ticket));
    }

    pub fn remove(&mut self, id: &TicketId) {
        if let Some(past) = self.tickets.get_mut(id).filter(|past| past.newest().is_some()) {
            past.push(None);
            self.touched.insert(id.clone());
        }
    }

    pub fn lag(&mut self, id: &TicketId, behind: usize) {
        self.tickets.entry(id.clone()).or_default().lag(behind);
    }

    pub fn catch_up(&mut self) {
        self.tickets.values_mut().for_each(Past::catch_up);
    }

    fn tick(&mut self) -> Timestamp {
        self.clock.0 += 1;
        self.clock
    }

    /// Applies one change by `by` to a ticket. A change that leaves the ticket as it was is not recorded.
    pub fn change<T>(
        &mut self,
        id: &TicketId,
        by: &Author,
        change: impl FnOnce(&mut Ticket, Timestamp) -> T,
    ) -> Option<T> {
        let at = self.tick();
        let past = self.tickets.get_mut(id)?;
        let before = past.newest()?;
        let mut after = before.clone();
        let told = change(&mut after, at);
        after.labels = normalise_labels(&after.labels);
        if after == *before {
            return Some(told);
        }
        if !same_state(&after.state, &before.state) && after.state_changed == before.state_changed {
            after.state_changed = Some(StateChange { at, by: Some(by.clone()) });
        }
        let labels = after.labels.clone();
        let labelled = &mut after.history.labelled;
        labelled.retain(|known| labels.contains(&known.label));
        for label in labels {
            if !before.labels.contains(&label) && !labelled.iter().any(|known| known.label == label) {
                labelled.push(Labelled { label, by: by.clone(), at: Some(at) });
            }
        }
        after.updated_at = Some(at);
        past.push(Some(after));
        self.touched.insert(id.clone());
        Some(told)
    }

    pub fn post(&mut self, id: &TicketId, author: Author, body: &str) -> CommentId {
        self.made += 1;
        let made = CommentId::new(format!("c{}", self.made));
        let by = author.clone();
        self.change(id, &by, |ticket, at| {
            ticket.comments.get_or_insert_default().push(Comment {
                id: made.clone(),
                author,
                body: body.to_owned(),
                created_at: Some(at),
                updated_at: None,
            });
        });
        made
    }

    pub fn reword(&mut self, id: &TicketId, comment: &CommentId, body: String) {
        let known =
            self.newest(id).and_then(|ticket| ticket.known_comments().iter().find(|known| known.id == *comment));
        let Some(by) = known.map(|known| known.author.clone()) else { return };
        self.change(id, &by, |ticket, at| {
            for known in ticket.comments.iter_mut().flatten().filter(|known| known.id == *comment) {
                if known.body != body {
                    (known.body, known.updated_at) = (body.clone(), Some(at));
                }
            }
        });
    }

    pub fn unsay(&mut self, id: &TicketId, comment: &CommentId) {
        let by = self.person();
        self.unsaid.insert(comment.clone());
        self.change(id, &by, |ticket, _| {
            if let Some(comments) = &mut ticket.comments {
                comments.retain(|known| known.id != *comment);
            }
        });
    }

    pub fn create(&mut self, new: &NewTicket) -> TicketId {
        self.made += 1;
        let id = TicketId::new(format!("new-{}", self.made));
        let blocker = |id: &TicketId| Blocker {
            id: id.clone(),
            key: self.newest(id).map_or_else(|| TicketKey::new(id.as_str()), |ticket| ticket.key.clone()),
            state: None,
            failed: false,
        };
        let blocked_by = new.blocked_by.iter().map(blocker).collect();
        let author = self.ourselves();
        let labels = normalise_labels(&new.labels);
        let at = self.tick();
        let put = |label: &String| Labelled { label: label.clone(), by: author.clone(), at: Some(at) };
        let history = History { labelled: labels.iter().map(put).collect(), ..History::default() };
        self.put(Ticket {
            id: id.clone(),
            key: TicketKey::new(id.as_str()),
            title: new.title.clone(),
            description: Some(new.description.clone()),
            priority: new.priority,
            state: "Todo".into(),
            branch_name: None,
            url: None,
            assignee: None,
            author: Some(author),
            labels,
            blocked_by,
            parent: new.parent.clone(),
            dispatchable: Dispatchable::Yes,
            created_at: Some(at),
            updated_at: Some(at),
            native_ref: None,
            comments: Some(Vec::new()),
            state_changed: None,
            history,
        });
        id
    }

    /// Returns the replica that serves the next reading.
    pub fn next_replica(&mut self) -> Replica<'_> {
        let behind = if self.replicas.is_empty() { 0 } else { self.replicas[self.turn % self.replicas.len()] };
        self.turn += 1;
        Replica { board: self, behind }
    }
}

/// The board as one replica shows it.
pub(super) struct Replica<'a> {
    pub board: &'a Board,
    behind: usize,
}

impl Replica<'_> {
    pub fn known(&self, id: &TicketId) -> Known<'_> {
        self.board.tickets.get(id).map_or(Known::Nothing, |past| past.at(past.reached(self.behind)))
    }

    /// Returns the ticket with the states of its blockers, as far as they are on this board.
    pub fn shown(&self, ticket: &Ticket) -> Ticket {
        let mut ticket = ticket.clone();
        for blocker in &mut ticket.blocked_by {
            if let Known::Ticket(other) = self.known(&blocker.id) {
                blocker.state = Some(other.state.clone());
            }
        }
        ticket
    }

    pub fn is_listed(&self, id: &TicketId) -> bool {
        !self.board.hidden.contains(id) && !self.board.unreadable.contains_key(id)
    }

    pub fn listing(&self, states: &[String]) -> Vec<Ticket> {
        let mut listing = Vec::new();
        for (id, past) in self.board.tickets.iter().filter(|(id, _)| self.is_listed(id)) {
            let reached = past.reached(self.behind);
            let twice = self.board.listed_twice.contains(id);
            let versions = [twice.then(|| past.at(reached.saturating_sub(1))), Some(past.at(reached))];
            for known in versions.into_iter().flatten() {
                if let Known::Ticket(ticket) = known
                    && state_in(&ticket.state, states)
                {
                    listing.push(self.listed(ticket));
                }
            }
        }
        listing
    }

    fn listed(&self, ticket: &Ticket) -> Ticket {
        let mut ticket = self.shown(ticket);
        if !self.board.lists_comments {
            ticket.comments = None;
        }
        ticket
    }

    /// Returns the tickets that changed since the mark, whatever state they are in now, and the mark of everything known by then.
    pub fn changed_since(&self, since: &Mark) -> (Vec<Ticket>, Mark) {
        let mut seen: BTreeMap<TicketId, usize> = serde_json::from_str(&since.0).unwrap_or_default();
        let mut changed = Vec::new();
        for (id, past) in self.board.tickets.iter().filter(|(id, _)| self.is_listed(id)) {
            let reached = past.reached(self.behind);
            // An older version from another replica is not a change.
            if reached > seen.get(id).copied().unwrap_or_default() {
                seen.insert(id.clone(), reached);
                if let Known::Ticket(ticket) = past.at(reached) {
                    changed.push(self.listed(ticket));
                }
            }
        }
        (changed, mark(&seen))
    }

    /// Returns the mark of what this replica shows now.
    pub fn mark(&self) -> Mark {
        let listed = self.board.tickets.iter().filter(|(id, _)| self.is_listed(id));
        mark(&listed.map(|(id, past)| (id.clone(), past.reached(self.behind))).collect())
    }

    pub fn was_unsaid(&self, comment: &CommentId) -> bool {
        self.board.unsaid.contains(comment)
    }
}

fn mark(seen: &BTreeMap<TicketId, usize>) -> Mark {
    Mark(serde_json::to_string(seen).unwrap_or_default())
}
