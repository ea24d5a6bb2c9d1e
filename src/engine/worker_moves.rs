//! Moves of a ticket by its own worker, through the tracker's API. Each is noted as the worker's before it is sent, so that it is never
//! taken for a person's.

use super::step::Step;
use crate::domain::basis::WriteStatus;
use crate::domain::ids::{RunId, TicketId};
use crate::domain::job::{ColumnWrite, WorkerMove};
use crate::domain::run::MoveStep;

impl Step<'_> {
    pub fn worker_moves(&mut self, id: &TicketId, run: &RunId, from: String, to: String, step: MoveStep) {
        match step {
            MoveStep::Sent => {
                self.state.jobs.edit(id, |job| {
                    let before = vec![from.clone(), job.ticket.state.clone()];
                    let last = job.column.take();
                    job.column = Some(ColumnWrite::sent(before, to.clone(), last));
                    let moved = WorkerMove { run: run.clone(), from, state: to, taken_back: false };
                    job.moved_by_worker = Some(Box::new(moved));
                });
            }
            MoveStep::Done => {
                self.note(Some(id), "worker_moved", format!("run {run} moved the ticket from `{from}` to `{to}`"));
                self.ticket_moved(id, to, None);
            }
            MoveStep::Refused => {
                self.never_moved(id, &to);
                self.state.jobs.edit(id, |job| job.moved_by_worker = None);
            }
            MoveStep::MaybeDone => self.maybe_moved(id, &to),
        }
    }

    /// Marks a move by the worker of a finished run as uncertain if it was never answered.
    pub fn worker_moves_no_more(&mut self, id: &TicketId, run: &RunId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let Some(moved) = job.moved_by_worker.as_ref().filter(|moved| moved.run == *run) else { return };
        let unanswered = job.column.as_ref().is_some_and(|write| write.status == WriteStatus::Sent);
        let state = moved.state.clone();
        if unanswered {
            self.maybe_moved(id, &state);
        }
    }
}
