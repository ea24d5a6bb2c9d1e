//! All jobs, and the one way to change a job.

mod index;
mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::relations::Relations;
use super::select::Rank;
use crate::domain::ids::TicketId;
use crate::domain::job::Job;
use crate::domain::usage::Usage;

pub use index::JobIndex;
pub use line::StartLine;
use line::{PlaceInLine, StartLines};

/// The jobs by ticket. The only way to change one is [`Jobs::edit`], which keeps everything that depends on the job up to date. So the cost
/// of an event depends on what it touches, not on how many jobs there are.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    all: BTreeMap<TicketId, Filed>,
    index: JobIndex,
    relations: Relations,
    lines: StartLines,
    /// Jobs that changed since changes were last taken for the ledger.
    changed: BTreeSet<TicketId>,
    /// Jobs to be settled: they have changed, or something that they depend on has.
    dirty: BTreeSet<TicketId>,
    /// Jobs that changed since the board was last read. The same reading may now mean something else for them.
    unread: BTreeSet<TicketId>,
}

#[derive(Debug, Clone)]
struct Filed {
    job: Arc<Job>,
    place: Option<Box<PlaceInLine>>,
}

/// Two sets of jobs are equal if the jobs are. What is still to be written or settled does not count.
impl PartialEq for Jobs {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Jobs {
    pub fn get(&self, id: &TicketId) -> Option<&Job> {
        self.all.get(id).map(|filed| &*filed.job)
    }

    /// Returns the job as it is now, for a caller that keeps it while the state changes.
    pub fn share(&self, id: &TicketId) -> Option<Arc<Job>> {
        self.all.get(id).map(|filed| Arc::clone(&filed.job))
    }

