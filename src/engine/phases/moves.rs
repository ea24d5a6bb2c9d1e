//! The only place where a job's stage is written.

use crate::domain::job::{BlockCause, CheckWait, Job, MergeHold, ReworkCause, ReworkTrigger, Stage, Wait, Work};
use crate::domain::run::StopReason;
use crate::domain::ticket::same_state;
use crate::domain::time::Timestamp;
use crate::engine::decided::Decided;
use crate::engine::effect::{Action, Said};
use crate::engine::state::Note;

impl Decided<'_> {
    /// Moves the job to another stage, with a note. The ticket's column follows if the phase changes.
    pub fn move_to(&mut self, job: &mut Job, stage: Stage) {
        let from = job.stage.phase();
        self.leave_queues(job, &stage);
        job.stage = stage;
        job.updated_at = self.now;
        let phase = job.stage.phase();
        let reason = job.own_reason(self.now);
        self.notes.push(Note {
            at: self.now,
            ticket: Some(job.ticket.id.clone()),
            run: job.stage.run().cloned(),
            code: reason.code.to_owned(),
            text: if from == phase {
                format!("{}: {}", phase.words(), reason.sentence)
            } else {
                format!("{} → {}: {}", from.words(), phase.words(), reason.sentence)
            },
        });
        if from != phase {
            self.follow_with_column(job);
        }
    }

    /// Gives up the job's place in line if it steps aside, and takes it out of the forge's own queue.
    fn leave_queues(&mut self, job: &mut Job, stage: &Stage) {
        let lands =
            matches!(stage, Stage::WaitingForChecks { .. } | Stage::ReadyToMerge { .. } | Stage::Merging { .. });
        if !lands {
            job.delivery.in_line_since = None;
            job.delivery.landing_since = None;
        }
        let stays = matches!(stage, Stage::WaitingForChecks { on: CheckWait::ForgeQueue { .. }, .. });
        match stage {
            Stage::Done { .. } => job.delivery.in_forge_queue = false,
            _ if !stays => self.leave_forge_queue(job),
            _ => {}
        }
    }

    /// Takes the pull request out of the forge's own queue if it is in there.
    pub fn leave_forge_queue(&mut self, job: &mut Job) {
        let was_queued = std::mem::take(&mut job.delivery.in_forge_queue);
        if let (true, Some(pr)) = (was_queued, &job.delivery.pr) {
            self.act(Action::Dequeue { number: pr.number });
        }
    }

    /// Changes the data of the stage: no note, and no other column.
    pub fn amend(&mut self, job: &mut Job, stage: Stage) {
        job.stage = stage;
        job.updated_at = self.now;
    }

    fn follow_with_column(&mut self, job: &Job) {
        let Some(state) = self.policy.orchestration.states.get(&job.stage.phase()) else { return };
        // Compared with where the ticket will be once the runner's own moves have arrived.
        if !same_state(state, job.intended_column()) {
            self.move_ticket(job, state);
        }
    }

    pub fn move_ticket(&mut self, job: &Job, state: &str) {
        let from = vec![job.ticket.state.clone(), job.intended_column().to_owned()];
        self.act(Action::MoveTicket { from, state: state.to_owned() });
    }

    pub fn queue(&mut self, job: &mut Job, work: Work, wait: Wait) {
        let since = self.now;
        self.move_to(job, Stage::Queued { work, wait, since });
    }

    pub fn block(&mut self, job: &mut Job, cause: BlockCause, resume: Work) {
        let since = self.now;
        self.move_to(job, Stage::Blocked { cause: cause.clone(), resume, since });
        let reason = job.in_comments_too(job.own_reason(since), &self.policy.tracker.mention);
        self.act(Action::Comment {
            key: format!("blocked:{}:{}", job.attempts, since.0),
            said: Said::Blocked { cause, sentence: reason.sentence, next: reason.next, detail: reason.detail },
        });
    }

    /// Starts another round of rework, or blocks the job if the limit is reached.
    pub fn rework(&mut self, job: &mut Job, cause: ReworkCause) {
        let by_bot = cause.trigger == ReworkTrigger::Bot;
        let limit = if by_bot { 1 } else { self.policy.orchestration.max_rework_cycles };
        if !by_bot && job.rework_cycles >= limit {
            let trigger = cause.trigger;
            self.block(job, BlockCause::ReworkLimitExceeded { limit, trigger }, Work::Rework { cause });
            return;
        }
        // The bots' round has a counter of its own.
        let cycle = if by_bot {
            job.people.bots_are_heard();
            job.people.bot_rounds
        } else {
            job.rework_cycles += 1;
            job.rework_cycles
        };
        job.delivery.rework_head = None;
        job.failures = 0;
        // Another round leads to another landing.
        job.delivery.update_attempts = 0;
        job.delivery.merge_attempts = 0;
        self.act(Action::Comment {
            // The key contains the time, because a round that a person's push made unnecessary is not counted, and the next one must be
            // announced.
            key: format!("rework:{}:{}:{}", job.attempts, job.rework_cycles, self.now.0),
            said: Said::Rework { cycle, limit, cause: cause.clone() },
        });
        self.queue(job, Work::Rework { cause }, Wait::Ready);
    }
}

/// Sets what a queued job waits for: no note, and no other column.
pub fn set_wait(job: &mut Job, want: Wait) {
    if let Stage::Queued { wait, .. } = &mut job.stage {
        *wait = want;
    }
}

/// Notes the reason for which the job's live run is asked to stop.
pub fn set_stopping(job: &mut Job, reason: StopReason, now: Timestamp) {
    if let Stage::Working { stopping, .. } = &mut job.stage {
        *stopping = Some(reason);
        job.updated_at = now;
    }
}

/// Notes that the ticket of a finished job was seen closed. From now on a reopened ticket starts anew.
pub fn saw_ticket_closed(job: &mut Job) {
    if let Stage::Done { ticket_closed, .. } = &mut job.stage {
        *ticket_closed = true;
    }
}

/// Clears the turn and the waiting time of a ready job: the look that it waited for will not come any more, and what was in the way may be
/// gone.
pub fn hope_again(job: &mut Job, now: Timestamp) {
    if let Stage::ReadyToMerge { hold, turn, .. } = &mut job.stage {
        if let MergeHold::Forge { retry_at, .. } = hold {
            *retry_at = now;
        }
        *turn = None;
    }
}
