//! Whose turn it is to be merged. One merge at a time per base branch (there is one base); whoever waits longest goes first.

use std::collections::BTreeSet;
use std::time::Duration;

use super::effect::Action;
use super::hindrance;
use super::phases::Observation;
use super::select;
use super::state::job_switch;
use super::step::Step;
use super::timetable::next_after;
use crate::domain::ids::TicketId;
use crate::domain::job::{MergeHold, Stage, Turn};
use crate::domain::phase::Phase;

/// How long a job that is first in line waits for a look before others go first.
pub const TURN: Duration = Duration::from_secs(120);
const FIRST_MINUTE: Duration = Duration::from_secs(60);

/// What to do about a job that stands in the merge line.
enum Next {
    /// Its own doing keeps it: others pass.
    Pass,
    /// The forge says nothing about it: others go first for a while.
    StepBack,
    /// It has the turn.
    Wait,
    /// Its turn has come.
    Go,
}

impl Step<'_> {
    /// Jobs that are ready and not ours any more are given back; one whose hindrance has had its time queues again.
    pub fn settle_ready(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let Stage::ReadyToMerge { head, hold, turn, since } = &job.stage else { return };
        if let Some(because) = select::lost_eligibility(&job.ticket, self.policy) {
            self.decide(id, Observation::TicketNotEligible { because });
            return;
        }
        // A time so far away was set by a clock that has been put back since.
        let latest = self.now + self.policy.polling_interval.max(FIRST_MINUTE).saturating_mul(64);
        if matches!(hold, MergeHold::Forge { retry_at, .. } if *retry_at <= self.now || *retry_at > latest) {
            let stage = Stage::ReadyToMerge { head: head.clone(), hold: MergeHold::Queue, turn: *turn, since: *since };
            self.decide_with(id, |job, out| out.amend(job, stage));
        }
    }

    /// Gives the turn to whoever is first, and takes it from whoever is not.
    pub fn merge_next(&mut self) {
        let stopped = hindrance::of_merges(self.state, self.policy).is_some();
        let merging = self.state.jobs.index().count(Phase::Merging) > 0;
        let first = if stopped || merging { None } else { self.first_to_merge() };
        let turns: BTreeSet<TicketId> = self.state.jobs.index().turns.clone();
        for id in turns.iter().filter(|id| Some(*id) != first.as_ref()) {
            self.set_turn(id, None, None);
        }
        if let Some(id) = first.filter(|id| !turns.contains(id)) {
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
        let mut last = None;
        while let Some(entry) = next_after(&self.state.jobs.index().merge_queue, last.as_ref()) {
            match self.what_next(&entry.1) {
                Next::Go | Next::Wait => return Some(entry.1),
                Next::Pass => {}
                Next::StepBack => {
                    let because = "the forge does not answer about it".to_owned();
                    let retry_at = self.now + self.policy.polling_interval.max(FIRST_MINUTE);
                    self.set_turn(&entry.1, None, Some(MergeHold::Forge { because, retry_at }));
                }
            }
            last = Some(entry);
        }
        None
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

    /// The place in the queue is kept.
    fn set_turn(&mut self, id: &TicketId, turn: Option<Turn>, new_hold: Option<MergeHold>) {
        self.decide_with(id, |job, out| {
            let Stage::ReadyToMerge { head, hold, since, .. } = job.stage.clone() else { return };
            out.amend(job, Stage::ReadyToMerge { head, hold: new_hold.unwrap_or(hold), turn, since });
        });
    }
}
