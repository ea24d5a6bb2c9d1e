//! Performs effects, each in a task of its own whose result is awaited. Decides nothing but the order: effects that belong together leave
//! in their order, and every call goes through its adapter's lane.

mod controls;
mod errors;
mod look;
mod run_task;
mod write;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::gate_watch::{GateWatch, HaltReceiver};
use super::gatekeeper::Gatekeeper;
use super::handle::Message;
use super::host::RunHost;
use super::lanes::{GateLimits, Lanes};
use super::now;
use crate::config::policy::Policy;
use crate::domain::basis::Moment;
use crate::domain::ids::{EffectId, RunId, TicketId};
use crate::domain::job::{Hindrance, Job};
use crate::domain::lane::Lane;
use crate::engine::effect::{Action, Effect, Steering};
use crate::engine::event::{EffectError, Event};
use crate::engine::hindrance;
use crate::engine::permit::EffectKind;
use crate::engine::state::State;
use crate::forge::Forge;
use crate::tracker::Tracker;
use crate::worker::Control;
use crate::workflow::Texts;
use controls::Controls;
use look::{LookAt, Looks};
use run_task::RunTask;

/// Everything that effects use.
#[derive(Clone)]
pub struct Adapters {
    pub tracker: Arc<dyn Tracker>,
    /// `None` for `pr.forge: none`.
    pub forge: Option<Arc<dyn Forge>>,
    pub host: Arc<dyn RunHost>,
    /// The texts in the wording of the workflow in force.
    pub texts: Arc<Texts>,
    pub lanes: Arc<Lanes>,
    pub gate_limits: GateLimits,
}

/// Writes with the same value leave in order: a ticket's writes to the board, and its writes to the repository and the forge. A call that
/// hangs in one of the two does not hold up the other.
type Order = (TicketId, Side);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Board,
    Code,
}

/// Hands out effects: the ordered ones of a ticket one after the other, all others beside them.
pub struct Performer {
    adapters: Adapters,
    gatekeeper: Arc<Gatekeeper>,
    inbox: mpsc::Sender<Message>,
    /// The calls that wait behind the one under way.
    queues: HashMap<Order, VecDeque<Call>>,
    looks: Looks,
    under_way: HashMap<EffectId, UnderWay>,
    controls: Controls,
    gates: GateWatch,
}

enum UnderWay {
    Ordered(Order),
    Look(LookAt),
    Free,
}

/// An effect with everything that its call needs.
struct Call {
    effect: Effect,
    job: Option<Arc<Job>>,
    /// What keeps the job waiting besides itself. Set for the workpad only.
    hindrance: Option<Hindrance>,
    policy: Arc<Policy>,
    /// The engine's moment when the call was requested.
    after: Moment,
    /// The key of the marks that prove that a comment is Dirigent's.
    comment_key: Arc<str>,
    /// Tells a gate to stop early. `None` for other effects.
    halt: Option<HaltReceiver>,
}

impl Performer {
    pub fn new(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, inbox: mpsc::Sender<Message>) -> Self {
        Self {
            adapters,
            gatekeeper,
            inbox,
            queues: HashMap::new(),
            looks: Looks::default(),
            under_way: HashMap::new(),
            controls: Controls::default(),
            gates: GateWatch::default(),
        }
    }

    /// Takes over the texts and the gate limits of another workflow.
    pub fn follow(&mut self, texts: Arc<Texts>, gates: GateLimits) {
        self.adapters.texts = texts;
        self.adapters.gate_limits = gates;
        self.adapters.lanes.gates.set_limit(gates.at_once);
    }

    pub fn lanes(&self) -> &Arc<Lanes> {
        &self.adapters.lanes
    }

    /// Returns the number of effects whose result has not come back.
    pub fn in_flight(&self) -> usize {
        let queued: usize = self.queues.values().map(VecDeque::len).sum();
        self.under_way.len() + queued + self.looks.asked_again()
    }

    pub fn perform(&mut self, effect: Effect, state: &State, policy: &Arc<Policy>) {
        let job = effect.ticket.as_ref().and_then(|id| state.jobs.share(id));
        let shown = job.as_ref().filter(|_| matches!(effect.action, Action::WriteWorkpad { .. }));
        let mut call = Call {
            hindrance: shown.and_then(|job| hindrance::of_job(state, policy, job, now())),
            job,
            effect,
            policy: policy.clone(),
            after: state.moment(),
            comment_key: state.meta.comment_key.as_str().into(),
            halt: None,
        };
        match &call.effect.action {
            Action::StartRun { .. } => self.start_run(call),
            Action::StopRun { run, reason } => self.controls.tell(run, Control::Stop(reason.clone())),
            Action::Steer { run, how } => self.steer(call.effect.ticket.as_ref(), run, how),
            Action::RefreshTickets { .. } => self.look(LookAt::Tickets, call),
            Action::InspectPr { .. } => {
                if let Some(ticket) = call.effect.ticket.clone() {
                    self.look(LookAt::Pr(ticket), call);
                }
            }
            Action::CheckRemark { .. } => self.spawn(UnderWay::Free, call),
            Action::RunGate { head, .. } => {
                let begin = |ticket: TicketId| self.gates.begin(call.effect.id, ticket, head.clone());
                call.halt = call.effect.ticket.clone().map(begin);
                self.spawn(UnderWay::Free, call);
            }
            action => {
                let side = side_of(action);
                self.in_order(side, call);
            }
        }
    }

