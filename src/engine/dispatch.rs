//! Starts runs, as long as there are slots: each time the first job among the lines that are open. A line holds jobs that need the same
//! credentials and column.

use std::time::Duration;

use super::budget::{self, Level};
use super::delivery;
use super::effect::Action;
use super::fingerprint;
use super::hindrance;
use super::phases::look_again;
use super::reviewing;
use super::route;
use super::step::Step;
use crate::domain::ids::{RunId, TicketId};
use crate::domain::job::{BlockCause, LastingDirectory, Stage, Wait, Work};
use crate::domain::pr::PrState;
use crate::domain::run::{Life, LiveRun, Progress, RunKind};
use crate::domain::time::Timestamp;

impl Step<'_> {
    pub fn dispatch(&mut self) {
        if !self.state.jobs.is_anybody_in_line() || hindrance::of_starts(self.state, self.policy, self.now).is_some() {
            return;
        }
        loop {
            let open = |line: &_| hindrance::of_line(self.state, self.policy, line, self.now).is_none();
            let Some(id) = self.state.jobs.first_in_line(open).cloned() else { return };
            if !self.start(&id) {
                // A job that cannot start after all does not hold up its line.
                self.state.jobs.leave_line(&id);
            }
        }
    }

    /// Starts a run, unless the budget is spent, nothing is new or another head has replaced the one at hand. Returns whether it started.
    fn start(&mut self, id: &TicketId) -> bool {
        let Some(job) = self.state.jobs.get(id) else { return false };
        let Stage::Queued { work, .. } = job.stage.clone() else { return false };
        let spent = Duration::from_millis(job.spending.run_ms_since_reset);
        if let Level::Exceeded { what, figure, cap } =
            budget::level(&self.policy.budget.ticket, &job.spending.since_reset, spent)
        {
            let cause = BlockCause::BudgetExceeded { what, figure, cap };
            self.decide_with(id, |job, out| out.block(job, cause, work));
            return false;
        }
        if let Some(no_progress_with) = job.evidence.no_progress_with.clone() {
            let fingerprint = fingerprint::of(job, self.state.base.as_ref(), self.policy);
            if no_progress_with == fingerprint {
                let cause = BlockCause::NoNewEvidence { fingerprint: Box::new(fingerprint) };
                self.decide_with(id, |job, out| out.block(job, cause, work));
                return false;
            }
        }
        let shown =
            job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open).map(|pr| (pr.number, pr.head.clone()));
        if let Some((number, head)) = shown.filter(|(_, head)| delivery::is_overtaken(job, head)) {
            // A person pushed while a run was at the old head, or while the job was blocked.
            self.decide_with(id, |job, out| {
                delivery::overtaken(job, &head, out);
                out.act(Action::InspectPr { number });
            });
            return false;
        }
        if reviewing::is_overtaken(job) {
            // The head was replaced before a reviewer read it. What the new head needs is judged first.
            self.decide_with(id, |job, out| match job.delivery.pr.clone() {
                Some(pr) => look_again(job, &pr, out),
                None => out.queue(job, Work::Implement, Wait::Ready),
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
            progress: Progress { model: route.model.clone(), ..Progress::at_start(self.now) },
            life: Life::Spawning,
        };
        let action = Action::StartRun {
            run: run.clone(),
            work: work.clone(),
            attempt,
            branch: job.delivery.branch.name.clone(),
            resume: match &work {
                Work::Review { head } => reviewing::conversation(job, head),
                Work::Implement | Work::Rework { .. } => job.session.clone(),
            },
            route,
            // A reviewer changes nothing: what people want is for the next worker.
            undelivered: if work.kind() == RunKind::Review { Vec::new() } else { job.people.undelivered() },
        };
        self.state.runs.insert(live);
        self.state.changes.meta = true;
        self.decide_with(id, |job, out| {
            job.attempts = attempt;
            if out.policy.directories {
                job.directory = Some(LastingDirectory::default());
            }
            out.move_to(job, Stage::Working { work, run, stopping: None, since: out.now });
            // The start comes first, so that a column is not moved for a run that never started.
            out.actions.insert(0, action);
        });
        true
    }
}

/// Returns an id that sorts by time and differs between ledgers, made without randomness.
fn run_id(now: Timestamp, seed: u64, number: u64) -> RunId {
    let millis = u64::try_from(now.0).unwrap_or(0);
    let tail = (u128::from(seed) << 16) | u128::from(number & 0xffff);
    RunId::new(ulid::Ulid::from_parts(millis, tail).to_string())
}
