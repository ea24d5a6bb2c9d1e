//! Whose turn it is to be merged. With `merge.strategy: queue` one job at a time per base branch (there is one base), and the one that has
//! waited longest goes first. A job whose branch is updated in its turn keeps the turn while the result is checked, for a limited time.
//! With `immediate` all jobs have their turn at once.

use std::collections::BTreeSet;
use std::time::Duration;

use super::effect::Action;
use super::hindrance;
use super::landing;
use super::phases::Observation;
use super::select;
use super::state::job_switch;
use super::step::Step;
use super::timetable::next_after;
use crate::domain::ids::TicketId;
use crate::domain::job::{MergeHold, Stage, Turn};
use crate::domain::phase::Phase;
use crate::domain::time::Timestamp;

/// How long a job that is first in line waits for a look before others go first.
pub const TURN: Duration = Duration::from_secs(120);
/// How long the line waits for the checks of a branch that was updated in its turn.
pub const UPDATED_TURN: Duration = Duration::from_secs(60 * 60);
const FIRST_MINUTE: Duration = Duration::from_secs(60);

/// What to do about a job that stands in the merge line.
enum Next {
    /// Something about this job keeps it back: others pass it.
    Pass,
    /// Its turn has lasted too long without a look: others go first for a while.
    StepBack,
    /// It has the turn and waits for a look.
    Wait,
    /// It can be given the turn.
    Go,
}

