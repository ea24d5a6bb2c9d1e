//! What a ledger would hold: only what was committed. A crash brings back this and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use dirigent::domain::basis::Basis;
use dirigent::domain::ids::{EffectId, RunId, TicketId};
use dirigent::domain::job::Job;
use dirigent::domain::run::LiveRun;
use dirigent::domain::ticket::Ticket;
use dirigent::engine::state::{Changes, Meta, Pending, State};

#[derive(Default)]
pub struct Ledger {
    jobs: BTreeMap<TicketId, Job>,
    archived: BTreeMap<TicketId, Job>,
    runs: BTreeMap<RunId, LiveRun>,
    outbox: BTreeMap<EffectId, Pending>,
    meta: Meta,
    /// How far the board has been read.
    pub board: Option<BoardRead>,
    /// A full disk: nothing is taken.
    pub full: bool,
}

/// What a mark of the board stands for.
#[derive(Clone)]
pub struct BoardRead {
    pub told: BTreeMap<TicketId, Ticket>,
    pub basis: Basis,
    pub ask_for: BTreeSet<TicketId>,
}

impl Ledger {
    pub fn new(meta: Meta) -> Self {
        Self { meta, ..Self::default() }
    }

    pub fn commit(&mut self, state: &State, changes: &Changes) {
        for id in &changes.jobs {
            if let Some(job) = state.jobs.get(id) {
                self.jobs.insert(id.clone(), job.clone());
                self.archived.remove(id);
            }
        }
        for (id, job) in changes.archived.iter().filter(|(id, _)| !state.jobs.contains(id)) {
            self.jobs.remove(id);
            self.archived.insert(id.clone(), job.clone());
        }
        for id in &changes.runs {
            match state.runs.get(id) {
                Some(run) => self.runs.insert(id.clone(), run.clone()),
                None => self.runs.remove(id),
            };
        }
        for id in &changes.outbox {
            match state.outbox.get(id) {
                Some(pending) => self.outbox.insert(*id, pending.clone()),
                None => self.outbox.remove(id),
            };
        }
        if changes.meta || changes.soft {
            self.meta.clone_from(&state.meta);
        }
    }

    /// The archived jobs of these tickets.
    pub fn archived(&self, ids: &[TicketId]) -> Vec<Job> {
        ids.iter().filter_map(|id| self.archived.get(id).or_else(|| self.jobs.get(id))).cloned().collect()
    }

    /// What is written down and not confirmed.
    pub fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.outbox.values()
    }

    /// The state that a new life begins with.
    pub fn reopened(&self) -> State {
        State {
            jobs: self.jobs.values().cloned().collect(),
            runs: self.runs.values().cloned().collect(),
            outbox: self.outbox.values().cloned().collect(),
            ..State::new(self.meta.clone())
        }
    }

    /// What the engine changed without saying so: a crash would forget it.
    pub fn lacks(&self, state: &State) -> Option<String> {
        for (id, job) in state.jobs.iter() {
            // Usage and last activity of live runs are checkpointed a little later.
            if job.stage.run().is_none() && self.jobs.get(id).or_else(|| self.archived.get(id)) != Some(job) {
                return Some(format!("{id} was changed and not marked"));
            }
        }
        if !self.runs.keys().eq(state.runs.keys()) {
            return Some("runs were changed and not marked".into());
        }
        (!self.outbox.iter().eq(state.outbox.iter())).then(|| "the outbox was changed and not marked".into())
    }
}
