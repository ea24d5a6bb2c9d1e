//! Performs effects. The only caller of adapter methods that write, each time with a fresh permit.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::gate_watch::{GateWatch, Halt, HaltReceiver};
use super::gatekeeper::Gatekeeper;
use super::handle::Message;
use super::host::{GateOrder, RunHost};
use super::run_task::RunTask;
use crate::config::policy::Policy;
use crate::domain::ids::{EffectId, RunId, TicketId};
use crate::domain::job::{HumanMessage, Job};
use crate::domain::permit::Permit;
use crate::domain::pr::NewPr;
use crate::engine::effect::{Action, Effect, Steering};
use crate::engine::event::{EffectError, EffectResult, Event};
use crate::engine::permit::EffectKind;
use crate::engine::state::State;
use crate::forge::{Forge, ForgeError};
use crate::tracker::{Tracker, TrackerError};
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
    waiting: HashMap<TicketId, VecDeque<Task>>,
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

struct Task {
    effect: Effect,
    job: Option<Job>,
    policy: Arc<Policy>,
    /// For a gate, which may have to stop before its end.
    halt: Option<HaltReceiver>,
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
        match &effect.action {
            Action::StartRun { .. } => self.start_run(effect, job, policy),
            Action::StopRun { run, reason } => self.tell(run, Control::Stop(reason.clone())),
            Action::Steer { run, how } => self.steer(effect.ticket.as_ref(), run, how),
            Action::Notify { text } => tracing::info!(text),
            Action::RefreshTickets { .. } => self.look(Look::Tickets, effect, job, policy),
            Action::InspectPr { .. } => {
                if let Some(ticket) = effect.ticket.clone() {
                    self.look(Look::Pr(ticket), effect, job, policy);
                }
            }
            Action::RunGate { head, .. } => {
                let begin = |ticket: TicketId| self.gates.begin(effect.id, ticket, head.clone());
                let halt = effect.ticket.clone().map(begin);
                self.spawn(None, Task { effect, job, policy: policy.clone(), halt });
            }
            _ => self.in_order(Task { effect, job, policy: policy.clone(), halt: None }),
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

    fn in_order(&mut self, task: Task) {
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

    fn look(&mut self, look: Look, effect: Effect, job: Option<Job>, policy: &Arc<Policy>) {
        if self.looking.insert(look.clone()) {
            self.spawn(Some(look), Task { effect, job, policy: policy.clone(), halt: None });
        }
    }

    fn spawn(&mut self, look: Option<Look>, task: Task) {
        self.under_way.insert(task.effect.id, look);
        let (adapters, gatekeeper, inbox) = (self.adapters.clone(), self.gatekeeper.clone(), self.inbox.clone());
        tokio::spawn(async move {
            let (effect, ticket) = (task.effect.id, task.effect.ticket.clone());
            let doing = tokio::spawn(perform_one(adapters, gatekeeper, task));
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

    fn start_run(&mut self, effect: Effect, job: Option<Job>, policy: &Arc<Policy>) {
        let Action::StartRun { run, work, attempt, branch, resume, undelivered } = effect.action else { return };
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
            undelivered,
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
            Steering::Say { word } => Control::Steer(word.clone()),
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

async fn perform_one(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, task: Task) -> Option<Event> {
    let kind = task.effect.action.kind().name();
    failpoint!("effect.before", kind);
    let event = perform_action(adapters, gatekeeper, task).await;
    failpoint!("effect.after", kind);
    event
}

async fn perform_action(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, task: Task) -> Option<Event> {
    let Task { effect, job, policy, halt } = task;
    match effect.action {
        Action::RefreshTickets { ids } => Some(refresh(adapters.tracker.as_ref(), ids).await),
        Action::InspectPr { number } => {
            let (forge, ticket) = (adapters.forge?, effect.ticket?);
            match forge.inspect(number).await {
                Ok(pr) => Some(Event::PrObserved { ticket, pr: Some(pr) }),
                Err(error) => {
                    tracing::warn!(%ticket, code = error.code(), %error, "the pull request could not be looked at");
                    None
                }
            }
        }
        action => {
            let id = effect.id;
            let permit = match gatekeeper.permit(action.kind(), effect.ticket.as_ref()) {
                Ok(permit) => permit,
                Err(refusal) => {
                    return Some(Event::EffectFailed { effect: id, error: EffectError::Refused { refusal } });
                }
            };
            let kind = action.kind().name();
            let told = halt.clone();
            let error = match write(&adapters, &policy, permit, effect.ticket?, job, action, told).await {
                Ok(result) => return Some(Event::EffectDone { effect: id, result }),
                Err(error) => error,
            };
            let error = match halt.and_then(|halt| *halt.borrow()) {
                Some(Halt::ShuttingDown) => return None,
                Some(Halt::Refused(refusal)) => EffectError::Refused { refusal },
                Some(Halt::Pointless) => error,
                None => {
                    tracing::warn!(effect = kind, "{kind} did not work this time: {error}");
                    error
                }
            };
            Some(Event::EffectFailed { effect: id, error })
        }
    }
}

/// One ticket that cannot be understood must not hide what became of the others.
async fn refresh(tracker: &dyn Tracker, ids: Vec<TicketId>) -> Event {
    let error = match tracker.fetch_by_ids(&ids).await {
        Ok(tickets) => return Event::TicketsRefreshed { asked: ids, tickets },
        Err(error) => error,
    };
    let failed = Event::PollFailed { error: error.to_string() };
    if ids.len() < 2 || !matches!(error, TrackerError::Response(_)) {
        return failed;
    }
    let (mut asked, mut tickets) = (Vec::new(), Vec::new());
    for id in ids {
        match tracker.fetch_by_ids(std::slice::from_ref(&id)).await {
            Ok(found) => {
                asked.push(id);
                tickets.extend(found);
            }
            Err(TrackerError::Response(_)) => {}
            Err(error) => return Event::PollFailed { error: error.to_string() },
        }
    }
    if asked.is_empty() { failed } else { Event::TicketsRefreshed { asked, tickets } }
}

async fn write(
    adapters: &Adapters,
    policy: &Policy,
    permit: Permit,
    ticket: TicketId,
    job: Option<Job>,
    action: Action,
    halt: Option<HaltReceiver>,
) -> Result<EffectResult, EffectError> {
    let tracker = &adapters.tracker;
    let forge = || adapters.forge.clone().ok_or_else(|| permanent("there is no forge (pr.forge: none)"));
    let job = || job.clone().ok_or_else(|| permanent("the job is gone"));
    match action {
        Action::Comment { key, said } => {
            let body = adapters.texts.comment(&job()?, &said).map_err(permanent)?;
            let comment = tracker.comment(&permit, &ticket, &key, &body).await?;
            Ok(EffectResult::Commented { comment })
        }
        Action::WriteWorkpad { shows } => {
            let job = job()?;
            let body = adapters.texts.workpad(&job, &shows, super::now()).map_err(permanent)?;
            let comment = match job.workpad.comment {
                Some(comment) => {
                    tracker.edit_comment(&permit, &ticket, &comment, &body).await?;
                    comment
                }
                None => tracker.comment(&permit, &ticket, "workpad", &body).await?,
            };
            Ok(EffectResult::Commented { comment })
        }
        Action::MoveTicket { state } => {
            tracker.move_ticket(&permit, &ticket, &state).await?;
            Ok(EffectResult::Plain)
        }
        Action::CreateTicket { key, new } => {
            tracker.create_ticket(&permit, &new, &key).await?;
            Ok(EffectResult::Plain)
        }
        Action::PushBranch { branch, head } => {
            forge()?.push_branch(&permit, &branch, &head).await?;
            Ok(EffectResult::Plain)
        }
        Action::OpenPr { branch, head } => {
            let job = job()?;
            let (title, body) = adapters.texts.pull_request(&job).map_err(permanent)?;
            let new = NewPr {
                title,
                body,
                head_branch: branch,
                head,
                base_branch: policy.pr.base_branch.clone(),
                draft: policy.pr.draft,
                labels: policy.pr.labels.clone(),
                reviewers: policy.pr.reviewers.clone(),
            };
            Ok(EffectResult::Opened { pr: forge()?.open_pr(&permit, &new).await? })
        }
        Action::ReopenPr { number } => {
            forge()?.reopen(&permit, number).await?;
            Ok(EffectResult::Plain)
        }
        Action::MergePr { number, head, method } => {
            let merged = forge()?.merge(&permit, number, &head, method).await?;
            Ok(EffectResult::Merged { commit: merged.commit })
        }
        Action::UpdateBranch { number, head } => {
            forge()?.update_branch(&permit, number, &head).await?;
            Ok(EffectResult::Plain)
        }
        Action::RunGate { branch, head } => {
            let order = GateOrder { key: job()?.ticket.key, branch, head };
            let halt = halt.ok_or_else(|| permanent("a gate that belongs to no ticket"))?;
            let results = adapters
                .host
                .gate(permit, order, halt)
                .await
                .map_err(|detail| EffectError::Transient { detail, retry_after: None })?;
            Ok(EffectResult::Gated { results })
        }
        Action::CleanUp { branch, merged_head } => {
            if let (Some(head), Some(forge)) = (merged_head, &adapters.forge) {
                forge.delete_branch(&permit, &branch, &head).await?;
            }
            adapters.host.clean_up(permit, job()?.ticket.key).await.map_err(permanent)?;
            Ok(EffectResult::Plain)
        }
        Action::StartRun { .. }
        | Action::StopRun { .. }
        | Action::Steer { .. }
        | Action::RefreshTickets { .. }
        | Action::InspectPr { .. }
        | Action::Notify { .. } => Ok(EffectResult::Plain),
    }
}

fn permanent(detail: impl ToString) -> EffectError {
    EffectError::Permanent { detail: detail.to_string() }
}

impl From<TrackerError> for EffectError {
    fn from(error: TrackerError) -> Self {
        let detail = error.to_string();
        match error {
            TrackerError::RateLimited { retry_after } => Self::Transient { detail, retry_after },
            error if error.is_transient() => Self::Transient { detail, retry_after: None },
            _ => Self::Permanent { detail },
        }
    }
}

impl From<ForgeError> for EffectError {
    fn from(error: ForgeError) -> Self {
        let detail = error.to_string();
        match error {
            ForgeError::Request(_) | ForgeError::Response(_) | ForgeError::Git(_) => {
                Self::Transient { detail, retry_after: None }
            }
            ForgeError::Status { status, .. } if status >= 500 || status == 429 => {
                Self::Transient { detail, retry_after: None }
            }
            ForgeError::RateLimited { retry_after } => Self::Transient { detail, retry_after },
            ForgeError::HeadMoved { actual, .. } => Self::HeadMoved { actual },
            ForgeError::Conflict { files } => Self::Conflict { files },
            ForgeError::NotNow(because) => Self::NotNow { because },
            ForgeError::Status { .. } | ForgeError::NotFound(_) | ForgeError::Refused(_) => Self::Permanent { detail },
        }
    }
}

/// A person's words as the engine takes them.
pub fn spoken(from: String, text: String, urgent: bool) -> HumanMessage {
    HumanMessage { from, text, at: super::now(), urgent }
}
