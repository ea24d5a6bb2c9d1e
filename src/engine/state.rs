//! Everything that the engine knows. Plain data without handles; the changes of a step are collected for the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::jobs::Jobs;
use super::outbox_store::Outbox;
use super::permit::{Circumstances, Refusal};
use super::run_store::Runs;
use super::timetable::Timetable;
use crate::domain::basis::Moment;
use crate::domain::hint::RemarkId;
use crate::domain::ids::{CommitId, EffectId, PoolName, PrNumber, RunId, TicketId};
use crate::domain::job::{Job, Pause, SwitchSource};
use crate::domain::lane::Lane;
use crate::domain::run::FinishedRun;
use crate::domain::time::Timestamp;
use crate::domain::usage::{RateLimit, Usage};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub jobs: Jobs,
    pub runs: Runs,
    pub outbox: Outbox,
    /// Everything else that is stored, which is small and kept as one record.
    pub meta: Meta,
    /// Since when the kill-switch file has been there, as last seen. Read from disk, never stored.
    pub switch_file: Option<Timestamp>,
    pub tracker: TrackerHealth,
    pub lanes: BTreeMap<Lane, LaneHealth>,
    pub base: Option<CommitId>,
    pub shutting_down: bool,
    /// Whether recovery is complete. Nothing is decided before.
    pub recovered: bool,
    /// Jobs that the last list of the board did not include. Nothing is started for them until their tickets were read by id.
    pub unseen: BTreeSet<TicketId>,
    /// Jobs that the last list of the board did not include, whether or not they were read since.
    pub off_list: BTreeSet<TicketId>,
    /// Jobs whose last reading contradicts a write of the runner that is not visible yet, or is older than a previous reading. They are
    /// read again; a reading that lasts longer than [`SETTLE`] is believed.
    pub unsettled: BTreeMap<TicketId, Unsettled>,
    /// The times of change that hints reported for these tickets. Older readings start nothing.
    pub floors: BTreeMap<TicketId, Timestamp>,
    /// Remarks that hints reported. Looks without them merge nothing.
    pub pr_floors: Vec<PrFloor>,
    /// Jobs whose ticket the tracker does not show although it was asked for it by id.
    pub invisible: BTreeSet<TicketId>,
    /// Jobs of whose ticket a list showed something new, but not the comments, and the moment of that list. Nothing is started for them
    /// until they were read by id.
    pub half_read: BTreeMap<TicketId, Moment>,
    /// Readings of a ticket that were asked for before this moment are outdated, because of the runner's own move or a later reading.
    pub read: BTreeMap<TicketId, Moment>,
    /// The same for lists of the board.
    pub listed: Moment,
    /// The same for pull requests.
    pub looked: BTreeMap<TicketId, Moment>,
    /// Pull requests whose last look was unsettled, and when they are looked at again.
    pub look_again: Timetable<TicketId>,
    /// The runner's last merge into the base branch. Looks that were asked before it say nothing about what can be merged.
    pub base_written: Moment,
    /// Workpads that are out of date, and when they may be written again.
    pub workpads: Timetable<TicketId>,
    /// The common circumstances under which all workpads were last compared.
    pub shown_under: ShownUnder,
    /// Jobs with a switch of their own that is on.
    pub switched: BTreeSet<TicketId>,
    /// What was true for all jobs when they were last settled. `settled_at` is when that was.
    pub settled_under: Option<Circumstances>,
    pub settled_at: Timestamp,
    pub day_is_spent: bool,
    /// When tickets whose directories still exist were last read.
    pub directories_asked_at: Timestamp,
    /// When the jobs that are over were last looked through.
    pub archived_at: Timestamp,
    /// Changes besides those that the containers note themselves: see [`State::take_changes`].
    pub changes: Changes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Random when the ledger is made. Run ids and jitter come from it, so that the engine needs no randomness.
    pub seed: u64,
    pub next_effect: u64,
    pub next_run: u64,
    pub pause_all: Option<Pause>,
    pub pools: BTreeMap<PoolName, Pool>,
    pub daily: Daily,
    /// Usage of all runs since the ledger was made.
    pub total: Usage,
    pub total_run_ms: u64,
    /// The hash of the workflow that was last in force; unknown in older ledgers.
    #[serde(default)]
    pub workflow: Option<String>,
    /// The secret that proves that a comment is the runner's. Made with the ledger and never shown.
    #[serde(default)]
    pub comment_key: String,
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
            comment_key: String::new(),
        }
    }
}

