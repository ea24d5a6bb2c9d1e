//! What a transition wants besides the new stage: actions for its job and a note for `explain`.

use super::effect::{Action, Said};
use super::state::Note;
use crate::config::policy::Policy;
use crate::domain::ids::RunId;
use crate::domain::job::{BlockCause, Job, ReworkCause, Stage, Wait, Work};
use crate::domain::time::Timestamp;

/// Collected while one job is being decided on.
pub struct Decided<'a> {
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub actions: Vec<Action>,
    pub notes: Vec<Note>,
    /// The attempt that is over brought nothing: its like is not repeated before something is new.
    pub no_progress: bool,
}

impl<'a> Decided<'a> {
    pub fn new(policy: &'a Policy, now: Timestamp) -> Self {
        Self { policy, now, actions: Vec::new(), notes: Vec::new(), no_progress: false }
    }

    pub fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub fn note(&mut self, job: &Job, run: Option<&RunId>, code: &str, text: impl Into<String>) {
        self.notes.push(Note {
            at: self.now,
            ticket: Some(job.ticket.id.clone()),
            run: run.cloned(),
            code: code.to_owned(),
            text: text.into(),
        });
    }

    /// The only way a job changes its stage: with a note, and with the ticket's column following along.
    pub fn move_to(&mut self, job: &mut Job, stage: Stage) {
        let from = job.stage.phase();
        job.stage = stage;
        job.updated_at = self.now;
        let phase = job.stage.phase();
        let reason = job.reason(self.now);
        self.notes.push(Note {
            at: self.now,
            ticket: Some(job.ticket.id.clone()),
            run: job.stage.run().cloned(),
            code: reason.code.to_owned(),
            text: if from == phase {
                format!("{phase}: {}", reason.sentence)
            } else {
                format!("{from} -> {phase}: {}", reason.sentence)
            },
        });
        if from != phase {
            self.follow_with_column(job);
        }
    }

    /// The same place with other data: neither news nor another column.
    pub fn amend(&mut self, job: &mut Job, stage: Stage) {
        job.stage = stage;
        job.updated_at = self.now;
    }

    fn follow_with_column(&mut self, job: &Job) {
        let Some(state) = self.policy.orchestration.states.get(&job.stage.phase()) else { return };
        // Compared with where the ticket will be once our own moves are through.
        if !crate::domain::ticket::same_state(state, job.intended_column()) {
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
        let reason = job.reason(since);
        self.act(Action::Comment {
            key: format!("blocked:{}:{}", job.attempts, since.0),
            said: Said::Blocked { cause, sentence: reason.sentence, next: reason.next, detail: reason.detail },
        });
    }

    /// Another round, or the end of patience.
    pub fn rework(&mut self, job: &mut Job, cause: ReworkCause) {
        let limit = self.policy.orchestration.max_rework_cycles;
        if job.rework_cycles >= limit {
            let trigger = cause.trigger;
            self.block(job, BlockCause::ReworkLimitExceeded { limit, trigger }, Work::Rework { cause });
            return;
        }
        job.rework_cycles += 1;
        job.failures = 0;
        // Another round is another landing.
        job.delivery.update_attempts = 0;
        job.delivery.merge_attempts = 0;
        self.act(Action::Comment {
            key: format!("rework:{}:{}", job.attempts, job.rework_cycles),
            said: Said::Rework { cycle: job.rework_cycles, limit, cause: cause.clone() },
        });
        self.queue(job, Work::Rework { cause }, Wait::Ready);
    }
}
