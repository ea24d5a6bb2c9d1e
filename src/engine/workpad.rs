//! What the workpad (the runner's comment on a ticket) shows, as data. It is written only when something meaningful changed.

use std::collections::BTreeSet;

use serde_json::json;

use super::effect::Action;
use super::hindrance;
use super::quota;
use super::state::{PendingStatus, ShownUnder, State};
use super::step::Step;
use crate::config::policy::Policy;
use crate::domain::ids::TicketId;
use crate::domain::job::{Hindrance, Job, Stage};
use crate::domain::time::Timestamp;

impl Step<'_> {
    /// Compares workpads with what they should show: those of jobs that changed, and those that had to wait after their last write.
    pub fn write_workpads(&mut self, mut changed: BTreeSet<TicketId>) {
        if !self.policy.orchestration.workpad {
            self.state.workpads.clear();
            return;
        }
        let shown = shown_by_all(self.state, self.policy, self.now);
        if shown != self.state.shown_under {
            let index = self.state.jobs.index();
            changed.extend(index.begun.iter().cloned());
            self.state.shown_under = shown;
        }
        changed.extend(self.state.workpads.due(self.now));
        for id in &changed {
            self.write_workpad(id);
        }
    }

    fn write_workpad(&mut self, id: &TicketId) {
        self.state.workpads.remove(id);
        let Some(job) = self.state.jobs.get(id).filter(|job| job.attempts > 0) else { return };
        let shows = shows(self.state, self.policy, job, self.now);
        // Nothing is written until the last write is answered.
        if job.workpad.shows.as_deref() == Some(shows.as_str()) || is_in_flight(self.state, id) {
            return;
        }
        let next_write = job.workpad.written_at.map(|at| at + self.policy.orchestration.workpad_min_interval);
        if let Some(at) = next_write.filter(|at| *at > self.now) {
            self.state.workpads.set(id, Some(at));
            return;
        }
        let now = self.now;
        self.state.jobs.edit(id, |job| {
            job.workpad.shows = Some(shows.clone());
            job.workpad.written_at = Some(now);
        });
        self.emit(Some(id), Action::WriteWorkpad { shows });
    }
}

/// Returns what all workpads have in common.
fn shown_by_all(state: &State, policy: &Policy, now: Timestamp) -> ShownUnder {
    let paused = state.meta.pools.iter().filter(|(_, pool)| quota::paused_until(Some(pool), now).is_some());
    ShownUnder {
        paused_pools: paused.map(|(name, _)| name.clone()).collect(),
        day_is_spent: hindrance::day_is_spent(state, policy, now).is_some(),
    }
}

/// Returns the meaningful content, without any time in it.
fn shows(state: &State, policy: &Policy, job: &Job, now: Timestamp) -> String {
    let since = job.stage.since();
    let reason = match hindrance::of_job(state, policy, job, now).filter(is_worth_showing) {
        Some(hindrance) => job.stage.hindered_reason(&hindrance, since),
        None => job.stage.reason(since),
    };
    let waiting = matches!(job.stage, Stage::Queued { .. } | Stage::Blocked { .. } | Stage::WaitingForHuman { .. });
    json!({
        "schema_version": 1,
        "phase": job.stage.phase().name(),
        "rework_cycles": job.rework_cycles,
        "branch": job.delivery.branch.name,
        "pr": job.delivery.pr.as_ref().map(|pr| json!({"number": pr.number.0, "url": pr.url, "head": pr.head})),
        "review": { "passes": job.delivery.reviews.passes, "head": job.delivery.reviews.head },
        "merge": { "approved_head": job.people.approved_head() },
        "waiting": if waiting { Some(reason.code) } else { None },
        "observation": reason.code,
    })
    .to_string()
}

/// Whether a workpad shows this hindrance. One that passes with the next run is not worth a write, and under the others nothing can be
/// written.
fn is_worth_showing(hindrance: &Hindrance) -> bool {
    match hindrance {
        Hindrance::Quota { .. }
        | Hindrance::DailyBudget { .. }
        | Hindrance::MergeDisabled
        | Hindrance::RolloutForbids => true,
        Hindrance::QuotaTrial { .. }
        | Hindrance::Slot
        | Hindrance::StateSlot { .. }
        | Hindrance::Behind { .. }
        | Hindrance::Switch { .. }
        | Hindrance::Observe
        | Hindrance::Preflight
        | Hindrance::Tracker
        | Hindrance::ShuttingDown => false,
    }
}

fn is_in_flight(state: &State, ticket: &TicketId) -> bool {
    state.outbox.of_ticket(ticket).any(|pending| {
        matches!(pending.effect.action, Action::WriteWorkpad { .. }) && pending.status == PendingStatus::InFlight
    })
}