    pub fn contains(&self, id: &TicketId) -> bool {
        self.all.contains_key(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&TicketId, &Job)> {
        self.all.iter().map(|(id, filed)| (id, &*filed.job))
    }

    pub fn keys(&self) -> impl Iterator<Item = &TicketId> {
        self.all.keys()
    }

    pub fn values(&self) -> impl Iterator<Item = &Job> {
        self.all.values().map(|filed| &*filed.job)
    }

    /// Returns each job as it is now, for a caller that keeps it while the state changes.
    pub fn shared(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.all.values().map(|filed| &filed.job)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Inserts a job that the ledger does not know yet. It replaces one of the same ticket.
    pub fn insert(&mut self, job: Job) {
        let id = job.ticket.id.clone();
        self.remove(&id);
        self.file(job);
        self.mark_changed(&id);
    }

    /// Takes back a job that the ledger has archived, as it was.
    pub(super) fn recall(&mut self, job: Job) {
        let id = job.ticket.id.clone();
        self.file(job);
        self.mark_dirty(&id);
    }

    pub fn remove(&mut self, id: &TicketId) -> Option<Arc<Job>> {
        self.leave_line(id);
        let filed = self.all.remove(id)?;
        self.index.unfile(&filed.job);
        self.relations.remove(&filed.job);
        for marks in [&mut self.changed, &mut self.dirty, &mut self.unread] {
            marks.remove(id);
        }
        Some(filed.job)
    }

    /// Changes a job. If it is different afterwards, it is indexed again, marked for the ledger and marked to be settled.
    pub fn edit<R>(&mut self, id: &TicketId, change: impl FnOnce(&mut Job) -> R) -> Option<R> {
        let filed = self.all.get_mut(id)?;
        let mut job = Job::clone(&filed.job);
        let answer = change(&mut job);
        job.tidy();
        if job == *filed.job {
            return Some(answer);
        }
        let before = std::mem::replace(&mut filed.job, Arc::new(job));
        self.index.refile(&before, &filed.job);
        self.relations.change(&before, &filed.job);
        self.mark_changed(id);
        Some(answer)
    }

    /// Adds usage of a live run. It reaches the ledger with the run's next checkpoint, and the job is not settled because of it.
    pub fn spend(&mut self, id: &TicketId, usage: Usage) {
        if let Some(filed) = self.all.get_mut(id) {
            let job = Arc::make_mut(&mut filed.job);
            job.spending.total += usage;
            job.spending.since_reset += usage;
        }
    }

    fn file(&mut self, job: Job) {
        let id = job.ticket.id.clone();
        self.index.file(&job);
        self.relations.insert(&job);
        self.all.insert(id, Filed { job: Arc::new(job), place: None });
    }

    fn mark_changed(&mut self, id: &TicketId) {
        self.changed.insert(id.clone());
        self.unread.insert(id.clone());
        self.mark_dirty(id);
    }

    /// Marks a job to be settled because something that it depends on has changed.
    pub(super) fn mark_dirty(&mut self, id: &TicketId) {
        if self.all.contains_key(id) {
            self.leave_line(id);
            self.dirty.insert(id.clone());
        }
    }

    pub(super) fn mark_all_dirty(&mut self) {
        let ids: Vec<TicketId> = self.all.keys().cloned().collect();
        for id in &ids {
            self.mark_dirty(id);
        }
    }

    /// Takes the jobs that have to be written to the ledger.
    pub(super) fn take_changed(&mut self) -> BTreeSet<TicketId> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub(super) fn take_dirty(&mut self) -> BTreeSet<TicketId> {
        std::mem::take(&mut self.dirty)
    }

    /// Takes the jobs that changed since the last reading of the board.
    pub(super) fn take_unread(&mut self) -> BTreeSet<TicketId> {
        std::mem::take(&mut self.unread)
    }

    pub(super) fn was_read(&mut self, id: &TicketId) {
        self.unread.remove(id);
    }

    pub fn index(&self) -> &JobIndex {
        &self.index
    }

    pub(super) fn relations(&self) -> &Relations {
        &self.relations
    }

    /// Finds dependency cycles and chains again, if the relations between tickets have changed.
    pub(super) fn settle_relations(&mut self, count_chains: bool) {
        if !self.relations.is_due(count_chains) {
            return;
        }
        let mut relations = std::mem::take(&mut self.relations);
        let concerned = relations.settle(self, count_chains);
        self.relations = relations;
        for id in &concerned {
            self.mark_dirty(id);
        }
    }

    /// Puts a job that could start now in line. Any change of the job takes it out of the line.
    pub(super) fn line_up(&mut self, id: &TicketId, line: StartLine, rank: Rank) {
        self.leave_line(id);
        if let Some(filed) = self.all.get_mut(id) {
            filed.place = Some(Box::new(self.lines.enter(line, rank, id)));
        }
    }

    pub(super) fn leave_line(&mut self, id: &TicketId) {
        if let Some(place) = self.all.get_mut(id).and_then(|filed| filed.place.take()) {
            self.lines.leave(*place, id);
        }
    }

    /// Returns the job that comes first in the lines that are open.
    pub(super) fn first_in_line(&self, open: impl FnMut(&StartLine) -> bool) -> Option<&TicketId> {
        self.lines.first(open)
    }

    /// Returns the lines that are not empty.
    pub fn lines(&self) -> impl Iterator<Item = &StartLine> {
        self.lines.iter()
    }

    pub fn is_anybody_in_line(&self) -> bool {
        !self.lines.is_empty()
    }
}

/// Collects the jobs of a ledger: none of them has to be written, and all of them have to be settled.
impl FromIterator<Job> for Jobs {
    fn from_iter<I: IntoIterator<Item = Job>>(jobs: I) -> Self {
        let mut all = Self::default();
        for job in jobs {
            let id = job.ticket.id.clone();
            all.file(job);
            all.mark_dirty(&id);
            // In this life nothing was read yet.
            all.unread.insert(id);
        }
        all
    }
}

impl std::ops::Index<&TicketId> for Jobs {
    type Output = Job;

    fn index(&self, id: &TicketId) -> &Job {
        &self.all[id].job
    }
}
