//! The live runs, with their deadlines and the number of runs per column.

use std::collections::{BTreeMap, BTreeSet};

use super::timetable::Timetable;
use crate::domain::ids::RunId;
use crate::domain::run::LiveRun;
use crate::domain::time::Timestamp;

#[derive(Debug, Clone, Default)]
pub struct Runs {
    all: BTreeMap<RunId, LiveRun>,
    /// The number of runs by the column of their tickets.
    in_state: BTreeMap<String, usize>,
    /// When each run is to be looked at again: see `limits`.
    due: Timetable<RunId>,
    /// Runs that changed since changes were last taken for the ledger.
    changed: BTreeSet<RunId>,
    /// Runs whose deadlines have to be worked out again.
    dirty: BTreeSet<RunId>,
}

impl PartialEq for Runs {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

/// Returns the form in which columns are compared: trimmed, in lower case.
pub fn column(state: &str) -> String {
    state.trim().to_lowercase()
}

impl Runs {
    pub fn get(&self, id: &RunId) -> Option<&LiveRun> {
        self.all.get(id)
    }

    pub fn contains(&self, id: &RunId) -> bool {
        self.all.contains_key(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&RunId, &LiveRun)> {
        self.all.iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &RunId> {
        self.all.keys()
    }

    pub fn values(&self) -> impl Iterator<Item = &LiveRun> {
        self.all.values()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns how many runs are live for tickets of this column: see [`column()`].
    pub fn in_column(&self, column: &str) -> usize {
        self.in_state.get(column).copied().unwrap_or(0)
    }

    pub fn insert(&mut self, run: LiveRun) {
        let id = run.id.clone();
        self.remove(&id);
        self.file(run);
        self.changed.insert(id);
    }

    pub fn remove(&mut self, id: &RunId) -> Option<LiveRun> {
        let run = self.all.remove(id)?;
        self.count(&run.ticket_state, false);
        self.due.remove(id);
        self.dirty.remove(id);
        self.changed.insert(id.clone());
        Some(run)
    }

    /// Changes a run and marks it to be written to the ledger.
    pub fn edit<R>(&mut self, id: &RunId, change: impl FnOnce(&mut LiveRun) -> R) -> Option<R> {
        let answer = self.progress(id, change)?;
        self.changed.insert(id.clone());
        Some(answer)
    }

    /// Changes data of a run that changes all the time. It reaches the ledger with the next checkpoint.
    pub fn progress<R>(&mut self, id: &RunId, change: impl FnOnce(&mut LiveRun) -> R) -> Option<R> {
        let run = self.all.get_mut(id)?;
        let before = run.ticket_state.clone();
        let answer = change(run);
        let after = run.ticket_state.clone();
        if before != after {
            self.count(&before, false);
            self.count(&after, true);
        }
        self.dirty.insert(id.clone());
        Some(answer)
    }

    fn file(&mut self, run: LiveRun) {
        self.count(&run.ticket_state, true);
        self.dirty.insert(run.id.clone());
        self.all.insert(run.id.clone(), run);
    }

    fn count(&mut self, state: &str, one_more: bool) {
        let column = column(state);
        let known = self.in_column(&column);
        match if one_more { known + 1 } else { known.saturating_sub(1) } {
            0 => self.in_state.remove(&column),
            count => self.in_state.insert(column, count),
        };
    }

    /// Takes the runs that have to be written to the ledger.
    pub(super) fn take_changed(&mut self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn take_dirty(&mut self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.dirty)
    }

    pub(super) fn mark_dirty(&mut self, id: &RunId) {
        if self.all.contains_key(id) {
            self.dirty.insert(id.clone());
        }
    }

    pub(super) fn set_due(&mut self, id: &RunId, at: Option<Timestamp>) {
        if self.all.contains_key(id) {
            self.due.set(id, at);
        }
    }

    pub(super) fn due(&self) -> &Timetable<RunId> {
        &self.due
    }
}

/// Collects the runs of a ledger: none of them has to be written.
impl FromIterator<LiveRun> for Runs {
    fn from_iter<I: IntoIterator<Item = LiveRun>>(runs: I) -> Self {
        let mut all = Self::default();
        for run in runs {
            all.file(run);
        }
        all
    }
}
