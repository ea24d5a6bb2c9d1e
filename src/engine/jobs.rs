//! All jobs, and the one way to change one.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::TicketId;
use crate::domain::job::Job;
use crate::domain::usage::Usage;

/// The jobs by ticket. Nobody gets hold of a job to change it but through [`Jobs::edit`], so that whatever depends on a job can
/// be kept up to date in one place.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    all: BTreeMap<TicketId, Job>,
    /// Changed since the ledger was last told.
    changed: BTreeSet<TicketId>,
    /// Changed since the last settling.
    dirty: BTreeSet<TicketId>,
}

/// What is still to be written or settled is no part of what the jobs are.
impl PartialEq for Jobs {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Jobs {
    pub fn get(&self, id: &TicketId) -> Option<&Job> {
        self.all.get(id)
    }

    pub fn contains(&self, id: &TicketId) -> bool {
        self.all.contains_key(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&TicketId, &Job)> {
        self.all.iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &TicketId> {
        self.all.keys()
    }

    pub fn values(&self) -> impl Iterator<Item = &Job> {
        self.all.values()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A job that the ledger does not know yet.
    pub fn insert(&mut self, job: Job) {
        let id = job.ticket.id.clone();
        self.all.insert(id.clone(), job);
        self.mark(&id);
    }

    pub fn remove(&mut self, id: &TicketId) -> Option<Job> {
        self.changed.remove(id);
        self.dirty.remove(id);
        self.all.remove(id)
    }

    /// Changes a job. One that is different afterwards is written down and settled.
    pub fn edit<R>(&mut self, id: &TicketId, change: impl FnOnce(&mut Job) -> R) -> Option<R> {
        let job = self.all.get_mut(id)?;
        let before = job.clone();
        let answer = change(job);
        if *job != before {
            self.mark(id);
        }
        Some(answer)
    }

    /// Counts what a live run uses. It reaches the ledger with the run's next checkpoint, and nothing is settled by it.
    pub fn spend(&mut self, id: &TicketId, usage: Usage) {
        if let Some(job) = self.all.get_mut(id) {
            job.spending.total += usage;
            job.spending.since_reset += usage;
        }
    }

    fn mark(&mut self, id: &TicketId) {
        self.changed.insert(id.clone());
        self.dirty.insert(id.clone());
    }

    /// What the ledger has to be told.
    pub(super) fn take_changed(&mut self) -> BTreeSet<TicketId> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn take_dirty(&mut self) -> BTreeSet<TicketId> {
        std::mem::take(&mut self.dirty)
    }
}

/// The jobs of a ledger: nothing of them has to be written, and all of them have to be settled.
impl FromIterator<Job> for Jobs {
    fn from_iter<I: IntoIterator<Item = Job>>(jobs: I) -> Self {
        let all: BTreeMap<TicketId, Job> = jobs.into_iter().map(|job| (job.ticket.id.clone(), job)).collect();
        let dirty = all.keys().cloned().collect();
        Self { all, changed: BTreeSet::new(), dirty }
    }
}

impl<'a> IntoIterator for &'a Jobs {
    type Item = (&'a TicketId, &'a Job);
    type IntoIter = std::collections::btree_map::Iter<'a, TicketId, Job>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl std::ops::Index<&TicketId> for Jobs {
    type Output = Job;

    fn index(&self, id: &TicketId) -> &Job {
        &self.all[id]
    }
}
