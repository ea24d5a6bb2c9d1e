//! Everything the engine knows. Plain data without handles; what changed in a step is collected for the ledger.

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
    /// Everything else, which is small and kept as one record.
    pub meta: Meta,
    /// The kill-switch file, as last seen. Read from disk, never stored.
    pub switch_file: Option<Timestamp>,
    pub tracker: TrackerHealth,
    pub lanes: BTreeMap<Lane, LaneHealth>,
    pub base: Option<CommitId>,
    pub shutting_down: bool,
    /// Nothing is decided before the past is settled.
    pub recovered: bool,
    /// Jobs that the last list of the board did not have: nothing is started for them before they were asked for.
    pub unseen: BTreeSet<TicketId>,
    /// Jobs that the last list of the board did not have, whether or not they were asked for since.
    pub off_list: BTreeSet<TicketId>,
    /// Jobs whose last reading contradicts something of ours that is not visible yet, or is older than one before. They are
    /// asked for again; what lasts longer than [`SETTLE`] is believed.
    pub unsettled: BTreeMap<TicketId, Unsettled>,
    /// What a hint said these tickets have reached: older readings start nothing.
    pub floors: BTreeMap<TicketId, Timestamp>,
    /// What a hint said that looks will show: those without it merge nothing.
    pub pr_floors: Vec<PrFloor>,
    /// Jobs whose ticket the tracker does not show although it was asked for it.
    pub invisible: BTreeSet<TicketId>,
    /// Jobs of whose ticket a list showed something new, and not what was said on it: since that moment nothing is started for them
    /// before they were asked for.
    pub half_read: BTreeMap<TicketId, Moment>,
    /// What was asked before these moments is older than what is known of the ticket by now: our own move, or a later reading.
    pub read: BTreeMap<TicketId, Moment>,
    /// The same for lists of the board.
    pub listed: Moment,
    /// The same for pull requests.
    pub looked: BTreeMap<TicketId, Moment>,
    /// Pull requests whose last look was unsettled, and when they are looked at again.
    pub look_again: Timetable<TicketId>,
    /// Our last merge into the base branch: looks that were asked before it say nothing about what can be merged.
    pub base_written: Moment,
    /// Workpads that are out of date and rest for a while since they were last written.
    pub workpads: Timetable<TicketId>,
    /// What all workpads were last compared under.
    pub shown_under: ShownUnder,
    /// Jobs with a switch of their own that is on.
    pub switched: BTreeSet<TicketId>,
    /// What was true of all jobs when they were last settled, and when that was.
    pub settled_under: Option<Circumstances>,
    pub settled_at: Timestamp,
    pub day_is_spent: bool,
    /// When tickets whose directories are still there were last asked for.
    pub directories_asked_at: Timestamp,
    /// When the jobs that are over were last looked through.
    pub archived_at: Timestamp,
    /// Besides what the containers have marked themselves: see [`State::take_changes`].
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
    /// Spent by all runs since the ledger was made.
    pub total: Usage,
    pub total_run_ms: u64,
    /// The hash of the workflow that was in force last; unknown in older ledgers.
    #[serde(default)]
    pub workflow: Option<String>,
    /// Proves that a comment is ours; made with the ledger and never shown.
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
    /// It was used up, and nobody has got through since.
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
    /// Refused by the permit; goes on when the permit would allow it.
    Held { refusal: Refusal },
}

/// Since when a reading is in doubt. Only what was asked for after `moment` shows that it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsettled {
    pub since: Timestamp,
    pub moment: Moment,
}

/// A remark that somebody spoke of, until a look shows it. For [`SETTLE`] at most.
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
    /// Calls wait until then.
    pub paused_until: Option<Timestamp>,
    /// Our access was refused: a person has to mend it.
    pub locked_out: bool,
}

/// What workpads say that is not their job's own doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownUnder {
    pub paused_pools: BTreeSet<PoolName>,
    pub day_is_spent: bool,
}

/// How long a reading that contradicts our own confirmed write is taken for an old one.
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

    /// A new point in the order of everything. What is asked from now on is after it.
    pub fn next_moment(&mut self) -> Moment {
        let moment = Moment(self.meta.next_effect);
        self.meta.next_effect += 1;
        self.changes.meta = true;
        moment
    }

    /// What a question that leaves now is after.
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

    /// What the board's answers so far have not settled, beside what it will tell of changes.
    pub fn to_ask_for(&self) -> BTreeSet<TicketId> {
        let mut ids: BTreeSet<TicketId> = self.off_list.union(&self.invisible).cloned().collect();
        ids.extend(self.unsettled.keys().cloned());
        ids.extend(self.half_read.keys().cloned());
        ids
    }

    /// In a new life these are taken for missing until they were asked for.
    pub fn ask_for(&mut self, ids: BTreeSet<TicketId>) {
        self.unseen = ids.into_iter().filter(|id| self.jobs.contains(id)).collect();
        self.off_list.clone_from(&self.unseen);
    }

    /// Nothing is started for a ticket that the last reading did not show as it is.
    pub fn is_out_of_sight(&self, id: &TicketId) -> bool {
        self.unseen.contains(id)
            || self.invisible.contains(id)
            || self.half_read.contains_key(id)
            || self.floors.contains_key(id)
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