/// A credential pool and its usage limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub paused_until: Option<Timestamp>,
    /// How often in a row the reset time had to be guessed.
    pub guesses: u32,
    /// Whether the usage limit was reached and no run has got through since.
    #[serde(default)]
    pub limited: bool,
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
    /// Refused by the permit. It is sent when the permit would allow it.
    Held { refusal: Refusal },
}

/// Since when a reading is in doubt. Only readings that are asked for after `moment` show whether it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsettled {
    pub since: Timestamp,
    pub moment: Moment,
}

/// A remark that a hint reported, kept until a look shows it, for [`SETTLE`] at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrFloor {
    pub number: PrNumber,
    pub remark: RemarkId,
    pub since: Timestamp,
}

/// How the calls of one lane go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneHealth {
    pub last_ok: Option<Timestamp>,
    pub last_error: Option<String>,
    /// Until when calls wait.
    pub paused_until: Option<Timestamp>,
    /// Whether the runner's access was refused, so that a person has to restore it.
    pub locked_out: bool,
}

/// What workpads show that is not their job's own doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownUnder {
    pub paused_pools: BTreeSet<PoolName>,
    pub day_is_spent: bool,
}

/// How long a reading that contradicts the runner's own confirmed write is taken for outdated.
pub const SETTLE: Duration = Duration::from_secs(60);
/// How soon an unsettled pull request is looked at again.
pub const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

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

/// What has to be written to the ledger before the effects of a step happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    pub jobs: BTreeSet<TicketId>,
    /// Jobs that are over and have left the state, as they were then. Their records stay in the ledger. A job that comes back into the
    /// state is not archived any more.
    pub archived: BTreeMap<TicketId, Job>,
    pub runs: BTreeSet<RunId>,
    pub finished: Vec<FinishedRun>,
    pub outbox: BTreeSet<EffectId>,
    pub meta: bool,
    pub notes: Vec<Note>,
    /// Whether usage or last activity changed, which may be written a little later.
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

    /// Returns a new point in the order of everything. Requests that are sent from now on are after it.
    pub fn next_moment(&mut self) -> Moment {
        let moment = Moment(self.meta.next_effect);
        self.meta.next_effect += 1;
        self.changes.meta = true;
        moment
    }

    /// Returns the moment that a request which is sent now is after.
    pub fn moment(&self) -> Moment {
        Moment(self.meta.next_effect)
    }

    pub fn take_changes(&mut self) -> Changes {
        let mut changes = std::mem::take(&mut self.changes);
        changes.jobs.extend(self.jobs.take_changed());
        changes.runs.extend(self.runs.take_changed());
        changes.outbox.extend(self.outbox.take_changed());
        changes
    }

    /// Returns the tickets that the board's answers so far have not settled, and that a list of changes would not include.
    pub fn to_ask_for(&self) -> BTreeSet<TicketId> {
        let mut ids: BTreeSet<TicketId> = self.off_list.union(&self.invisible).cloned().collect();
        ids.extend(self.unsettled.keys().cloned());
        ids.extend(self.half_read.keys().cloned());
        ids
    }

    /// Marks these tickets as missing from the list in a new life, until they were read by id.
    pub fn ask_for(&mut self, ids: BTreeSet<TicketId>) {
        self.unseen = ids.into_iter().filter(|id| self.jobs.contains(id)).collect();
        self.off_list.clone_from(&self.unseen);
    }

    /// Whether the last reading did not show the ticket as it is, so that nothing is started for it.
    pub fn is_out_of_sight(&self, id: &TicketId) -> bool {
        self.unseen.contains(id)
            || self.invisible.contains(id)
            || self.half_read.contains_key(id)
            || self.floors.contains_key(id)
    }

    /// Returns the switch that stops everything, if one is on.
    pub fn global_switch(&self) -> Option<SwitchSource> {
        if self.switch_file.is_some() {
            return Some(SwitchSource::File);
        }
        self.meta.pause_all.as_ref().map(|_| SwitchSource::PauseAll)
    }

    /// Returns the first switch that stops this job, if one is on.
    pub fn switch_for(&self, job: &Job, label: Option<&str>) -> Option<SwitchSource> {
        self.global_switch().or_else(|| job_switch(job, label))
    }
}

/// Returns the switch that stops this job alone, if one is on.
pub fn job_switch(job: &Job, label: Option<&str>) -> Option<SwitchSource> {
    if job.people.pause.is_some() {
        return Some(SwitchSource::PauseTicket);
    }
    let label = label?;
    if job.ticket.labels.iter().any(|l| l == label) {
        return Some(SwitchSource::TicketLabel);
    }
    let on_pr = job.delivery.pr.as_ref().is_some_and(|pr| pr.labels.iter().any(|l| l == label));
    on_pr.then_some(SwitchSource::PrLabel)
}