impl Step<'_> {
    /// Updates a job that is ready: releases it if its ticket is not eligible any more, and clears a hold whose time has passed.
    pub fn settle_ready(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let Stage::ReadyToMerge { head, hold, turn, since } = &job.stage else { return };
        if let Some(because) = select::lost_eligibility(&job.ticket, self.policy) {
            self.decide(id, Observation::TicketNotEligible { because });
            return;
        }
        // A time so far away was set before the clock was put back.
        let latest = self.now + self.policy.polling_interval.max(FIRST_MINUTE).saturating_mul(64);
        if matches!(hold, MergeHold::Forge { retry_at, .. } if *retry_at <= self.now || *retry_at > latest) {
            let stage = Stage::ReadyToMerge { head: head.clone(), hold: MergeHold::Queue, turn: *turn, since: *since };
            self.decide_with(id, |job, out| out.amend(job, stage));
        }
    }

    /// Gives the turn to the job that is first, and takes it from any other.
    pub fn merge_next(&mut self) {
        let stopped = hindrance::of_merges(self.state, self.policy).is_some();
        let merging = self.state.jobs.index().count(Phase::Merging) > 0;
        let first: BTreeSet<TicketId> = match (stopped, self.policy.merge.queue) {
            (true, _) => BTreeSet::new(),
            (false, false) => self.all_to_merge(),
            (false, true) if merging => BTreeSet::new(),
            (false, true) => self.first_to_merge().into_iter().collect(),
        };
        let turns: BTreeSet<TicketId> = self.state.jobs.index().turns.clone();
        for id in turns.difference(&first) {
            self.set_turn(id, None, None);
        }
        for id in first.into_iter().filter(|id| !turns.contains(id)) {
            let turn = Turn { moment: self.state.next_moment(), since: self.now };
            self.set_turn(&id, Some(turn), None);
            // One more look decides.
            if let Some(number) = self.state.jobs.get(&id).and_then(|job| job.delivery.pr.as_ref()).map(|pr| pr.number)
            {
                self.emit(Some(&id), Action::InspectPr { number });
            }
        }
    }

    fn first_to_merge(&mut self) -> Option<TicketId> {
        // A job that was updated in its turn goes first, and until its checks have finished no job does.
        for id in self.line_waits_for() {
            let phase = self.state.jobs.get(&id).map(|job| job.stage.phase());
            if phase == Some(Phase::WaitingForChecks) {
                return None;
            }
            if phase == Some(Phase::ReadyToMerge) && self.may_go(&id) {
                return Some(id);
            }
        }
        self.next_to_merge(None).map(|entry| entry.1)
    }

    fn all_to_merge(&mut self) -> BTreeSet<TicketId> {
        let (mut all, mut last) = (BTreeSet::new(), None);
        while let Some(entry) = self.next_to_merge(last.as_ref()) {
            all.insert(entry.1.clone());
            last = Some(entry);
        }
        all
    }

    /// Returns the jobs that were updated in their turn and for which the line still waits.
    fn line_waits_for(&self) -> Vec<TicketId> {
        let label = self.policy.rollout.kill_switch_label.as_deref();
        let waits = |id: &&TicketId| {
            let job = self.state.jobs.get(id).filter(|job| job_switch(job, label).is_none());
            // A time in the future was set before the clock was put back.
            let still = |since: Timestamp| since <= self.now && self.now.since(since) < UPDATED_TURN;
            job.and_then(|job| job.delivery.landing_since).is_some_and(still)
        };
        self.state.jobs.index().landing.iter().filter(waits).cloned().collect()
    }

    /// Returns the job that has waited longest among those after `last` that may go.
    fn next_to_merge(&mut self, last: Option<&(Timestamp, TicketId)>) -> Option<(Timestamp, TicketId)> {
        let mut last = last.cloned();
        while let Some(entry) = next_after(&self.state.jobs.index().merge_queue, last.as_ref()) {
            if self.may_go(&entry.1) {
                return Some(entry);
            }
            last = Some(entry);
        }
        None
    }

    /// Whether the job may have the turn or keep it. A job that has had it for too long steps back.
    fn may_go(&mut self, id: &TicketId) -> bool {
        match self.what_next(id) {
            Next::Go | Next::Wait => true,
            Next::Pass => false,
            Next::StepBack => {
                let because = "the forge does not answer about it".to_owned();
                let retry_at = self.now + self.policy.polling_interval.max(FIRST_MINUTE);
                self.set_turn(id, None, Some(MergeHold::Forge { because, retry_at }));
                false
            }
        }
    }

    /// Takes a pull request out of the forge's own queue when something forbids its merge.
    pub fn settle_forge_queue(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let switched = job_switch(job, self.policy.rollout.kill_switch_label.as_deref()).is_some();
        if let Some(because) = select::lost_eligibility(&job.ticket, self.policy) {
            self.decide(id, Observation::TicketNotEligible { because });
        } else if switched || hindrance::of_merges(self.state, self.policy).is_some() {
            self.decide_with(id, landing::taken_back);
        }
    }

    /// Marks the jobs in the forge's queue to be settled, after something changed for all of them.
    pub fn mark_forge_queue(&mut self) {
        let waiting: Vec<TicketId> = self.state.jobs.index().forge_queue.iter().cloned().collect();
        for id in waiting {
            self.state.jobs.mark_dirty(&id);
        }
    }

    fn what_next(&self, id: &TicketId) -> Next {
        let Some(job) = self.state.jobs.get(id) else { return Next::Pass };
        let Stage::ReadyToMerge { hold, turn, .. } = &job.stage else { return Next::Pass };
        let held = matches!(hold, MergeHold::Forge { retry_at, .. } if *retry_at > self.now);
        let switch = job_switch(job, self.policy.rollout.kill_switch_label.as_deref());
        if held || switch.is_some() || job.delivery.pr.is_none() {
            return Next::Pass;
        }
        match turn {
            Some(turn) if turn.since > self.now || self.now.since(turn.since) >= TURN => Next::StepBack,
            Some(_) => Next::Wait,
            None => Next::Go,
        }
    }

    /// Sets the turn, and the hold if one is given. The place in the queue is kept.
    fn set_turn(&mut self, id: &TicketId, turn: Option<Turn>, new_hold: Option<MergeHold>) {
        self.decide_with(id, |job, out| {
            let Stage::ReadyToMerge { head, hold, since, .. } = job.stage.clone() else { return };
            out.amend(job, Stage::ReadyToMerge { head, hold: new_hold.unwrap_or(hold), turn, since });
        });
    }
}
