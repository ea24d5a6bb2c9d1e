//! The entry point: one event in, the state changed, the effects out. Nothing else in the program changes the state.

use super::decided::Decided;
use super::effect::{Action, Effect};
use super::event::{Event, OperatorCommand, RemarkFound};
use super::fingerprint;
use super::hindrance;
use super::phases::{self, Observation};
use super::remarks;
use super::state::{LaneHealth, Note, Pending, PendingStatus, State};
use crate::config::policy::Policy;
use crate::domain::evidence::{Evidence, EvidenceKind};
use crate::domain::ids::{CommentId, EffectId, TicketId};
use crate::domain::job::{ColumnWrite, Hindrance, Job, Pause, PrWriteKind, ReworkCause, ReworkTrigger, Stage};
use crate::domain::lane::Lane;
use crate::domain::remark::{Remark, RemarkEffect, RemarkKey, RemarkKind, RemarkStatus};
use crate::domain::time::Timestamp;

/// Advances the engine by one event. It never panics, whatever the order of events, and late events change nothing.
pub fn step(state: &mut State, policy: &Policy, now: Timestamp, event: Event) -> Vec<Effect> {
    let mut step = Step { state, policy, now, effects: Vec::new(), settle_all_the_same: false };
    // Recalled jobs are settled with the event for which they are recalled.
    let light = matches!(event, Event::RunProgress { .. } | Event::Recalled { .. });
    step.handle(event);
    if !light || step.settle_all_the_same {
        step.settle();
    }
    step.drop_what_became_pointless();
    step.file_deadlines();
    step.effects
}

/// One step under way.
pub(super) struct Step<'a> {
    pub state: &'a mut State,
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub effects: Vec<Effect>,
    /// Whether a light event, which is normally not settled, has opened a line for other jobs.
    pub settle_all_the_same: bool,
}

