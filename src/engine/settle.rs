//! After each event: stop what must stop, redo what is due, merge what is ready, start what may start.

use std::collections::BTreeMap;

use super::budget::{self, Level};
use super::delivery;
use super::effect::Action;
use super::fingerprint;
use super::limits;
use super::phases::Observation;
use super::phases::moves::set_wait;
use super::quota;
use super::route;
use super::select;
use super::state::State;
use super::step::Step;
use super::workpad;
use crate::config::policy::RolloutMode;
use crate::domain::fingerprint::Fingerprint;
use crate::domain::ids::{RunId, TicketId, TicketKey};
use crate::domain::job::{BlockCause, Job, MergeHold, Stage, Turn, Wait};
use crate::domain::pr::PrState;
use crate::domain::run::{Life, LiveRun, Progress};
use crate::domain::time::Timestamp;

/// How long a job that is first in line waits for a look before others go first.
pub const TURN: std::time::Duration = std::time::Duration::from_secs(120);
const FIRST_MINUTE: std::time::Duration = std::time::Duration::from_secs(60);

impl Step<'_> {
    pub fn settle(&mut self) {
        // Nothing is decided on half-known ground.
        if !self.state.recovered {
            return;
        }
        self.roll_day();
        self.stop_what_must_stop();
        self.unblock_by_new_evidence();
        if self.state.shutting_down {
            self.release_effects();
            self.say_that_it_ends();
        } else {
            // Who is given back first: nothing more leaves for a ticket that is not ours.
            self.release_inactive();
            self.release_effects();
            self.look_again_now();
            self.merge_next();
            self.dispatch();
        }
        self.write_workpads();
    }

    fn stop_what_must_stop(&mut self) {
        let label = self.policy.rollout.kill_switch_label.as_deref();
        let live: Vec<(RunId, TicketId)> =
            self.state.runs.values().map(|run| (run.id.clone(), run.ticket.clone())).collect();
        for (run, ticket) in live {
            let Some(job) = self.state.jobs.get(&ticket) else { continue };
            // None of these reasons outranks the one that it is being stopped for.
            if matches!(job.stage, Stage::Working { stopping: Some(_), .. }) {
                continue;
            }
            if self.state.switch_for(job, label).is_some() {
                self.decide(&ticket, Observation::SwitchPulled);
            } else if self.policy.rollout.mode == RolloutMode::Observe {
                self.decide(&ticket, Observation::ModeBecameObserve);
            } else if self.state.shutting_down {
                self.decide(&ticket, Observation::ShutdownBegan);
            } else {
                let late = self.state.runs.get(&run).and_then(|run| limits::overdue(run, &self.policy.agent, self.now));
                match late {
                    Some(reason) => self.stop_run(&ticket, reason),
                    None => self.brake(&run),
                }
            }
        }
    }

    /// Queued work on a ticket that left the active states is given back, however that came to be known.
    fn release_inactive(&mut self) {
        let mut known: BTreeMap<(&str, bool), bool> = BTreeMap::new();
        let mut inactive = Vec::new();
        for (id, job) in &self.state.jobs {
            if !matches!(job.stage, Stage::Queued { .. }) {
                continue;
            }
            let key = (job.ticket.state.as_str(), job.attempts > 0);
            if !*known.entry(key).or_insert_with(|| select::may_start(job, self.policy)) {
                inactive.push((id.clone(), job.ticket.state.clone()));
            }
        }
        for (id, state) in inactive {
            let observation = if select::is_terminal(&state, self.policy) {
                Observation::TicketTerminal { state }
            } else {
                Observation::TicketNotActive { state }
            };
            self.decide(&id, observation);
        }
    }

    fn say_that_it_ends(&mut self) {
        let waiting: Vec<TicketId> = self
            .state
            .jobs
            .iter()
            .filter(|(_, job)| {
                let soon = |wait: &Wait| matches!(wait, Wait::Ready | Wait::Slot | Wait::StateSlot { .. });
                matches!(&job.stage, Stage::Queued { wait, .. } if soon(wait))
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in waiting {
            self.set_wait(&id, Wait::ShuttingDown);
        }
    }

    fn unblock_by_new_evidence(&mut self) {
        // Before the first poll the base is not known, which is no news.
        if self.state.tracker.last_ok.is_none() {
            return;
        }
        let changed: Vec<(TicketId, Vec<&'static str>)> = self
            .state
            .jobs
            .iter()
            .filter_map(|(id, job)| match &job.stage {
                Stage::Blocked { cause: BlockCause::NoNewEvidence { fingerprint }, .. } => {
                    let now = fingerprint::of(job, self.state.base.as_ref(), self.policy);
                    Some((id.clone(), now.differences(fingerprint))).filter(|(_, parts)| !parts.is_empty())
                }
                _ => None,
            })
            .collect();
        for (id, parts) in changed {
            let (State { jobs, base, .. }, policy) = (&mut *self.state, self.policy);
            let Some(current) = jobs.get(&id).map(|job| fingerprint::of(job, base.as_ref(), policy)) else { continue };
            self.decide_with(&id, |job, out| {
                let Stage::Blocked { cause, resume, since } = job.stage.clone() else { return };
                if matches!(&cause, BlockCause::NoNewEvidence { fingerprint } if *fingerprint == Fingerprint::default())
                {
                    // Blocked by a version that kept another digest: what is new is what comes from now on.
                    let cause = BlockCause::NoNewEvidence { fingerprint: current };
                    out.amend(job, Stage::Blocked { cause, resume, since });
                    return;
                }
                job.evidence.no_progress_with = None;
                out.note(job, None, "new_evidence", format!("something is new: {} changed", parts.join(", ")));
                // Not counted anew: what changes often would pay for attempts without end.
                out.queue(job, resume, Wait::Ready);
            });
        }
    }

    /// One merge at a time per base branch (there is one base); the one that waits longest goes first.
    fn merge_next(&mut self) {
        let merging = self.state.jobs.values().find(|job| matches!(job.stage, Stage::Merging { .. }));
        let merging: Option<TicketKey> = merging.map(|job| job.ticket.key.clone());
        let mut ready: Vec<(Timestamp, TicketId)> = self
            .state
            .jobs
            .iter()
            .filter(|(_, job)| matches!(job.stage, Stage::ReadyToMerge { .. }))
            .map(|(id, job)| (job.stage.since(), id.clone()))
            .collect();
        ready.sort();
        let mut first = merging;
        for (_, id) in ready {
            if let Some(key) = self.consider_merge(&id, first.as_ref()) {
                first.get_or_insert(key);
            }
        }
    }

    /// Starts the merge or says what it waits for. Answers with the key if it is being merged now.
    fn consider_merge(&mut self, id: &TicketId, ahead: Option<&TicketKey>) -> Option<TicketKey> {
        let label = self.policy.rollout.kill_switch_label.clone();
        let job = self.state.jobs.get(id)?;
        if let Some(because) = select::lost_eligibility(&job.ticket, self.policy) {
            self.decide(id, Observation::TicketNotEligible { because });
            return None;
        }
        let switch = self.state.switch_for(job, label.as_deref());
        let Stage::ReadyToMerge { head, hold, turn, since } = job.stage.clone() else { return None };
        let number = job.delivery.pr.as_ref()?.number;
        let silent = turn.is_some_and(|turn| self.now.since(turn.since) >= TURN);
        let want = if !self.policy.merge.auto {
            Some(MergeHold::MergeDisabled)
        } else if self.policy.rollout.mode != RolloutMode::Merge || self.policy.rollout.preflight_missing {
            Some(MergeHold::RolloutForbids)
        } else if let Some(source) = switch {
            Some(MergeHold::KillSwitch { source })
        } else if let MergeHold::Forge { retry_at, .. } = &hold
            && *retry_at > self.now
        {
            Some(hold.clone())
        } else if silent {
            // The forge says nothing about it: others go first.
            let because = "the forge does not answer about it".to_owned();
            Some(MergeHold::Forge { because, retry_at: self.now + self.policy.polling_interval.max(FIRST_MINUTE) })
        } else {
            ahead.map(|key| MergeHold::Slot { behind: Some(key.clone()) })
        };
        let key = self.state.jobs.get(id)?.ticket.key.clone();
        let moment = self.state.moment();
        match want {
            Some(want) if want == hold && turn.is_none() => None,
            Some(want) => {
                // The place in the queue is kept.
                let stage = Stage::ReadyToMerge { head, hold: want, turn: None, since };
                self.decide_with(id, |job, out| out.amend(job, stage));
                None
            }
            // Its turn has come: one more look decides.
            None if turn.is_none() => {
                self.state.next_moment();
                let turn = Some(Turn { moment, since: self.now });
                let stage = Stage::ReadyToMerge { head, hold: MergeHold::LastLook, turn, since };
                self.decide_with(id, |job, out| {
                    out.amend(job, stage);
                    out.act(Action::InspectPr { number });
                });
                Some(key)
            }
            None => Some(key),
        }
    }

    fn dispatch(&mut self) {
        let cycles = self.cycles_if_needed();
        let chains = select::chains(&self.state.jobs, self.policy);
        let mut ready = Vec::new();
        let mut waits = Vec::new();
        for (id, job) in &self.state.jobs {
            let Stage::Queued { wait, .. } = &job.stage else { continue };
            match self.why_not(job, wait, &cycles) {
                Some(want) if want != *wait => waits.push((id.clone(), want)),
                Some(_) => {}
                None => ready.push((select::rank(job, chains.get(id).copied().unwrap_or(0)), id.clone())),
            }
        }
        for (id, wait) in waits {
            self.set_wait(&id, wait);
        }
        if ready.is_empty() {
            return;
        }
        ready.sort();
        let mut by_state: BTreeMap<String, usize> = BTreeMap::new();
        for run in self.state.runs.values() {
            *by_state.entry(run.ticket_state.trim().to_lowercase()).or_default() += 1;
        }
        for (_, id) in ready {
            let Some(job) = self.state.jobs.get(&id) else { continue };
            let state = job.ticket.state.trim().to_lowercase();
            let in_state = by_state.get(&state).copied().unwrap_or(0);
            let limit = self.policy.agent.max_concurrent_by_state.get(&state);
            if self.state.runs.len() >= self.policy.agent.max_concurrent {
                self.set_wait(&id, Wait::Slot);
            } else if limit.is_some_and(|limit| in_state >= *limit) {
                self.set_wait(&id, Wait::StateSlot { state });
            } else if self.start(&id) {
                *by_state.entry(state).or_default() += 1;
            }
        }
    }

    fn cycles_if_needed(&self) -> BTreeMap<TicketId, Vec<TicketKey>> {
        let any = self.state.jobs.values().any(|job| !job.ticket.blocked_by.is_empty());
        if any { select::cycles(&self.state.jobs) } else { BTreeMap::new() }
    }

    /// What a queued job waits for besides a slot.
    fn why_not(&self, job: &Job, wait: &Wait, cycles: &BTreeMap<TicketId, Vec<TicketKey>>) -> Option<Wait> {
        // A retry keeps its time and its reason, whatever else is in the way meanwhile.
        if let Wait::Retry { due, .. } | Wait::Continuation { due } = wait {
            // A time beyond the longest back-off was set by a clock that has been put back since.
            let longest = self.policy.agent.max_retry_backoff.max(FIRST_MINUTE).saturating_mul(2);
            if *due > self.now && due.since(self.now) <= longest {
                return Some(wait.clone());
            }
        }
        let policy = self.policy;
        if let Some(source) = self.state.switch_for(job, policy.rollout.kill_switch_label.as_deref()) {
            return Some(Wait::KillSwitch { source });
        }
        if let Some(because) = select::not_ours(&job.ticket, policy) {
            return Some(Wait::NotOurs { because });
        }
        let missing = select::missing_labels(&job.ticket, policy);
        if !missing.is_empty() {
            return Some(Wait::Labels { missing });
        }
        if let Some(keys) = cycles.get(&job.ticket.id) {
            return Some(Wait::Cycle { keys: keys.clone() });
        }
        let keys = select::open_blockers(&job.ticket, policy);
        if !keys.is_empty() {
            return Some(Wait::Blockers { keys });
        }
        if policy.rollout.mode == RolloutMode::Observe {
            return Some(Wait::Observe);
        }
        if policy.rollout.preflight_missing {
            return Some(Wait::Preflight);
        }
        if let Stage::Queued { work, .. } = &job.stage
            && let Some(pool) = route::pool(policy, &job.ticket, work.kind())
            && let Some(until) = quota::paused_until(self.state.meta.pools.get(pool), self.now)
        {
            return Some(Wait::Quota { pool: pool.clone(), until });
        }
        let today = std::time::Duration::from_millis(self.state.meta.daily.run_ms);
        if let Level::Exceeded { what, figure, cap } =
            budget::level(&policy.budget.daily, &self.state.meta.daily.usage, today)
        {
            let until = Timestamp(self.state.meta.daily.day.saturating_add(1).saturating_mul(86_400_000));
            return Some(Wait::DailyBudget { what: format!("{what}: {figure} of {cap}"), until });
        }
        // Nothing is started on old knowledge: neither on a board that fails, nor before the first look of this life.
        let id = &job.ticket.id;
        let unseen = self.state.unseen.contains(id) || self.state.invisible.contains(id);
        if unseen || self.state.tracker.last_error.is_some() || self.state.tracker.last_ok.is_none() {
            return Some(Wait::Tracker);
        }
        None
    }

    fn set_wait(&mut self, id: &TicketId, want: Wait) {
        let stage = self.state.jobs.get(id).map(|job| &job.stage);
        if !matches!(stage, Some(Stage::Queued { wait, .. }) if *wait != want) {
            return;
        }
        let worth_a_note = !matches!(want, Wait::Slot | Wait::StateSlot { .. } | Wait::Ready);
        let now = self.now;
        let reason = self.state.jobs.edit(id, |job| {
            set_wait(job, want);
            job.reason(now)
        });
        if let (true, Some(reason)) = (worth_a_note, reason) {
            self.note(Some(id), reason.code, format!("queued: {}", reason.sentence));
        }
    }

    /// Starts a run, unless the budget or the lack of anything new speaks against it.
    fn start(&mut self, id: &TicketId) -> bool {
        let base = self.state.base.clone();
        let Some(job) = self.state.jobs.get(id) else { return false };
        let Stage::Queued { work, .. } = job.stage.clone() else { return false };
        let spent = std::time::Duration::from_millis(job.spending.run_ms_since_reset);
        if let Level::Exceeded { what, figure, cap } =
            budget::level(&self.policy.budget.ticket, &job.spending.since_reset, spent)
        {
            let cause = BlockCause::BudgetExceeded { what, figure, cap };
            self.decide_with(id, |job, out| out.block(job, cause, work));
            return false;
        }
        if let Some(no_progress_with) = job.evidence.no_progress_with.clone() {
            let fingerprint = fingerprint::of(job, base.as_ref(), self.policy);
            if no_progress_with == fingerprint {
                let cause = BlockCause::NoNewEvidence { fingerprint };
                self.decide_with(id, |job, out| out.block(job, cause, work));
                return false;
            }
        }
        let shown =
            job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open).map(|pr| (pr.number, pr.head.clone()));
        if let Some((number, head)) = shown.filter(|(_, head)| delivery::is_overtaken(job, head)) {
            // Pushed while a run was at the old head, or while it was blocked.
            self.decide_with(id, |job, out| {
                delivery::overtaken(job, &head, out);
                out.act(Action::InspectPr { number });
            });
            return false;
        }
        let Some(route) = route::choose(self.policy, &job.ticket, work.kind()).cloned() else { return false };
        let number = self.state.meta.next_run;
        self.state.meta.next_run += 1;
        let run = run_id(self.now, self.state.meta.seed, number);
        let attempt = job.attempts + 1;
        let live = LiveRun {
            id: run.clone(),
            ticket: id.clone(),
            key: job.ticket.key.clone(),
            kind: work.kind(),
            attempt,
            pool: route.pool.clone(),
            runtime: route.runtime.clone(),
            branch: job.delivery.branch.name.clone(),
            ticket_state: job.ticket.state.clone(),
            started_at: self.now,
            head_before: None,
            progress: Progress::at_start(self.now),
            life: Life::Spawning,
        };
        let action = Action::StartRun {
            run: run.clone(),
            work: work.clone(),
            attempt,
            branch: job.delivery.branch.name.clone(),
            resume: job.session.clone(),
            route,
            undelivered: job.people.undelivered(),
        };
        self.state.runs.insert(run.clone(), live);
        self.state.changes.runs.insert(run.clone());
        self.state.changes.meta = true;
        self.decide_with(id, |job, out| {
            job.attempts = attempt;
            out.move_to(job, Stage::Working { work, run, stopping: None, since: out.now });
            // The start comes first: a column that follows must not be moved for a run that never was.
            out.actions.insert(0, action);
        });
        true
    }

    fn write_workpads(&mut self) {
        let changed = self.state.jobs.take_dirty();
        if !self.policy.orchestration.workpad {
            return;
        }
        self.state.unshown.extend(changed);
        let mut due = Vec::new();
        let mut up_to_date = Vec::new();
        for id in &self.state.unshown {
            let Some(job) = self.state.jobs.get(id) else { continue };
            let rests = workpad::next_write(job, self.policy).is_some_and(|at| at > self.now);
            if rests || workpad::is_in_flight(self.state, id) {
                continue;
            }
            let shows = workpad::shows(job);
            if job.attempts == 0 || job.workpad.shows.as_deref() == Some(shows.as_str()) {
                up_to_date.push(id.clone());
            } else {
                due.push((id.clone(), shows));
            }
        }
        for id in &up_to_date {
            self.state.unshown.remove(id);
        }
        for (id, shows) in due {
            let now = self.now;
            self.state.jobs.edit(&id, |job| {
                job.workpad.shows = Some(shows.clone());
                job.workpad.written_at = Some(now);
            });
            self.state.unshown.remove(&id);
            self.emit(Some(&id), Action::WriteWorkpad { shows });
        }
        // That it was written is not news to show.
        self.state.jobs.take_dirty();
    }
}

/// Sorts by time, differs between ledgers, and needs no randomness.
fn run_id(now: Timestamp, seed: u64, number: u64) -> RunId {
    let millis = u64::try_from(now.0).unwrap_or(0);
    let tail = (u128::from(seed) << 16) | u128::from(number & 0xffff);
    RunId::new(ulid::Ulid::from_parts(millis, tail).to_string())
}