    /// Takes in that an effect's task is over, and starts what waited behind it.
    pub fn performed(&mut self, effect: EffectId) {
        self.gates.end(effect);
        match self.under_way.remove(&effect) {
            Some(UnderWay::Ordered(order)) => match self.queues.get_mut(&order).and_then(VecDeque::pop_front) {
                Some(next) => self.spawn(UnderWay::Ordered(order), next),
                None => {
                    self.queues.remove(&order);
                }
            },
            Some(UnderWay::Look(look)) => {
                if let Some(again) = self.looks.answered(&look) {
                    self.spawn(UnderWay::Look(look), again);
                }
            }
            Some(UnderWay::Free) | None => {}
        }
    }

    /// Stops gates that may not go on in this state.
    pub fn look_at_gates(&self, state: &State) {
        self.gates.look(state, &self.gatekeeper);
    }

    pub fn run_is_over(&mut self, run: &RunId) {
        self.controls.end(run);
    }

    fn in_order(&mut self, side: Side, call: Call) {
        let Some(ticket) = call.effect.ticket.clone() else {
            self.spawn(UnderWay::Free, call);
            return;
        };
        let order = (ticket, side);
        match self.queues.get_mut(&order) {
            Some(queue) => queue.push_back(call),
            None => {
                self.queues.insert(order.clone(), VecDeque::new());
                self.spawn(UnderWay::Ordered(order), call);
            }
        }
    }

    fn look(&mut self, look: LookAt, call: Call) {
        if let Some(call) = self.looks.ask(&look, call) {
            self.spawn(UnderWay::Look(look), call);
        }
    }

    fn spawn(&mut self, under_way: UnderWay, call: Call) {
        self.under_way.insert(call.effect.id, under_way);
        let (adapters, gatekeeper, inbox) = (self.adapters.clone(), self.gatekeeper.clone(), self.inbox.clone());
        tokio::spawn(async move {
            let effect = call.effect.id;
            let doing = tokio::spawn(perform_one(adapters, gatekeeper, call));
            let event = match doing.await {
                Ok(event) => event,
                Err(error) => {
                    let detail = format!("it broke down: {error}");
                    Some(Event::EffectFailed { effect, error: EffectError::Transient { detail, retry_after: None } })
                }
            };
            let _ = inbox.send(Message::Performed { effect, event }).await;
        });
    }

    fn start_run(&mut self, call: Call) {
        let Call { effect, job, policy, after, comment_key, .. } = call;
        let Action::StartRun { run, work, attempt, branch, resume, route, undelivered } = effect.action else { return };
        let Some(job) = job else { return };
        let heard = self.controls.begin(&run);
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
            policy,
            comment_key,
            tracker: self.adapters.tracker.clone(),
            lanes: self.adapters.lanes.clone(),
            host: self.adapters.host.clone(),
            gatekeeper: self.gatekeeper.clone(),
            heard,
            inbox: self.inbox.clone(),
        };
        tokio::spawn(task.watched());
    }

    fn steer(&mut self, ticket: Option<&TicketId>, run: &RunId, how: &Steering) {
        if let Err(refusal) = self.gatekeeper.permit(EffectKind::Steer, ticket) {
            tracing::info!(run_id = %run, %refusal, "not steered");
            return;
        }
        let control = match how {
            Steering::Say { message } => Control::Steer(message.clone()),
            Steering::WrapUp { spent } => {
                tracing::info!(run_id = %run, spent, "the budget is nearly spent; the worker is told to wrap up");
                Control::WrapUp
            }
            Steering::Nudge { silent_s } => {
                tracing::info!(run_id = %run, silent_s, "the agent is quiet; it is spoken to");
                Control::Nudge
            }
            Steering::StopAfterTurn => Control::StopAfterTurn,
        };
        self.controls.tell(run, control);
    }
}

fn side_of(action: &Action) -> Side {
    match write::lane_of(action) {
        Lane::Tracker => Side::Board,
        Lane::Forge | Lane::Workspace | Lane::Gates => Side::Code,
    }
}

async fn perform_one(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, call: Call) -> Option<Event> {
    let kind = call.effect.action.kind().name();
    failpoint!("effect.before", kind);
    let event = match call.effect.action {
        Action::RefreshTickets { .. } | Action::InspectPr { .. } | Action::CheckRemark { .. } => {
            look::perform(adapters, call).await
        }
        _ => write::perform(adapters, gatekeeper, call).await,
    };
    failpoint!("effect.after", kind);
    event
}