impl Step<'_> {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Recovered { lost } => self.recovered(lost),
            Event::Recalled { jobs } => self.recalled(jobs),
            Event::Polled { tickets, base, basis } => self.polled(tickets, base, basis),
            Event::PolledChanges { tickets, base, basis } => self.polled_changes(tickets, base, basis),
            Event::PolledUnchanged { base, basis } => self.polled_unchanged(base, basis),
            Event::PollFailed { error } => self.state.tracker.last_error = Some(error),
            Event::TicketsRefreshed { found, basis } => self.refreshed(found, basis),
            Event::Hinted { hints } => self.hinted(hints),
            Event::RunStarted { run, process, worktree, head } => self.run_started(run, process, worktree, head),
            Event::RunProgress { run, activity } => self.run_progress(run, activity),
            Event::RunFinished { run, report } => self.run_finished(run, report),
            Event::PrObserved { ticket, pr, basis } => self.pr_observed(ticket, pr, basis),
            Event::PrLookFailed { ticket, number, error } => self.pr_look_failed(&ticket, number, error),
            Event::RemarkChecked { ticket, kind, id, found } => self.remark_checked(&ticket, kind, &id, found),
            Event::LanePaused { lane, until, why, locked_out } => self.lane_paused(lane, until, why, locked_out),
            Event::LaneWorks { lane } => self.lane_works(lane),
            Event::EffectDone { effect, result } => self.effect_done(effect, result),
            Event::EffectFailed { effect, error } => self.effect_failed(effect, error),
            Event::SwitchesChanged { file } => self.switch_file(file),
            Event::PolicyReloaded => {
                self.note(None, "policy", "the workflow was reloaded");
                self.retry_after_workflow_change();
                // The new workflow may mean something else for every job.
                self.state.jobs.mark_all_dirty();
            }
            Event::WasAway { away } => self.was_away(away),
            Event::TimerFired => {}
            Event::Operator { command, by } => self.operator(command, by),
            Event::HumanSaid { ticket, by, text, urgent } => self.human_said(ticket, by, text, urgent),
            Event::Shutdown => {
                self.state.shutting_down = true;
                self.note(None, "shutdown", "shutting down: live runs are stopped and their work is saved");
            }
        }
    }

    /// Applies an observation to a job and takes over what it decided.
    pub fn decide(&mut self, id: &TicketId, observation: Observation) {
        let Some(job) = self.state.jobs.get(id) else { return };
        if observation == Observation::TicketActive && !phases::comes_back(&job.stage) {
            return;
        }
        let mut out = Decided::new(self.policy, self.now);
        let State { jobs, base, .. } = &mut *self.state;
        jobs.edit(id, |job| {
            phases::observe(job, observation, &mut out);
            if out.no_progress {
                // Compared with what the attempt was started with. News that came meanwhile is new for the next attempt.
                let current = fingerprint::of(job, base.as_ref(), out.policy);
                job.evidence.no_progress_with = Some(job.evidence.started_with.clone().unwrap_or(current));
            }
        });
        self.absorb(id, out);
    }

    /// Changes a job and takes over what was decided with it.
    pub fn decide_with(&mut self, id: &TicketId, decide: impl FnOnce(&mut Job, &mut Decided<'_>)) {
        let mut out = Decided::new(self.policy, self.now);
        self.state.jobs.edit(id, |job| decide(job, &mut out));
        self.absorb(id, out);
    }

    /// Takes over actions and notes that were decided for a job.
    fn absorb(&mut self, id: &TicketId, out: Decided<'_>) {
        let Decided { actions, notes, .. } = out;
        self.state.changes.notes.extend(notes);
        for action in actions {
            self.emit(Some(id), action);
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

    /// Hands an action to the runtime. A durable one is written down first. An action that the permit would refuse now is not sent: a
    /// durable one is held until it may be, any other is dropped.
    pub fn emit(&mut self, ticket: Option<&TicketId>, action: Action) {
        let mut action = action;
        if let (Some(id), Action::MoveTicket { from, state }) = (ticket, &mut action) {
            // Earlier moves of the runner that are on their way may or may not arrive before this one.
            for pending in self.state.outbox.of_ticket(id) {
                if let Action::MoveTicket { state, .. } = &pending.effect.action {
                    from.push(state.clone());
                }
            }
            from.sort();
            from.dedup();
            self.state.jobs.edit(id, |job| {
                let last = job.column.take();
                job.column = Some(ColumnWrite::sent(from.clone(), state.clone(), last));
            });
        }
        if let (Some(id), Some(what)) = (ticket, pr_write(&action)) {
            self.pr_write_sent(id, what);
        }
        if let Some(id) = ticket {
            self.drop_superseded(id, &action);
        }
        let id = EffectId(self.state.meta.next_effect);
        self.state.meta.next_effect += 1;
        let effect = Effect { id, ticket: ticket.cloned(), decided_at: self.now, action };
        let refusal = self.refusal(&effect);
        if let (Action::MergePr { .. }, Some(ticket), Some(refusal)) = (&effect.action, ticket, refusal) {
            // A merge is never held. When it is allowed again, another look decides.
            self.merge_refused_by_permit(ticket, refusal);
            return;
        }
        let allowed = refusal.is_none();
        if effect.action.is_durable() {
            let status = refusal.map_or(PendingStatus::InFlight, |refusal| PendingStatus::Held { refusal });
            self.state.outbox.insert(Pending { effect: effect.clone(), attempts: 0, status });
            self.state.changes.meta = true;
        }
        if allowed {
            self.effects.push(effect);
        }
    }

    /// Drops older moves, workpads or branch updates that still wait and that a newer one makes pointless.
    fn drop_superseded(&mut self, ticket: &TicketId, action: &Action) {
        if !matches!(action, Action::MoveTicket { .. } | Action::WriteWorkpad { .. } | Action::UpdateBranch { .. }) {
            return;
        }
        let stale: Vec<EffectId> = self
            .state
            .outbox
            .of_ticket(ticket)
            .filter(|pending| {
                pending.effect.action.kind() == action.kind() && pending.status != PendingStatus::InFlight
            })
            .map(|pending| pending.effect.id)
            .collect();
        for id in stale {
            self.forget_effect(id);
        }
    }

    pub fn forget_effect(&mut self, id: EffectId) -> Option<Pending> {
        self.state.outbox.remove(id)
    }

    pub fn switch_file(&mut self, on: bool) {
        match (on, self.state.switch_file) {
            (true, None) => {
                self.state.switch_file = Some(self.now);
                self.note(None, "kill_switch", "the kill-switch file is there: everything stops");
            }
            (false, Some(_)) => {
                self.state.switch_file = None;
                let text = match &self.state.meta.pause_all {
                    Some(pause) => {
                        format!(
                            "the kill-switch file is gone; everything is still paused (`dirigent pause` by {})",
                            pause.by
                        )
                    }
                    None => "the kill-switch file is gone: everything goes on that is not paused by itself".to_owned(),
                };
                self.note(None, "kill_switch", text);
            }
            _ => {}
        }
    }

    fn operator(&mut self, command: OperatorCommand, by: String) {
        let ticket = command.ticket().cloned();
        self.note(ticket.as_ref(), "operator", format!("{by}: {}", command.words()));
        self.obey(command, by);
    }

    /// Carries out a person's command, wherever it was given.
    pub fn obey(&mut self, command: OperatorCommand, by: String) {
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
            OperatorCommand::Approve { ticket, head, overrule } => {
                let by = pause.by;
                self.decide(&ticket, Observation::OperatorApproved { head, by, overrule });
            }
            OperatorCommand::Reject { ticket, text } => {
                let remark = self.message(pause.by, text, false);
                self.rejected(ticket, remark);
            }
            OperatorCommand::Forget { ticket } => self.decide(&ticket, Observation::OperatorForgot),
        }
    }

    /// Clears the usage limit that a job waits for when a person retries it: they may have another key or a larger plan. If not, the next
    /// run runs into the limit again.
    fn doubt_the_limit(&mut self, ticket: &TicketId) {
        let Some(job) = self.state.jobs.get(ticket) else { return };
        let Some(Hindrance::Quota { pool, .. }) = hindrance::of_job(self.state, self.policy, job, self.now) else {
            return;
        };
        if let Some(pool) = self.state.meta.pools.get_mut(&pool) {
            pool.paused_until = None;
            pool.limited = false;
            self.state.changes.meta = true;
        }
    }

    fn set_pause(&mut self, ticket: &TicketId, pause: Option<Pause>) {
        self.state.jobs.edit(ticket, |job| {
            if pause.is_none() || job.people.pause.is_none() {
                job.people.pause = pause;
            }
        });
        self.call_back(ticket);
    }

    /// Drops effects of this step whose job is released at its end, because one reading can both tell the runner to do something and take
    /// the ticket away.
    fn drop_what_became_pointless(&mut self) {
        let was_released = |effect: &Effect| {
            let job = effect.ticket.as_ref().and_then(|id| self.state.jobs.get(id));
            job.is_some_and(|job| matches!(job.stage, Stage::Released { .. }))
        };
        let is_pointless = |id: &EffectId| self.state.outbox.get(id).is_some_and(|pending| self.is_pointless(pending));
        let of_released = self.effects.iter().filter(|effect| was_released(effect)).map(|effect| effect.id);
        let pointless: Vec<EffectId> = of_released.filter(is_pointless).collect();
        for id in pointless {
            self.effects.retain(|effect| effect.id != id);
            self.drop_effect(id);
        }
    }

    /// Holds back effects of this step that the permit would refuse now, because one reading can both tell the runner to do something and
    /// to pause.
    fn call_back(&mut self, ticket: &TicketId) {
        let (stay, leave): (Vec<Effect>, Vec<Effect>) = std::mem::take(&mut self.effects)
            .into_iter()
            .partition(|effect| effect.ticket.as_ref() == Some(ticket) && self.refusal(effect).is_some());
        self.effects = leave;
        for effect in stay {
            if let Some(refusal) = self.refusal(&effect) {
                self.refused(effect.id, refusal);
            }
        }
    }

    fn human_said(&mut self, ticket: TicketId, by: String, text: String, urgent: bool) {
        let remark = self.message(by, text, urgent);
        self.remark_came(&ticket, remark);
    }

    /// Handles a person's request for changes: their words become a remark, and the job's rework rounds start again at zero.
    pub fn rejected(&mut self, ticket: TicketId, remark: Remark) {
        let cause = |now| ReworkCause {
            trigger: ReworkTrigger::Operator,
            summary: format!("{} asks for changes", remark.author),
            evidence: vec![Evidence { kind: EvidenceKind::Note { text: remark.sentence() }, timestamp: now }],
        };
        let was_blocked = self.state.jobs.edit(&ticket, |job| {
            job.rework_cycles = 0;
            job.people.approval = None;
            matches!(job.stage, Stage::Blocked { .. })
        });
        let Some(was_blocked) = was_blocked else { return };
        let cause = cause(self.now);
        // A request for changes does not answer a question. It stands against a merge like any other remark.
        self.note(Some(&ticket), "human_said", format!("{}: {}", remark.author, remarks::first_line(&remark.text)));
        match was_blocked {
            true => self.decide(&ticket, Observation::Rejected { remark, cause }),
            false => self.decide(&ticket, Observation::RemarkMade { remark }),
        }
    }

    fn message(&mut self, by: String, text: String, urgent: bool) -> Remark {
        let moment = self.state.next_moment();
        let key = RemarkKey {
            kind: RemarkKind::Message,
            id: CommentId::new(moment.0.to_string()),
            version: crate::domain::comment::text_version(&text),
        };
        Remark {
            key,
            author: by,
            text,
            place: None,
            head: None,
            at: self.now,
            effect: RemarkEffect::Rework,
            urgent,
            status: RemarkStatus::Open,
            told: false,
            by_bot: false,
        }
    }

    /// Withdraws a remark that a complete reading lacked, if reading it by its id shows that it was deleted.
    fn remark_checked(&mut self, ticket: &TicketId, kind: RemarkKind, id: &CommentId, found: RemarkFound) {
        if found != RemarkFound::Gone {
            return;
        }
        let reading = remarks::RemarkReading::TakenBack { kind, id: id.clone(), how: "deleted".to_owned(), at: None };
        let now = self.now;
        let number = self.state.jobs.edit(ticket, |job| {
            remarks::take_in(job, reading, now);
            job.delivery.pr.as_ref().map(|pr| pr.number)
        });
        if let Some(number) = number.flatten() {
            self.emit(Some(ticket), Action::InspectPr { number });
        }
    }

    fn lane_paused(&mut self, lane: Lane, until: Option<Timestamp>, why: String, locked_out: bool) {
        let health = self.state.lanes.entry(lane).or_default();
        let is_new = health.last_error.as_ref() != Some(&why);
        *health = LaneHealth { last_error: Some(why.clone()), paused_until: until, locked_out, ..health.clone() };
        if is_new {
            self.note(None, "lane_paused", format!("calls to the {} wait: {why}", lane.name()));
        }
    }
}

/// Returns the kind of a write with which looks at the pull request have to be compared. `None` for all other actions.
pub fn pr_write(action: &Action) -> Option<PrWriteKind> {
    match action {
        Action::PushBranch { .. } => Some(PrWriteKind::Push),
        Action::OpenPr { .. } => Some(PrWriteKind::Open),
        Action::ReopenPr { .. } => Some(PrWriteKind::Reopen),
        Action::UpdateBranch { .. } => Some(PrWriteKind::Update),
        Action::MergePr { .. } => Some(PrWriteKind::Merge),
        _ => None,
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
            Self::Reject { .. } => "ask for changes",
            Self::Forget { .. } => "give this ticket back",
        }
    }
}
