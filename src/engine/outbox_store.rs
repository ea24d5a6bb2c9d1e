//! The outbox: effects that are written down and not confirmed. Found by number, by ticket and by due time; held ones separately.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::Action;
use super::state::{Pending, PendingStatus};
use super::timetable::Timetable;
use crate::domain::ids::{EffectId, RunId, TicketId};

#[derive(Debug, Clone, Default)]
pub struct Outbox {
    all: BTreeMap<EffectId, Pending>,
    of_ticket: BTreeMap<TicketId, BTreeSet<EffectId>>,
    /// The starts of runs that have not been confirmed.
    starts: BTreeMap<RunId, EffectId>,
    due: Timetable<EffectId>,
    /// Effects to which the permit was refused.
    held: BTreeSet<EffectId>,
    /// Effects that changed since changes were last taken for the ledger.
    changed: BTreeSet<EffectId>,
}

/// Two outboxes are equal if their entries are. What is still to be written does not count.
impl PartialEq for Outbox {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Outbox {
    pub fn get(&self, id: &EffectId) -> Option<&Pending> {
        self.all.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&EffectId, &Pending)> {
        self.all.iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &EffectId> {
        self.all.keys()
    }

    pub fn values(&self) -> impl Iterator<Item = &Pending> {
        self.all.values()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the effects of this ticket, oldest first.
    pub fn of_ticket(&self, ticket: &TicketId) -> impl Iterator<Item = &Pending> {
        self.of_ticket.get(ticket).into_iter().flatten().filter_map(|id| self.all.get(id))
    }

    /// Returns the start of this run, if it has not been confirmed.
    pub fn start_of(&self, run: &RunId) -> Option<EffectId> {
        self.starts.get(run).copied()
    }

    pub fn insert(&mut self, pending: Pending) {
        let id = pending.effect.id;
        self.remove(id);
        self.file(pending);
        self.changed.insert(id);
    }

    pub fn remove(&mut self, id: EffectId) -> Option<Pending> {
        let pending = self.all.remove(&id)?;
        if let Some(ticket) = &pending.effect.ticket
            && let Some(ids) = self.of_ticket.get_mut(ticket)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.of_ticket.remove(ticket);
            }
        }
        if let Action::StartRun { run, .. } = &pending.effect.action {
            self.starts.remove(run);
        }
        self.due.remove(&id);
        self.held.remove(&id);
        self.changed.insert(id);
        Some(pending)
    }

    /// Changes the attempts and the status of an entry. The effect itself stays what it is.
    pub fn edit(&mut self, id: EffectId, change: impl FnOnce(&mut u32, &mut PendingStatus)) {
        let Some(entry) = self.all.get_mut(&id) else { return };
        change(&mut entry.attempts, &mut entry.status);
        let status = entry.status.clone();
        self.file_status(id, &status);
        self.changed.insert(id);
    }

    fn file_status(&mut self, id: EffectId, status: &PendingStatus) {
        self.due.set(
            &id,
            match status {
                PendingStatus::Due { at, .. } => Some(*at),
                PendingStatus::InFlight | PendingStatus::Held { .. } => None,
            },
        );
        match status {
            PendingStatus::Held { .. } => self.held.insert(id),
            PendingStatus::InFlight | PendingStatus::Due { .. } => self.held.remove(&id),
        };
    }

    /// Returns when failed effects are tried again.
    pub(super) fn due(&self) -> &Timetable<EffectId> {
        &self.due
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Pending> {
        self.held.iter().filter_map(|id| self.all.get(id))
    }

    fn file(&mut self, pending: Pending) {
        let id = pending.effect.id;
        if let Some(ticket) = &pending.effect.ticket {
            self.of_ticket.entry(ticket.clone()).or_default().insert(id);
        }
        if let Action::StartRun { run, .. } = &pending.effect.action {
            self.starts.insert(run.clone(), id);
        }
        self.file_status(id, &pending.status);
        self.all.insert(id, pending);
    }

    /// Takes the entries that have to be written to the ledger.
    pub(super) fn take_changed(&mut self) -> BTreeSet<EffectId> {
        std::mem::take(&mut self.changed)
    }
}

/// Collects the outbox of a ledger: none of it has to be written.
impl FromIterator<Pending> for Outbox {
    fn from_iter<I: IntoIterator<Item = Pending>>(entries: I) -> Self {
        let mut outbox = Self::default();
        for pending in entries {
            outbox.file(pending);
        }
        outbox
    }
}
