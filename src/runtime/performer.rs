//! Performs effects. The only caller of adapter methods that write, each time with a fresh permit.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::calls::{self, Call};
use super::gate_watch::{GateWatch, HaltReceiver};
use super::gatekeeper::Gatekeeper;
use super::handle::Message;
use super::host::RunHost;
use super::run_task::RunTask;
use crate::config::policy::Policy;
use crate::domain::basis::Moment;
use crate::domain::ids::{EffectId, RunId, TicketId};
use crate::domain::job::Job;
use crate::engine::effect::{Action, Effect, Steering};
use crate::engine::event::{EffectError, Event};
use crate::engine::permit::EffectKind;
use crate::engine::state::State;
use crate::forge::Forge;
use crate::tracker::Tracker;
use crate::worker::Control;
use crate::workflow::Texts;

/// Everything effects reach.
#[derive(Clone)]
pub struct Adapters {
    pub tracker: Arc<dyn Tracker>,
    /// `None` for `pr.forge: none`.
    pub forge: Option<Arc<dyn Forge>>,
    pub host: Arc<dyn RunHost>,
    /// As the workflow in force words it.
    pub texts: Arc<Texts>,
}

/// Hands out effects: short ones one after the other per ticket, long ones beside them.
pub struct Performer {
    adapters: Adapters,
    gatekeeper: Arc<Gatekeeper>,
    inbox: mpsc::Sender<Message>,
    /// Short effects of a ticket keep their order.
    busy: HashMap<TicketId, EffectId>,
    waiting: HashMap<TicketId, VecDeque<Call>>,
    /// Looks that are under way; a second one would tell nothing new.
    looking: HashSet<Look>,
    under_way: HashMap<EffectId, Option<Look>>,
    controls: HashMap<RunId, mpsc::Sender<Control>>,
    gates: GateWatch,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Look {
    Pr(TicketId),
    Tickets,
}

impl Performer {
    pub fn new(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, inbox: mpsc::Sender<Message>) -> Self {
        Self {
            adapters,
            gatekeeper,
            inbox,
            busy: HashMap::new(),
            waiting: HashMap::new(),
            looking: HashSet::new(),
            under_way: HashMap::new(),
            controls: HashMap::new(),
            gates: GateWatch::default(),
        }
    }

    /// Another workflow words things differently.
    pub fn use_texts(&mut self, texts: Arc<Texts>) {
        self.adapters.texts = texts;
    }

    /// Effects whose result has not come back.
    pub fn in_flight(&self) -> usize {
        self.under_way.len() + self.waiting.values().map(VecDeque::len).sum::<usize>()
    }

    pub fn perform(&mut self, effect: Effect, state: &State, policy: &Arc<Policy>) {
        let job = effect.ticket.as_ref().and_then(|id| state.jobs.get(id)).cloned();
        let after = state.moment();
        let comment_key: Arc<str> = state.meta.comment_key.as_str().into();
        let call = |effect: Effect, halt: Option<HaltReceiver>| Call {
            effect,
            job: job.clone(),
            policy: policy.clone(),
            after,
            comment_key: comment_key.clone(),
            halt,
        };
        match &effect.action {
            Action::StartRun { .. } => self.start_run(effect, job, policy, after),
            Action::StopRun { run, reason } => self.tell(run, Control::Stop(reason.clone())),
            Action::Steer { run, how } => self.steer(effect.ticket.as_ref(), run, how),
            Action::Notify { text } => tracing::info!(text),
            Action::RefreshTickets { .. } => self.look(Look::Tickets, call(effect, None)),
            Action::InspectPr { .. } => {
                if let Some(ticket) = effect.ticket.clone() {
                    self.look(Look::Pr(ticket), call(effect, None));
                }
            }
            Action::CheckRemark { .. } => self.spawn(None, call(effect, None)),
            Action::RunGate { head, .. } => {
                let begin = |ticket: TicketId| self.gates.begin(effect.id, ticket, head.clone());
                let halt = effect.ticket.clone().map(begin);
                self.spawn(None, call(effect, halt));
            }
            _ => self.in_order(call(effect, None)),
        }
    }

