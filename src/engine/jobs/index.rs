//! Indexes that find jobs without looking at all of them. Everything here is derived from the jobs themselves.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::TicketId;
use crate::domain::job::{Job, MergeHold, Stage, Wait};
use crate::domain::phase::Phase;
use crate::domain::time::Timestamp;
use crate::engine::merge_line::TURN;
use crate::engine::timetable::Timetable;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobIndex {
    /// All jobs except the queued ones, which are many and stand in lines.
    by_phase: BTreeMap<Phase, BTreeSet<TicketId>>,
    queued: usize,
    retrying: usize,
    /// When jobs are due: retries, continuations, merges to be tried again, turns that run out.
    pub due: Timetable<TicketId>,
    /// Jobs ready to be merged; the one that has waited longest comes first.
    pub merge_queue: BTreeSet<(Timestamp, TicketId)>,
    /// Jobs whose turn to be merged has come.
    pub turns: BTreeSet<TicketId>,
    /// Jobs that are over; the one that has been over for longest comes first.
    pub over: BTreeSet<(Timestamp, TicketId)>,
    /// Jobs that are not over and have a pull request.
    pub with_pr: BTreeSet<TicketId>,
    /// Jobs whose branch was updated in their turn to be merged; the merge line waits for their checks.
    pub landing: BTreeSet<TicketId>,
    /// Jobs in the forge's own merge queue.
    pub forge_queue: BTreeSet<TicketId>,
    /// Queued jobs that were worked on before.
    pub begun: BTreeSet<TicketId>,
}

/// The values by which a job is indexed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Keys {
    phase: Phase,
    retrying: bool,
    due: Option<Timestamp>,
    ready_since: Option<Timestamp>,
    over_since: Option<Timestamp>,
    has_turn: bool,
    has_pr: bool,
    lands: bool,
    in_forge_queue: bool,
    begun: bool,
}

impl Keys {
    fn of(job: &Job) -> Self {
        let phase = job.stage.phase();
        let (mut due, mut ready_since, mut has_turn, mut retrying) = (None, None, false, false);
        match &job.stage {
            Stage::Queued { wait: Wait::Retry { due: at, .. } | Wait::Continuation { due: at }, .. } => {
                retrying = true;
                due = Some(*at);
            }
            Stage::ReadyToMerge { hold, turn, since, .. } => {
                ready_since = Some(*since);
                has_turn = turn.is_some();
                let tried_again = match hold {
                    MergeHold::Forge { retry_at, .. } => Some(*retry_at),
                    MergeHold::Queue => None,
                };
                due = tried_again.into_iter().chain(turn.map(|turn| turn.since + TURN)).min();
            }
            _ => {}
        }
        let has_pr = job.delivery.pr.is_some() && !phase.is_terminal();
        let begun = phase == Phase::Queued && job.attempts > 0;
        let over_since = phase.is_terminal().then(|| job.stage.since());
        let (lands, in_forge_queue) = (job.delivery.landing_since.is_some(), job.delivery.in_forge_queue);
        Self { phase, retrying, due, ready_since, over_since, has_turn, has_pr, lands, in_forge_queue, begun }
    }
}

impl JobIndex {
    pub fn file(&mut self, job: &Job) {
        self.put(&job.ticket.id, Keys::of(job));
    }

    pub fn unfile(&mut self, job: &Job) {
        self.take(&job.ticket.id, Keys::of(job));
    }

    pub fn refile(&mut self, before: &Job, after: &Job) {
        let (old, new) = (Keys::of(before), Keys::of(after));
        if old != new {
            self.take(&before.ticket.id, old);
            self.put(&after.ticket.id, new);
        }
    }

    fn put(&mut self, id: &TicketId, keys: Keys) {
        match keys.phase {
            Phase::Queued => self.queued += 1,
            phase => {
                self.by_phase.entry(phase).or_default().insert(id.clone());
            }
        }
        self.retrying += usize::from(keys.retrying);
        self.due.set(id, keys.due);
        if let Some(since) = keys.ready_since {
            self.merge_queue.insert((since, id.clone()));
        }
        if let Some(since) = keys.over_since {
            self.over.insert((since, id.clone()));
        }
        for (wanted, set) in self.sets(keys) {
            if wanted {
                set.insert(id.clone());
            }
        }
    }

    fn take(&mut self, id: &TicketId, keys: Keys) {
        match keys.phase {
            Phase::Queued => self.queued -= 1,
            phase => {
                if let Some(ids) = self.by_phase.get_mut(&phase) {
                    ids.remove(id);
                    if ids.is_empty() {
                        self.by_phase.remove(&phase);
                    }
                }
            }
        }
        self.retrying -= usize::from(keys.retrying);
        self.due.remove(id);
        if let Some(since) = keys.ready_since {
            self.merge_queue.remove(&(since, id.clone()));
        }
        if let Some(since) = keys.over_since {
            self.over.remove(&(since, id.clone()));
        }
        for (there, set) in self.sets(keys) {
            if there {
                set.remove(id);
            }
        }
    }

    fn sets(&mut self, keys: Keys) -> [(bool, &mut BTreeSet<TicketId>); 5] {
        [
            (keys.has_turn, &mut self.turns),
            (keys.has_pr, &mut self.with_pr),
            (keys.begun, &mut self.begun),
            (keys.lands, &mut self.landing),
            (keys.in_forge_queue, &mut self.forge_queue),
        ]
    }

    /// Returns the jobs of a phase. Always empty for `Queued`.
    pub fn in_phase(&self, phase: Phase) -> impl Iterator<Item = &TicketId> {
        self.by_phase.get(&phase).into_iter().flatten()
    }

    pub fn count(&self, phase: Phase) -> usize {
        match phase {
            Phase::Queued => self.queued,
            phase => self.by_phase.get(&phase).map_or(0, BTreeSet::len),
        }
    }

    /// Returns how many queued jobs wait for a time of their own.
    pub fn retrying(&self) -> usize {
        self.retrying
    }
}
