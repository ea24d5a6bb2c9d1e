//! Live runs: their start, their progress, their end, and the runs of an earlier life of the runner.

use std::path::PathBuf;
use std::time::Duration;

use super::budget::{self, Level};
use super::effect::{Action, Said, Steering};
use super::event::LostRun;
use super::fingerprint;
use super::limits;
use super::phases::moves::hope_again;
use super::phases::{self, Observation};
use super::quota;
use super::state::{PendingStatus, State};
use super::step::Step;
use crate::domain::failure::{RunFailure, TurnError};
use crate::domain::ids::{CommitId, EffectId, RunId, TicketId};
use crate::domain::job::{Job, Stage};
use crate::domain::phase::Phase;
use crate::domain::run::{
    Activity, FinishedRun, Life, LiveRun, ProcessMark, RunKind, RunOutcome, RunReport, StopReason,
};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

impl Step<'_> {
    /// Settles what an earlier life left: its runs are lost, and its unconfirmed effects are done again.
    pub fn recovered(&mut self, mut lost: Vec<LostRun>) {
        // Once a life: a second recovery would declare live runs dead.
        if self.state.recovered {
            return;
        }
        self.state.recovered = true;
        // Listed before anything new is decided, because the effects of this step need no repetition.
        let again: Vec<EffectId> = self
            .state
            .outbox
            .iter()
            .filter(|(_, pending)| pending.status == PendingStatus::InFlight)
            .map(|(id, _)| *id)
            .collect();
        self.state.jobs.mark_all_dirty();
        self.hope_for_directories();
        // The workflow file may have been corrected while no runner was up.
        if self.is_another_workflow() {
            self.retry_after_workflow_change();
        }
        let unnamed: Vec<RunId> =
            self.state.runs.keys().filter(|run| !lost.iter().any(|named| named.run == **run)).cloned().collect();
        lost.extend(unnamed.into_iter().map(|run| LostRun { run, salvage: None, head: None, spent: None }));
        for LostRun { run, salvage, head, spent } in lost {
            let mut report = RunReport::bare(RunOutcome::Failed { failure: RunFailure::Lost });
            report.salvage = salvage;
            report.head = head;
            // What the run spent after its last checkpoint in the ledger.
            let known = self.state.runs.get(&run).map(|live| live.progress.usage).unwrap_or_default();
            report.unreported_usage = spent.unwrap_or_default().beyond(&known);
            self.run_finished(run, report);
        }
        let orphans: Vec<(TicketId, RunId)> = self
            .state
            .jobs
            .iter()
            .filter_map(|(id, job)| job.stage.run().map(|run| (id.clone(), run.clone())))
            .filter(|(_, run)| !self.state.runs.contains(run))
            .collect();
        for (id, _) in orphans {
            let report = RunReport::bare(RunOutcome::Failed { failure: RunFailure::Lost });
            self.decide(&id, Observation::RunEnded { report });
        }
        self.look_at_hindered_merges_again();
        for id in again {
            let Some(pending) = self.state.outbox.get(&id) else { continue };
            let merges = matches!(pending.effect.action, Action::MergePr { .. });
            if matches!(pending.effect.action, Action::StartRun { .. }) || self.is_pointless(pending) {
                self.drop_effect(id);
            } else if let (true, Some(ticket)) = (merges, pending.effect.ticket.clone()) {
                // Much may have been said since the merge was decided.
                self.merge_maybe_done(id, &ticket, "the runner was stopped");
            } else {
                self.hand_over(id);
            }
        }
    }

    /// Handles that the runner itself was not running: the silence of that time is not counted against any agent.
    pub fn was_away(&mut self, away: Duration) {
        let later = |at: Timestamp| (at + away).min(self.now);
        let runs: Vec<RunId> = self.state.runs.keys().cloned().collect();
        for id in &runs {
            self.state.runs.edit(id, |run| {
                // Nor is that time counted as run time, which the deadline for a fresh start and the caps use.
                run.started_at = later(run.started_at);
                run.progress.last_event_at = later(run.progress.last_event_at);
                run.progress.tool_open_since = run.progress.tool_open_since.map(later);
            });
        }
        self.note(None, "away", format!("the runner itself did not run for {} s", away.as_secs()));
    }

    /// Lets merges that were hindered be tried at once. Restarting the runner may have followed the removal of the cause.
    fn look_at_hindered_merges_again(&mut self) {
        let ready: Vec<TicketId> = self.state.jobs.index().in_phase(Phase::ReadyToMerge).cloned().collect();
        let now = self.now;
        for id in ready {
            self.state.jobs.edit(&id, |job| hope_again(job, now));
        }
    }

    pub fn run_started(&mut self, run: RunId, process: ProcessMark, worktree: PathBuf, head: Option<CommitId>) {
        let Some(live) = self.state.runs.get(&run) else { return };
        if matches!(live.life, Life::Running { .. }) {
            return;
        }
        let (ticket, attempt, branch, kind) = (live.ticket.clone(), live.attempt, live.branch.clone(), live.kind);
        let now = self.now;
        self.state.runs.edit(&run, |live| {
            live.life = Life::Running { process, worktree, session: None };
            live.progress.last_event_at = now;
            live.head_before.clone_from(&head);
        });
        self.start_confirmed(&run);
        let (State { jobs, base, .. }, policy) = (&mut *self.state, self.policy);
        jobs.edit(&ticket, |job| {
            if head.is_some() && kind != RunKind::Review {
                job.delivery.head = head;
            }
            job.evidence.started_with = Some(fingerprint::of(job, base.as_ref(), policy));
        });
        // Said only once: status and workpad show a further attempt, and a rework was said together with its reason.
        let news = |job: &Job| kind == RunKind::Implement && job.failures == 0 && job.continuations == 0;
        if self.state.jobs.get(&ticket).is_some_and(news) {
            let said = Said::Started { run: run.clone(), attempt, branch };
            self.emit(Some(&ticket), Action::Comment { key: format!("started:{run}"), said });
        }
        if let Some(Stage::Working { stopping: Some(reason), .. }) = self.state.jobs.get(&ticket).map(|job| &job.stage)
        {
            // The stop may have come before there was a process to be stopped.
            let reason = reason.clone();
            self.emit(Some(&ticket), Action::StopRun { run, reason });
        }
    }

    /// Removes the start's effect after the start was confirmed. Whether the prompt reached the agent is reported separately.
    fn start_confirmed(&mut self, run: &RunId) {
        if let Some(id) = self.start_effect(run) {
            self.forget_effect(id);
        }
    }

    fn start_effect(&self, wanted: &RunId) -> Option<EffectId> {
        self.state.outbox.start_of(wanted)
    }

    pub fn run_progress(&mut self, run: RunId, activity: Activity) {
        let Some(live) = self.state.runs.get(&run) else { return };
        let (ticket, pool, turns_before, kind) =
            (live.ticket.clone(), live.pool.clone(), live.progress.turns, live.kind);
        self.state.changes.soft = true;
        self.note_progress(&run, &activity);
        match activity {
            Activity::Agent { usage, .. } => {
                // Turns are counted only by `TurnEnded`.
                self.spend(&run, Usage { turns: 0, ..usage });
            }
            Activity::Doing { .. } => {}
            Activity::SessionKnown { session } => {
                self.state.runs.edit(&run, |live| {
                    if let Life::Running { session: known, .. } = &mut live.life {
                        *known = Some(session.clone());
                    }
                });
                self.state.jobs.edit(&ticket, |job| {
                    let own =
                        if kind == RunKind::Review { &mut job.delivery.reviews.session } else { &mut job.session };
                    *own = Some(session);
                });
            }
            Activity::TurnEnded { turns } => {
                let more = turns.saturating_sub(turns_before);
                self.spend(&run, Usage { turns: more, ..Usage::default() });
            }
            Activity::RateLimited { limit } => {
                self.state.meta.pools.entry(pool).or_default().rate_limit = Some(limit);
            }
            // A reviewer's commits are discarded with its worktree.
            Activity::Committed { .. } if kind == RunKind::Review => {}
            Activity::Committed { head } => {
                self.state.jobs.edit(&ticket, |job| {
                    job.delivery.head = Some(head);
                    job.delivery.made_commits(&run);
                });
            }
            Activity::Proved { evidence } => {
                let text = serde_json::to_string(&evidence).unwrap_or_default();
                self.note(Some(&ticket), "evidence", text);
            }
            Activity::Commented { text } | Activity::Planned { text } => {
                let key = format!("worker:{run}:{}", self.state.meta.next_effect);
                self.emit(Some(&ticket), Action::Comment { key, said: Said::Worker { run, text } });
            }
            Activity::MovedTicket { from, to, step } => self.worker_moves(&ticket, &run, from, to, step),
            Activity::Wrote { what } => self.note(Some(&ticket), "worker_wrote", format!("run {run} wrote {what}")),
            Activity::FollowUp { ticket: new, key } => {
                if self.policy.gates.allow_followups {
                    self.emit(Some(&ticket), Action::CreateTicket { key, new });
                } else {
                    self.note(Some(&ticket), "followup_refused", "gates.allow_followups is off: no ticket was created");
                }
            }
            Activity::Delivered { remarks } => self.remarks_delivered(&ticket, &run, &remarks),
            Activity::NotDelivered { remarks } => self.remarks_returned(&ticket, &run, &remarks),
            Activity::AnsweredRemark { remark, answer } => {
                self.remark_answered(&ticket, &run, &remark, answer);
            }
            Activity::Asked { question } => {
                let key = format!("asked:{run}:{}", self.state.meta.next_effect);
                self.emit(Some(&ticket), Action::Comment { key, said: Said::Asked { run, question } });
            }
        }
    }

    /// Notes in the run's own progress what an activity reports.
    fn note_progress(&mut self, run: &RunId, activity: &Activity) {
        let now = self.now;
        self.state.runs.progress(run, |live| {
            let progress = &mut live.progress;
            progress.last_event_at = now;
            match activity {
                Activity::Agent { usage, tool_open_since, said } => {
                    progress.tool_open_since = *tool_open_since;
                    // A mere echo of what the agent was told is not work.
                    if usage.tokens() > 0 || tool_open_since.is_some() {
                        progress.nudged = false;
                    }
                    if tool_open_since.is_none() {
                        progress.waiting_for_answer = false;
                    }
                    if said.is_some() {
                        progress.said.clone_from(said);
                    }
                }
                Activity::Doing { model, tool } => {
                    if model.is_some() {
                        progress.model.clone_from(model);
                    }
                    progress.tool.clone_from(tool);
                }
                Activity::TurnEnded { turns } => progress.turns = progress.turns.max(*turns),
                Activity::RateLimited { limit } => progress.rate_limit = Some(limit.clone()),
                Activity::Committed { .. } | Activity::Proved { .. } | Activity::AnsweredRemark { .. } => {
                    progress.has_commit_or_evidence = true;
                }
                Activity::Commented { text } | Activity::Planned { text } => progress.said = Some(text.clone()),
                Activity::Asked { .. } => progress.waiting_for_answer = true,
                Activity::SessionKnown { .. }
                | Activity::MovedTicket { .. }
                | Activity::Wrote { .. }
                | Activity::FollowUp { .. }
                | Activity::Delivered { .. }
                | Activity::NotDelivered { .. } => {}
            }
        });
    }

    /// Adds usage to the run, the day, the total and the ticket, and warns or stops the run where a cap is near or reached.
    fn spend(&mut self, run: &RunId, usage: Usage) {
        let counted = self.state.runs.progress(run, |live| {
            live.progress.usage += usage;
            live.ticket.clone()
        });
        let Some(ticket) = counted else { return };
        self.pool_works(run, &usage);
        self.roll_day();
        self.state.meta.daily.usage += usage;
        self.state.meta.total += usage;
        self.state.jobs.spend(&ticket, usage);
        self.brake(run);
    }

    /// Notes that a run of the pool gets through, because it spends tokens or ends a turn. The other runs of the pool may follow.
    fn pool_works(&mut self, run: &RunId, usage: &Usage) {
        let Some(pool) = self.state.runs.get(run).map(|live| live.pool.clone()) else { return };
        let now = self.now;
        let works = usage.tokens() > 0 || usage.turns > 0;
        if works && self.state.meta.pools.get_mut(&pool).is_some_and(|pool| quota::got_through(pool, now)) {
            self.state.changes.meta = true;
            self.settle_all_the_same = true;
        }
    }

    pub fn roll_day(&mut self) {
        let today = self.policy.budget.days.day(self.now);
        // A clock that jumps back must not clear the day's account.
        if today > self.state.meta.daily.day {
            self.state.meta.daily = super::state::Daily { day: today, ..Default::default() };
            self.state.changes.meta = true;
        }
    }

    /// Tells a run at 80 % of a cap to wrap up, and stops it at 100 %.
    pub fn brake(&mut self, run: &RunId) {
        let Some(live) = self.state.runs.get(run) else { return };
        let Some(job) = self.state.jobs.get(&live.ticket) else { return };
        if matches!(job.stage, Stage::Working { stopping: Some(_), .. }) {
            return;
        }
        let elapsed = self.now.since(live.started_at);
        let on_ticket = elapsed + std::time::Duration::from_millis(job.spending.run_ms_since_reset);
        let today = Duration::from_millis(self.state.meta.daily.run_ms).saturating_add(self.live_today());
        let levels = [
            budget::level(&self.policy.budget.ticket, &job.spending.since_reset, on_ticket),
            budget::level(&self.policy.budget.daily, &self.state.meta.daily.usage, today),
        ];
        let told = live.progress.told_to_wrap_up;
        let ticket = live.ticket.clone();
        let exceeded = levels.iter().position(|level| matches!(level, Level::Exceeded { .. }));
        if let Some(which) = exceeded {
            if let Level::Exceeded { what, figure, cap } = levels[which].clone() {
                let reason =
                    if which == 0 { StopReason::Budget { what, figure, cap } } else { StopReason::DailyBudget };
                self.stop_run(&ticket, reason);
            }
            return;
        }
        if let (false, Some(Level::Nearly { what, figure, cap })) =
            (told, levels.into_iter().find(|level| matches!(level, Level::Nearly { .. })))
        {
            self.state.runs.progress(run, |live| live.progress.told_to_wrap_up = true);
            let how = Steering::WrapUp { spent: format!("{what}: {figure} of {cap}") };
            self.emit(Some(&ticket), Action::Steer { run: run.clone(), how });
        }
    }

    /// Returns how long the live runs have been running, or zero if no daily cap on run time is set.
    pub fn live_today(&self) -> Duration {
        if self.policy.budget.daily.max_run.is_none() {
            return Duration::ZERO;
        }
        self.state.runs.values().fold(Duration::ZERO, |sum, run| sum.saturating_add(self.now.since(run.started_at)))
    }

    /// Sends one message to an agent that has been silent, before the silence ends its run.
    pub fn nudge(&mut self, run: &RunId) {
        let (policy, now) = (self.policy, self.now);
        let quiet = |live: &LiveRun| limits::quiet_since(live, &policy.agent, now);
        let Some(since) = self.state.runs.get(run).and_then(quiet) else { return };
        // Every silence is noted, so that it is shown and wakes the engine once. Another nudge needs work since the last one.
        let noticed = self.state.runs.edit(run, |live| {
            live.progress.quiet_noticed = Some(since);
            (live.ticket.clone(), std::mem::replace(&mut live.progress.nudged, true))
        });
        self.state.changes.soft = true;
        let Some((ticket, false)) = noticed else { return };
        let silent_s = now.since(since).as_secs();
        self.note(Some(&ticket), "quiet", format!("run {run} has been silent for {silent_s} s"));
        self.emit(Some(&ticket), Action::Steer { run: run.clone(), how: Steering::Nudge { silent_s } });
    }

    pub fn stop_run(&mut self, ticket: &TicketId, reason: StopReason) {
        self.decide_with(ticket, |job, out| phases::stop(job, reason, out));
    }

    pub fn run_finished(&mut self, run: RunId, mut report: RunReport) {
        let Some(mut live) = self.state.runs.remove(&run) else { return };
        if report.head_before.is_none() {
            report.head_before.clone_from(&live.head_before);
        }
        let ticket = live.ticket.clone();
        if let Some(id) = self.start_effect(&run) {
            self.forget_effect(id);
        }
        // A lost run ended when it was last heard of, not when the next life found it.
        let lost = matches!(report.outcome, RunOutcome::Failed { failure: RunFailure::Lost });
        let ended = if lost { live.progress.last_event_at } else { self.now };
        let ran = ended.since(live.started_at).as_millis() as u64;
        self.roll_day();
        let more_turns = report.turns.saturating_sub(live.progress.turns);
        let usage = Usage { turns: more_turns, ..report.unreported_usage };
        live.progress.usage += usage;
        live.progress.turns = live.progress.turns.max(report.turns);
        let meta = &mut self.state.meta;
        meta.daily.usage += usage;
        meta.daily.run_ms = meta.daily.run_ms.saturating_add(ran);
        meta.total += usage;
        meta.total_run_ms = meta.total_run_ms.saturating_add(ran);
        self.state.changes.meta = true;
        self.settle_pool(&live, &report);
        let finished = FinishedRun { run: live, ended_at: self.now, report: report.clone() };
        self.state.changes.finished.push(finished);
        let is_current = self.state.jobs.edit(&ticket, |job| {
            job.spending.total += usage;
            job.spending.since_reset += usage;
            job.spending.run_ms = job.spending.run_ms.saturating_add(ran);
            job.spending.run_ms_since_reset = job.spending.run_ms_since_reset.saturating_add(ran);
            job.stage.run() == Some(&run)
        });
        self.worker_moves_no_more(&ticket, &run);
        // An event for a run that is over changes nothing.
        if is_current == Some(true) {
            self.decide(&ticket, Observation::RunEnded { report });
        }
    }

    fn settle_pool(&mut self, live: &LiveRun, report: &RunReport) {
        match &report.outcome {
            RunOutcome::Failed { failure: RunFailure::Turn { class: TurnError::RateLimit, reset_at, detail } } => {
                let pool = self.state.meta.pools.entry(live.pool.clone()).or_default();
                quota::pause(pool, *reset_at, self.now);
                let wait = pool.paused_until.map_or(0, |until| until.since(self.now).as_secs());
                let text = format!("the usage limit of `{}` is reached for {wait} s: {detail}", live.pool);
                self.note(Some(&live.ticket), "quota", text);
                let others: Vec<(RunId, TicketId)> = self
                    .state
                    .runs
                    .values()
                    .filter(|run| run.pool == live.pool)
                    .map(|run| (run.id.clone(), run.ticket.clone()))
                    .collect();
                for (run, ticket) in others {
                    self.emit(Some(&ticket), Action::Steer { run, how: Steering::StopAfterTurn });
                }
            }
            RunOutcome::Done => {
                if let Some(pool) = self.state.meta.pools.get_mut(&live.pool) {
                    pool.guesses = 0;
                    quota::got_through(pool, self.now);
                }
            }
            _ => {}
        }
    }
}
