//! What the comment on the ticket shows, as data; written only when something meaningful changed.

use serde_json::json;

use super::effect::Action;
use super::state::{PendingStatus, State};
use crate::config::policy::Policy;
use crate::domain::ids::TicketId;
use crate::domain::job::{Job, Stage};
use crate::domain::time::Timestamp;

/// The meaningful content, without any time in it.
pub fn shows(job: &Job) -> String {
    let reason = job.stage.reason(job.stage.since());
    let waiting = matches!(job.stage, Stage::Queued { .. } | Stage::Blocked { .. } | Stage::WaitingForHuman { .. });
    json!({
        "schema_version": 1,
        "phase": job.stage.phase().name(),
        "rework_cycles": job.rework_cycles,
        "branch": job.delivery.branch.name,
        "pr": job.delivery.pr.as_ref().map(|pr| json!({"number": pr.number.0, "url": pr.url, "head": pr.head})),
        "review": { "passes": job.delivery.review_passes, "head": job.delivery.reviewed_head },
        "merge": { "approved_head": job.people.approved_head() },
        "waiting": if waiting { Some(reason.code) } else { None },
        "observation": reason.code,
    })
    .to_string()
}

/// The earliest time of the next write.
pub fn next_write(job: &Job, policy: &Policy) -> Option<Timestamp> {
    job.workpad.written_at.map(|at| at + policy.orchestration.workpad_min_interval)
}

/// The answer to the last write is still to come; until then there is nothing to do.
pub fn is_in_flight(state: &State, ticket: &TicketId) -> bool {
    state.outbox.of_ticket(ticket).any(|pending| {
        matches!(pending.effect.action, Action::WriteWorkpad { .. }) && pending.status == PendingStatus::InFlight
    })
}
