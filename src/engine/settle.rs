//! After each event: stop what must stop, redo what is due, merge what is ready, start what may start.
//!
//! Only jobs are looked at that changed, that are due, or that depend on something that changed for all.

use std::collections::BTreeSet;
use std::time::Duration;

use super::budget::Level;
use super::fingerprint;
use super::hindrance;
use super::limits;
use super::outbox::circumstances;
use super::phases::Observation;
use super::phases::moves::set_wait;
use super::select;
use super::state::{State, job_switch};
use super::step::Step;
use crate::config::policy::{Order, RolloutMode};
use crate::domain::fingerprint::Fingerprint;
use crate::domain::ids::{RunId, TicketId};
use crate::domain::job::{BlockCause, CheckWait, Job, Stage, Wait};

const FIRST_MINUTE: Duration = Duration::from_secs(60);
/// Settling one job may change another, for at most this many rounds. No such chain is known to be long; the next event continues one that
/// is.
const ROUNDS: usize = 32;

impl Step<'_> {
    pub fn settle(&mut self) {
        // Nothing is decided before recovery is complete.
        if !self.state.recovered {
            return;
        }
        self.roll_day();
        self.note_spent_day();
        let general = circumstances(self.state, self.policy, None);
        let turned = self.state.settled_under.replace(general.clone()) != Some(general);
        self.state.settled_at = self.now;
        if turned {
            self.mark_forge_queue();
        }
        self.wake_what_is_due();
        for round in 0..ROUNDS {
            let settled = self.settle_jobs();
            self.release_effects(&settled, turned && round == 0);
            if !self.state.shutting_down {
                self.look_again_now();
                self.merge_next();
                self.dispatch();
            }
            for run in settled.iter().filter_map(|id| self.state.jobs.get(id)?.stage.run()) {
                self.state.runs.mark_dirty(run);
            }
            self.write_workpads(settled);
            if !self.state.jobs.has_dirty() {
                break;
            }
        }
        self.archive_what_is_over();
    }

    /// Settles every job that changed, until none does.
    fn settle_jobs(&mut self) -> BTreeSet<TicketId> {
        let mut settled = BTreeSet::new();
        self.stop_what_must_stop();
        for _ in 0..ROUNDS {
            self.state.jobs.settle_relations(self.policy.agent.order == Order::CriticalPath);
            let dirty = self.state.jobs.take_dirty();
            if dirty.is_empty() {
                break;
            }
            for id in &dirty {
                self.settle_job(id);
            }
            settled.extend(dirty);
        }
        settled
    }

    fn settle_job(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let switched = job_switch(job, self.policy.rollout.kill_switch_label.as_deref()).is_some();
        if switched && !job.stage.phase().is_terminal() {
            self.state.switched.insert(id.clone());
        } else {
            self.state.switched.remove(id);
        }
        match &job.stage {
            Stage::Working { run, .. } => {
                let run = run.clone();
                self.stop_if_it_must(&run);
            }
            Stage::Blocked { cause: BlockCause::NoNewEvidence { .. }, .. } => self.unblock_by_new_evidence(id),
            Stage::Queued { .. } => self.settle_queued(id),
            Stage::ReadyToMerge { .. } => self.settle_ready(id),
            Stage::WaitingForChecks { on: CheckWait::ForgeQueue { .. }, .. } => self.settle_forge_queue(id),
            _ => {}
        }
        self.leave_directory(id);
    }

    /// Marks the jobs whose time has come, and those whose due time was set before the clock was put back.
    fn wake_what_is_due(&mut self) {
        let due = &self.state.jobs.index().due;
        let mut awake = due.due(self.now);
        awake.extend(due.beyond(self.now + self.longest_retry()));
        for id in awake {
            self.state.jobs.mark_dirty(&id);
        }
    }

    fn longest_retry(&self) -> Duration {
        self.policy.agent.max_retry_backoff.max(FIRST_MINUTE).saturating_mul(2)
    }

    /// Notes a spent daily budget once, not for each job that waits because of it.
    fn note_spent_day(&mut self) {
        let spent = hindrance::day_is_spent(self.state, self.policy, self.now);
        if spent.is_some() && !self.state.day_is_spent {
            let (what, _) = spent.clone().unwrap_or_default();
            self.note(
                None,
                "daily_budget",
                format!("today's budget is spent ({what}): nothing starts before midnight"),
            );
        }
        self.state.day_is_spent = spent.is_some();
    }

    /// Stops live runs for reasons that hold for all of them, and those whose deadline has passed.
    fn stop_what_must_stop(&mut self) {
        let all = self.state.global_switch().is_some()
            || self.policy.rollout.mode == RolloutMode::Observe
            || self.state.shutting_down
            || self.is_day_nearly_spent();
        let runs: Vec<RunId> =
            if all { self.state.runs.keys().cloned().collect() } else { self.state.runs.due().due(self.now) };
        for run in runs {
            self.stop_if_it_must(&run);
        }
    }

    fn is_day_nearly_spent(&self) -> bool {
        hindrance::level_of_day(self.state, self.policy, self.now) != Level::Fine
    }

    fn stop_if_it_must(&mut self, run: &RunId) {
        let Some(live) = self.state.runs.get(run) else { return };
        let ticket = live.ticket.clone();
        let Some(job) = self.state.jobs.get(&ticket) else { return };
        // None of these reasons outranks the one for which the run is being stopped already.
        if matches!(job.stage, Stage::Working { stopping: Some(_), .. }) {
            return;
        }
        if self.state.switch_for(job, self.policy.rollout.kill_switch_label.as_deref()).is_some() {
            self.decide(&ticket, Observation::SwitchPulled);
        } else if self.policy.rollout.mode == RolloutMode::Observe {
            self.decide(&ticket, Observation::ModeBecameObserve);
        } else if self.state.shutting_down {
            self.decide(&ticket, Observation::ShutdownBegan);
        } else {
            match limits::overdue(live, &self.policy.agent, self.now) {
                Some(reason) => self.stop_run(&ticket, reason),
                None => {
                    self.brake(run);
                    self.nudge(run);
                }
            }
        }
    }

    fn unblock_by_new_evidence(&mut self, id: &TicketId) {
        // Before the first poll the base is not known, which must not count as new evidence.
        if self.state.tracker.last_ok.is_none() {
            return;
        }
        let (State { jobs, base, .. }, policy) = (&*self.state, self.policy);
        let Some(job) = jobs.get(id) else { return };
        let Stage::Blocked { cause: BlockCause::NoNewEvidence { fingerprint }, .. } = &job.stage else { return };
        let current = fingerprint::of(job, base.as_ref(), policy);
        let parts = current.differences(fingerprint);
        if parts.is_empty() {
            return;
        }
        self.decide_with(id, |job, out| {
            let Stage::Blocked { cause, resume, since } = job.stage.clone() else { return };
            if matches!(&cause, BlockCause::NoNewEvidence { fingerprint } if **fingerprint == Fingerprint::default()) {
                // Blocked by a version with another kind of fingerprint: only changes from now on are new.
                let cause = BlockCause::NoNewEvidence { fingerprint: Box::new(current) };
                out.amend(job, Stage::Blocked { cause, resume, since });
                return;
            }
            job.evidence.no_progress_with = None;
            out.note(job, None, "new_evidence", format!("something is new: {} changed", parts.join(", ")));
            // The counters stay, because something that changes often would otherwise pay for attempts without end.
            out.queue(job, resume, Wait::Ready);
        });
    }

    /// Settles a queued job. One whose ticket left the active states is released, however that became known. The others get their wait, and
    /// those that wait for nothing of their own get in line.
    fn settle_queued(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        if !self.state.shutting_down && !select::may_start(job, self.policy) {
            let state = job.ticket.state.clone();
            let observation = if select::is_terminal(&state, self.policy) {
                Observation::TicketTerminal { state }
            } else {
                Observation::TicketNotActive { state }
            };
            self.decide(id, observation);
            return;
        }
        let Stage::Queued { wait, .. } = &job.stage else { return };
        let want = self.own_wait(job, wait);
        if want != *wait {
            self.change_wait(id, want);
            return;
        }
        let out_of_sight = self.state.is_out_of_sight(id);
        if let (Wait::Ready, false, Some(line)) = (want, out_of_sight, hindrance::line_of(job, self.policy)) {
            let rank = select::rank(job, self.state.jobs.relations().chain_of(id));
            self.state.jobs.line_up(id, line, rank);
        }
    }

    /// Returns what a queued job waits for that is its own doing.
    fn own_wait(&self, job: &Job, wait: &Wait) -> Wait {
        if let Wait::Retry { due, .. } | Wait::Continuation { due } = wait {
            // A time beyond the longest back-off was set before the clock was put back.
            if *due > self.now && due.since(self.now) <= self.longest_retry() {
                return wait.clone();
            }
        }
        let policy = self.policy;
        if let Some(source) = job_switch(job, policy.rollout.kill_switch_label.as_deref()) {
            return Wait::KillSwitch { source };
        }
        if let Some(because) = select::not_ours(&job.ticket, policy) {
            return Wait::NotOurs { because };
        }
        let missing = select::missing_labels(&job.ticket, policy);
        if !missing.is_empty() {
            return Wait::Labels { missing };
        }
        if let Some(because) = select::not_let_in(&job.ticket, policy).or_else(|| select::reworded(&job.ticket, policy))
        {
            return Wait::NotOurs { because };
        }
        if let Some(keys) = self.state.jobs.relations().cycle_of(&job.ticket.id) {
            return Wait::Cycle { keys: keys.to_vec() };
        }
        let keys = select::open_blockers(&job.ticket, policy);
        if keys.is_empty() { Wait::Ready } else { Wait::Blockers { keys } }
    }

    fn change_wait(&mut self, id: &TicketId, want: Wait) {
        let now = self.now;
        let reason = self.state.jobs.edit(id, |job| {
            set_wait(job, want);
            job.own_reason(now)
        });
        if let Some(reason) = reason.filter(|reason| reason.code != "ready") {
            self.note(Some(id), reason.code, format!("queued: {}", reason.sentence));
        }
    }

    /// Works out the deadlines of runs that changed, or whose jobs did.
    pub fn file_deadlines(&mut self) {
        for run in self.state.runs.take_dirty() {
            let due = self.state.runs.get(&run).and_then(|run| limits::next_look(self.state, self.policy, run));
            self.state.runs.set_due(&run, due);
        }
    }
}
