//! The funnel: one event in, the state changed, the effects out. Nothing else in the program changes the state.

use super::decided::Decided;
use super::effect::{Action, Effect};
use super::event::{Event, OperatorCommand};
use super::fingerprint;
use super::phases::{self, Observation};
use super::state::{Note, Pending, PendingStatus, State};
use crate::config::policy::Policy;
use crate::domain::ids::{EffectId, TicketId};
use crate::domain::job::{HumanMessage, Pause, Stage, Wait};
use crate::domain::time::Timestamp;

/// Advances the machine by one event. Never panics, whatever the order; late news change nothing.
pub fn step(state: &mut State, policy: &Policy, now: Timestamp, event: Event) -> Vec<Effect> {
    let mut step = Step { state, policy, now, effects: Vec::new() };
    let light = matches!(event, Event::RunProgress { .. });
    step.handle(event);
    if !light {
        step.settle();
    }
    step.effects
}

/// One step under way.
pub(super) struct Step<'a> {
    pub state: &'a mut State,
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub effects: Vec<Effect>,
}

impl Step<'_> {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Recovered { lost } => self.recovered(lost),
            Event::Polled { tickets, base } => self.polled(tickets, base),
            Event::PolledUnchanged { base } => self.polled_unchanged(base),
            Event::PollFailed { error } => self.state.tracker.last_error = Some(error),
            Event::TicketsRefreshed { asked, tickets } => self.refreshed(asked, tickets),
            Event::RunStarted { run, process, worktree, base: _, head } => {
                self.run_started(run, process, worktree, head)
            }
            Event::RunProgress { run, activity } => self.run_progress(run, activity),
            Event::RunFinished { run, report } => self.run_finished(run, report),
            Event::PrObserved { ticket, pr } => self.pr_observed(ticket, pr),
            Event::EffectDone { effect, result } => self.effect_done(effect, result),
            Event::EffectFailed { effect, error } => self.effect_failed(effect, error),
            Event::SwitchesChanged { file } => self.switch_file(file),
            Event::PolicyReloaded => {
                self.note(None, "policy", "the workflow was reloaded");
                self.retry_after_workflow_change();
                self.doubt_workpads();
            }
            Event::WasAway { away } => self.was_away(away),
            Event::TimerFired => {}
            Event::Operator { command, by } => self.operator(command, by),
            Event::HumanSaid { ticket, word } => self.human_said(ticket, word),
            Event::Shutdown => {
                self.state.shutting_down = true;
                self.note(None, "shutdown", "shutting down: live runs are stopped and their work is saved");
            }
        }
    }

    /// Applies an observation to a job and takes over what it decided.
    pub fn decide(&mut self, id: &TicketId, observation: Observation) {
        let Some(job) = self.state.jobs.get_mut(id) else { return };
        if observation == Observation::TicketActive && !phases::comes_back(&job.stage) {
            return;
        }
        let before = job.clone();
        let mut out = Decided::new(self.policy, self.now);
        phases::observe(job, observation, &mut out);
        if job.no_progress_with.as_deref() == Some(fingerprint::MARK_CURRENT) {
            // What the attempt was started with counts: news that came meanwhile are news to the next one.
            let started_with = job.started_with.clone();
            job.no_progress_with =
                started_with.or_else(|| Some(fingerprint::of(job, self.state.base.as_ref(), self.policy)));
        }
        let changed = *job != before;
        self.absorb(id, out, changed);
    }

    /// Takes over actions and notes that were decided on a job.
    pub fn absorb(&mut self, id: &TicketId, out: Decided<'_>, changed: bool) {
        let Decided { actions, notes, .. } = out;
        if changed {
            self.touch(id);
        }
        self.state.changes.notes.extend(notes);
        for action in actions {
            self.emit(Some(id), action);
        }
    }

    pub fn touch(&mut self, id: &TicketId) {
        self.state.changes.jobs.insert(id.clone());
        if self.policy.orchestration.workpad {
            self.state.unshown.insert(id.clone());
        }
    }

    /// After a restart or a new workflow every workpad may be out of date.
    pub fn doubt_workpads(&mut self) {
        if self.policy.orchestration.workpad {
            self.state.unshown = self.state.jobs.keys().cloned().collect();
        }
    }

    pub fn note(&mut self, ticket: Option<&TicketId>, code: &str, text: impl Into<String>) {
        self.state.changes.notes.push(Note {
            at: self.now,
            ticket: ticket.cloned(),
            run: None,
            code: code.to_owned(),
            text: text.into(),
        });
    }

    /// Hands an action to the runtime; a durable one is written down first. What the permit would refuse now does not
    /// leave: it is held until it may, or dropped if it is of the moment only.
    pub fn emit(&mut self, ticket: Option<&TicketId>, action: Action) {
        if let (Some(id), Action::MoveTicket { state }) = (ticket, &action) {
            if let Some(job) = self.state.jobs.get_mut(id) {
                job.moved_to = Some(state.clone());
            }
            self.touch(id);
        }
        if let Some(id) = ticket {
            self.drop_superseded(id, &action);
        }
        let id = EffectId(self.state.meta.next_effect);
        self.state.meta.next_effect += 1;
        let effect = Effect { id, ticket: ticket.cloned(), action };
        let refusal = self.refusal(&effect);
        let allowed = refusal.is_none();
        if effect.action.is_durable() {
            let status = refusal.map_or(PendingStatus::InFlight, |refusal| PendingStatus::Held { refusal });
            self.state.outbox.insert(id, Pending { effect: effect.clone(), attempts: 0, status });
            self.state.changes.outbox.insert(id);
            self.state.changes.meta = true;
        }
        if allowed {
            self.effects.push(effect);
        }
    }

    /// A newer column, workpad or branch update makes an older one that still waits pointless.
    fn drop_superseded(&mut self, ticket: &TicketId, action: &Action) {
        if !matches!(action, Action::MoveTicket { .. } | Action::WriteWorkpad { .. } | Action::UpdateBranch { .. }) {
            return;
        }
        let stale: Vec<EffectId> = self
            .state
            .outbox
            .iter()
            .filter(|(_, pending)| {
                pending.effect.ticket.as_ref() == Some(ticket)
                    && pending.effect.action.kind() == action.kind()
                    && pending.status != PendingStatus::InFlight
            })
            .map(|(id, _)| *id)
            .collect();
        for id in stale {
            self.forget_effect(id);
        }
    }

    pub fn forget_effect(&mut self, id: EffectId) -> Option<Pending> {
        let pending = self.state.outbox.remove(&id)?;
        self.state.changes.outbox.insert(id);
        Some(pending)
    }

    pub fn switch_file(&mut self, on: bool) {
        match (on, self.state.switch_file) {
            (true, None) => {
                self.state.switch_file = Some(self.now);
                self.note(None, "kill_switch", "the kill-switch file is there: everything stops");
            }
            (false, Some(_)) => {
                self.state.switch_file = None;
                self.note(None, "kill_switch", "the kill-switch file is gone: everything goes on");
            }
            _ => {}
        }
    }

    fn operator(&mut self, command: OperatorCommand, by: String) {
        let ticket = command.ticket().cloned();
        self.note(ticket.as_ref(), "operator", format!("{by}: {}", command.words()));
        let pause = Pause { since: self.now, by };
        match command {
            OperatorCommand::PauseAll => {
                self.state.meta.pause_all.get_or_insert(pause);
                self.state.changes.meta = true;
            }
            OperatorCommand::ResumeAll => {
                self.state.meta.pause_all = None;
                self.state.changes.meta = true;
            }
            OperatorCommand::Pause { ticket } => self.set_pause(&ticket, Some(pause)),
            OperatorCommand::Resume { ticket } => self.set_pause(&ticket, None),
            OperatorCommand::Stop { ticket } => self.decide(&ticket, Observation::OperatorStopped),
            OperatorCommand::Retry { ticket } => {
                self.doubt_the_limit(&ticket);
                self.decide(&ticket, Observation::OperatorRetried);
            }
            OperatorCommand::Approve { ticket } => self.decide(&ticket, Observation::OperatorApproved),
            OperatorCommand::Forget { ticket } => self.decide(&ticket, Observation::OperatorForgot),
        }
    }

    /// Whoever retries what waits for a usage limit knows better: another key, a larger plan. If not, the next run says so.
    fn doubt_the_limit(&mut self, ticket: &TicketId) {
        let stage = self.state.jobs.get(ticket).map(|job| &job.stage);
        let Some(Stage::Queued { wait: Wait::Quota { pool, .. }, .. }) = stage else { return };
        if let Some(pool) = self.state.meta.pools.get_mut(pool) {
            pool.paused_until = None;
            self.state.changes.meta = true;
        }
    }

    fn set_pause(&mut self, ticket: &TicketId, pause: Option<Pause>) {
        if let Some(job) = self.state.jobs.get_mut(ticket) {
            if pause.is_none() || job.pause.is_none() {
                job.pause = pause;
            }
            self.touch(ticket);
        }
    }

    fn human_said(&mut self, ticket: TicketId, word: HumanMessage) {
        self.note(Some(&ticket), "human_said", format!("{}: {}", word.from, word.text));
        self.decide(&ticket, Observation::HumanCommented { word, addressed: true });
    }
}

impl OperatorCommand {
    fn words(&self) -> &'static str {
        match self {
            Self::PauseAll => "pause",
            Self::ResumeAll => "resume",
            Self::Pause { .. } => "pause this ticket",
            Self::Resume { .. } => "resume this ticket",
            Self::Stop { .. } => "stop this ticket",
            Self::Retry { .. } => "retry this ticket",
            Self::Approve { .. } => "approve this ticket",
            Self::Forget { .. } => "give this ticket back",
        }
    }
}
