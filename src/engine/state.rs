//! Everything the engine knows. Plain data without handles; what changed in a step is collected for the ledger.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::permit::Refusal;
use crate::domain::ids::{CommitId, EffectId, PoolName, RunId, TicketId};
use crate::domain::job::{Job, Pause, SwitchSource};
use crate::domain::run::{FinishedRun, LiveRun};
use crate::domain::time::Timestamp;
use crate::domain::usage::{RateLimit, Usage};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub jobs: BTreeMap<TicketId, Job>,
    pub runs: BTreeMap<RunId, LiveRun>,
    pub outbox: BTreeMap<EffectId, Pending>,
    /// The small rest, kept as one record.
    pub meta: Meta,
    /// The kill-switch file, as last seen. Read from disk, never stored.
    pub switch_file: Option<Timestamp>,
    pub tracker: TrackerHealth,
    pub base: Option<CommitId>,
    pub shutting_down: bool,
    /// Nothing is decided before the past is settled.
    pub recovered: bool,
    /// Jobs that the last list of the board did not have: nothing is started for them before they were asked for.
    pub unseen: BTreeSet<TicketId>,
    /// Jobs that the last list of the board did not have, whether or not they were asked for since.
    pub off_list: BTreeSet<TicketId>,
    /// Jobs that we believe to stand otherwise than the last reading said: it looked old, or we have moved them since. A
    /// reading that lasts is believed, so these are asked for again.
    pub doubted: BTreeSet<TicketId>,
    /// Jobs that changed since their workpad was last compared with them.
    pub unshown: BTreeSet<TicketId>,
    pub changes: Changes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Random at the ledger's birth; run ids and jitter come from it, so that the engine needs no randomness.
    pub seed: u64,
    pub next_effect: u64,
    pub next_run: u64,
    pub pause_all: Option<Pause>,
    pub pools: BTreeMap<PoolName, Pool>,
    pub daily: Daily,
    /// Spent by all runs ever.
    pub total: Usage,
    pub total_run_ms: u64,
    /// The hash of the workflow that was in force last; none is known of older ledgers.
    #[serde(default)]
    pub workflow: Option<String>,
}

impl Default for Meta {
    fn default() -> Self {
        Self {
            seed: 0,
            next_effect: 1,
            next_run: 1,
            pause_all: None,
            pools: BTreeMap::new(),
            daily: Daily::default(),
            total: Usage::default(),
            total_run_ms: 0,
            workflow: None,
        }
    }
}

/// A credential pool and its usage limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub paused_until: Option<Timestamp>,
    /// How often in a row the reset time had to be guessed.
    pub guesses: u32,
    pub rate_limit: Option<RateLimit>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daily {
    pub day: i64,
    pub usage: Usage,
    pub run_ms: u64,
}

/// An effect that is written down and not confirmed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    pub effect: Effect,
    pub attempts: u32,
    pub status: PendingStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum PendingStatus {
    /// Handed to the runtime.
    InFlight,
    /// To be tried again.
    Due { at: Timestamp, last_error: String },
    /// Refused by the permit; goes on when the permit would allow it.
    Held { refusal: Refusal },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrackerHealth {
    pub last_ok: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// A decision, in words, for `explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub at: Timestamp,
    pub ticket: Option<TicketId>,
    pub run: Option<RunId>,
    pub code: String,
    pub text: String,
}

/// What has to be written before the effects of a step happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    pub jobs: BTreeSet<TicketId>,
    /// Jobs that are over and have left the state, as they were then. Their records stay in the ledger, and a job that comes
    /// back into the state is no longer archived.
    pub archived: BTreeMap<TicketId, Job>,
    pub runs: BTreeSet<RunId>,
    pub finished: Vec<FinishedRun>,
    pub outbox: BTreeSet<EffectId>,
    pub meta: bool,
    pub notes: Vec<Note>,
    /// Usage and last activity only: may be written a little later.
    pub soft: bool,
}

impl Changes {
    pub fn add(&mut self, more: Self) {
        for id in &more.jobs {
            self.archived.remove(id);
        }
        self.jobs.extend(more.jobs);
        self.archived.extend(more.archived);
        self.runs.extend(more.runs);
        self.finished.extend(more.finished);
        self.outbox.extend(more.outbox);
        self.notes.extend(more.notes);
        self.meta |= more.meta;
        self.soft |= more.soft;
    }

    /// Whether anything has to reach the ledger before the next effect.
    pub fn is_hard(&self) -> bool {
        !(self.jobs.is_empty()
            && self.archived.is_empty()
            && self.runs.is_empty()
            && self.finished.is_empty()
            && self.outbox.is_empty()
            && self.notes.is_empty()
            && !self.meta)
    }
}

impl State {
    pub fn new(meta: Meta) -> Self {
        Self { meta, ..Self::default() }
    }

    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// The switch that stops everything, if one is on.
    pub fn global_switch(&self) -> Option<SwitchSource> {
        if self.switch_file.is_some() {
            return Some(SwitchSource::File);
        }
        self.meta.pause_all.as_ref().map(|_| SwitchSource::PauseAll)
    }

    /// The first switch that stops this job, if one is on.
    pub fn switch_for(&self, job: &Job, label: Option<&str>) -> Option<SwitchSource> {
        self.global_switch().or_else(|| job_switch(job, label))
    }
}

/// The switch that stops this job alone.
pub fn job_switch(job: &Job, label: Option<&str>) -> Option<SwitchSource> {
    if job.pause.is_some() {
        return Some(SwitchSource::PauseTicket);
    }
    let label = label?;
    if job.ticket.labels.iter().any(|l| l == label) {
        return Some(SwitchSource::TicketLabel);
    }
    let on_pr = job.pr.as_ref().is_some_and(|pr| pr.labels.iter().any(|l| l == label));
    on_pr.then_some(SwitchSource::PrLabel)
}