    /// An effect's task is over: what waited behind it goes on.
    pub fn performed(&mut self, effect: EffectId, ticket: Option<&TicketId>) {
        self.gates.end(effect);
        if let Some(Some(look)) = self.under_way.remove(&effect) {
            self.looking.remove(&look);
        }
        let Some(ticket) = ticket else { return };
        if self.busy.get(ticket) != Some(&effect) {
            return;
        }
        self.busy.remove(ticket);
        let next = self.waiting.get_mut(ticket).and_then(VecDeque::pop_front);
        if self.waiting.get(ticket).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(ticket);
        }
        if let Some(task) = next {
            self.in_order(task);
        }
    }

    /// Stops gates that may not go on as things are now.
    pub fn look_at_gates(&self, state: &State) {
        self.gates.look(state, &self.gatekeeper);
    }

    pub fn run_is_over(&mut self, run: &RunId) {
        self.controls.remove(run);
    }

    fn in_order(&mut self, task: Call) {
        let Some(ticket) = task.effect.ticket.clone() else {
            self.spawn(None, task);
            return;
        };
        if self.busy.contains_key(&ticket) {
            self.waiting.entry(ticket).or_default().push_back(task);
            return;
        }
        self.busy.insert(ticket, task.effect.id);
        self.spawn(None, task);
    }

    fn look(&mut self, look: Look, call: Call) {
        if self.looking.insert(look.clone()) {
            self.spawn(Some(look), call);
        }
    }

    fn spawn(&mut self, look: Option<Look>, task: Call) {
        self.under_way.insert(task.effect.id, look);
        let (adapters, gatekeeper, inbox) = (self.adapters.clone(), self.gatekeeper.clone(), self.inbox.clone());
        tokio::spawn(async move {
            let (effect, ticket) = (task.effect.id, task.effect.ticket.clone());
            let doing = tokio::spawn(calls::perform(adapters, gatekeeper, task));
            let event = match doing.await {
                Ok(event) => event,
                Err(error) => {
                    let detail = format!("it broke down: {error}");
                    Some(Event::EffectFailed { effect, error: EffectError::Transient { detail, retry_after: None } })
                }
            };
            let _ = inbox.send(Message::Performed { effect, ticket, event }).await;
        });
    }

    fn start_run(&mut self, effect: Effect, job: Option<Job>, policy: &Arc<Policy>, after: Moment) {
        let Action::StartRun { run, work, attempt, branch, resume, route, undelivered } = effect.action else { return };
        let Some(job) = job else { return };
        // Room for every steering a person can type between two looks of the worker.
        let (control, told) = mpsc::channel(64);
        self.controls.insert(run.clone(), control);
        let task = RunTask {
            effect: effect.id,
            run,
            work,
            attempt,
            branch,
            resume,
            route,
            undelivered,
            after,
            job,
            policy: policy.clone(),
            tracker: self.adapters.tracker.clone(),
            host: self.adapters.host.clone(),
            gatekeeper: self.gatekeeper.clone(),
            control: told,
            inbox: self.inbox.clone(),
        };
        tokio::spawn(task.go());
    }

    fn steer(&self, ticket: Option<&TicketId>, run: &RunId, how: &Steering) {
        if let Err(refusal) = self.gatekeeper.permit(EffectKind::Steer, ticket) {
            tracing::info!(%run, %refusal, "not steered");
            return;
        }
        let control = match how {
            Steering::Say { message } => Control::Steer(message.clone()),
            Steering::WrapUp { spent } => {
                tracing::info!(%run, spent, "the budget is nearly spent; the worker is told to wrap up");
                Control::WrapUp
            }
            Steering::StopAfterTurn => Control::StopAfterTurn,
        };
        self.tell(run, control);
    }

    fn tell(&self, run: &RunId, control: Control) {
        let Some(channel) = self.controls.get(run) else { return };
        if let Err(mpsc::error::TrySendError::Full(control)) = channel.try_send(control) {
            // A worker that does not listen for a while must still hear a stop.
            let channel = channel.clone();
            tokio::spawn(async move { channel.send(control).await });
        }
    }
}
