//! What a transition wants besides the new stage: actions for its job and notes for `explain`.

use super::effect::Action;
use super::state::Note;
use crate::config::policy::Policy;
use crate::domain::ids::RunId;
use crate::domain::job::Job;
use crate::domain::time::Timestamp;

/// Collects actions and notes while one job is being decided on.
pub struct Decided<'a> {
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub actions: Vec<Action>,
    pub notes: Vec<Note>,
    /// Whether the finished attempt achieved nothing, so that it is not repeated until something is new.
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
}
