//! One run as the runtime sees it: reads the ticket again, gets the permit, lets the worker go and reports the end.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinError;
use tracing::Instrument;

use super::super::gatekeeper::Gatekeeper;
use super::super::handle::Message;
use super::super::host::RunHost;
use super::super::lanes::{LOOK, Lanes, Priority, RECLAIM, unwinding};
use super::super::now;
use super::super::run_service::{RunnerService, RunnerServiceParts};
use super::look::lookup;
use crate::config::policy::Policy;
use crate::domain::basis::{Basis, Moment};
use crate::domain::failure::RunFailure;
use crate::domain::ids::{EffectId, RunId, SessionId, TicketId};
use crate::domain::job::{HumanMessage, Job, Reviews, TicketFacts, Work};
use crate::domain::permit::Permit;
use crate::domain::route::Route;
use crate::domain::run::{RunOutcome, RunReport};
use crate::domain::ticket::Ticket;
use crate::engine::event::{EffectError, Event, Lookup};
use crate::engine::permit::EffectKind;
use crate::engine::select;
use crate::tracker::Tracker;
use crate::worker::{Inbox, PreviousRun, ReclaimOrder, Reclaimed, RunOrder, WorkerEvent};

pub struct RunTask {
    pub effect: EffectId,
    pub run: RunId,
    pub work: Work,
    pub attempt: u32,
    pub branch: String,
    pub resume: Option<SessionId>,
    pub route: Route,
    pub undelivered: Vec<HumanMessage>,
    /// The engine's moment when the run was decided.
    pub after: Moment,
    pub job: Arc<Job>,
    pub policy: Arc<Policy>,
    /// The key of the marks that prove that a comment of the run is not a person's.
    pub comment_key: Arc<str>,
    pub tracker: Arc<dyn Tracker>,
    pub lanes: Arc<Lanes>,
    pub host: Arc<dyn RunHost>,
    pub gatekeeper: Arc<Gatekeeper>,
    /// The messages to the run, from the moment on in which it was handed out.
    pub heard: Inbox,
    pub inbox: mpsc::Sender<Message>,
}

/// What is needed to end a run when its own task cannot.
struct Survivor {
    run: RunId,
    order: ReclaimOrder,
    host: Arc<dyn RunHost>,
    inbox: mpsc::Sender<Message>,
}

impl RunTask {
    /// Does the run, and makes sure that it ends with a report even if its own task panics.
    pub async fn watched(self) {
        let survivor = self.survivor();
        let facts = &self.job.ticket;
        let session = self.job.session.as_ref().map_or("", |session| session.as_str());
        // Every line that is logged on the way carries the fields of this run.
        let span = tracing::info_span!("run", issue_id = %facts.id, issue_identifier = %facts.key, run_id = %self.run, session_id = session);
        if let Err(error) = tokio::spawn(self.go().instrument(span)).await {
            survivor.report(&error).await;
        }
    }

    /// Does the run. The last event sent is `RunFinished`, or `EffectFailed` if the start is refused.
    async fn go(mut self) {
        let id = self.job.ticket.id.clone();
        let ticket = match self.read_again(&id).await {
            Ok(ticket) => ticket,
            Err(outcome) => return self.finish(RunReport::bare(outcome)).await,
        };
        if let Some(reason) = select::too_late(ticket.as_ref().map(TicketFacts::of).as_ref(), &self.policy) {
            self.finish(RunReport::bare(RunOutcome::Killed { reason })).await;
            return;
        }
        let Some(ticket) = ticket else { return };
        failpoint!("run.ticket_read");
        if let Some(reason) = self.heard.stop_asked() {
            self.finish(RunReport::bare(RunOutcome::Killed { reason })).await;
            return;
        }
        let permit = match self.gatekeeper.permit(EffectKind::StartRun, Some(&id)) {
            Ok(permit) => permit,
            Err(refusal) => {
                self.send(Event::EffectFailed { effect: self.effect, error: EffectError::Refused { refusal } }).await;
                return;
            }
        };
        failpoint!("run.permitted");
        let survivor = self.survivor();
        let inbox = self.inbox.clone();
        let run = self.run.clone();
        let report = self.work(permit, ticket, &survivor).await;
        failpoint!("run.report_made");
        let _ = inbox.send(Message::Event(Event::RunFinished { run, report })).await;
    }

    /// Returns the ticket as it is now, `None` if it is gone. A stop that comes before or during the reading is obeyed before anything is
    /// made.
    async fn read_again(&mut self, id: &TicketId) -> Result<Option<Ticket>, RunOutcome> {
        let failed = |detail: String| RunOutcome::Failed { failure: RunFailure::Tracker { detail } };
        let reading = async {
            let asked_at = now();
            self.tracker.fetch_by_ids(std::slice::from_ref(id)).await.map(|found| (asked_at, found))
        };
        let read = tokio::select! {
            biased;
            reason = self.heard.stopped() => return Err(RunOutcome::Killed { reason }),
            read = self.lanes.tracker.call(Priority::Start, LOOK, reading) => read,
        };
        let (asked_at, found) = read.map_err(|error| failed(error.to_string()))?;
        let found: Vec<_> = found.into_iter().map(|(id, found)| (id, lookup(found))).collect();
        let basis = Basis { asked_at, after: self.after };
        self.send(Event::TicketsRefreshed { found: found.clone(), basis }).await;
        match found.into_iter().find(|(seen, _)| seen == id) {
            Some((_, Lookup::Found { ticket })) => Ok(Some(ticket)),
            Some((_, Lookup::Unreadable { because })) => Err(failed(because)),
            _ => Ok(None),
        }
    }

    async fn work(self, permit: Permit, ticket: Ticket, survivor: &Survivor) -> RunReport {
        let cost_cap = self.policy.budget.ticket.max_cost_microusd;
        let service = RunnerService::new(RunnerServiceParts {
            run: self.run.clone(),
            ticket: self.job.ticket.id.clone(),
            key: self.job.ticket.key.clone(),
            policy: self.policy.clone(),
            inbox: self.inbox.clone(),
            pull_request: self.job.delivery.pr.as_ref().and_then(|pr| pr.url.clone()),
            comment_key: self.comment_key,
            tracker: self.tracker,
            lane: self.lanes.tracker.clone(),
            gatekeeper: self.gatekeeper,
        });
        let reviews = matches!(self.work, Work::Review { .. });
        let order = RunOrder {
            run: self.run.clone(),
            ticket,
            work: self.work,
            attempt: self.attempt,
            branch: self.branch,
            base_branch: self.policy.pr.base_branch.clone(),
            resume: self.resume,
            route: self.route,
            undelivered: self.undelivered,
            previous: (self.attempt > 1 && !reviews).then(|| PreviousRun {
                summary: self.job.evidence.summary.clone(),
                failure: self.job.evidence.last_failure.clone(),
                head: self.job.delivery.head.clone(),
                salvage: self.job.evidence.salvage.clone(),
            }),
            policy: self.policy,
            rework_cycles: self.job.rework_cycles,
            reviews: Reviews::clone(&self.job.delivery.reviews),
            base: self.job.delivery.pr.as_ref().and_then(|pr| pr.base.clone()),
            cost_left: cost_cap.map(|cap| cap.saturating_sub(self.job.spending.since_reset.cost_microusd)),
            service: Some(Arc::new(service)),
        };
        let (events, mut told) = mpsc::channel(64);
        let (host, heard) = (self.host, self.heard);
        // In a task of its own, so that a panic of the worker does not prevent the report.
        let mut worker = tokio::spawn(async move { host.run(permit, order, heard, events).await });
        let result = loop {
            tokio::select! {
                event = told.recv() => match event {
                    Some(event) => survivor.forward(event).await,
                    None => break (&mut worker).await,
                },
                result = &mut worker => break result,
            }
        };
        while let Ok(event) = told.try_recv() {
            survivor.forward(event).await;
        }
        match result {
            Ok(report) => report,
            Err(error) => survivor.reclaim(&error).await,
        }
    }

    fn survivor(&self) -> Survivor {
        let order = ReclaimOrder {
            run: self.run.clone(),
            key: self.job.ticket.key.clone(),
            branch: self.branch.clone(),
            process: None,
            worktree: None,
        };
        Survivor { run: self.run.clone(), order, host: self.host.clone(), inbox: self.inbox.clone() }
    }

    async fn finish(&self, report: RunReport) {
        self.send(Event::RunFinished { run: self.run.clone(), report }).await;
    }

    async fn send(&self, event: Event) {
        // The driver outlives its runs. If it is gone, the ledger still holds the run as live, and recovery ends it.
        let _ = self.inbox.send(Message::Event(event)).await;
    }
}

impl Survivor {
    async fn report(&self, error: &JoinError) {
        let report = self.reclaim(error).await;
        let _ = self.inbox.send(Message::Event(Event::RunFinished { run: self.run.clone(), report })).await;
    }

    /// Reclaims what is left of the run and returns a report. Even a host that panics or hangs does not keep the slot.
    async fn reclaim(&self, error: &JoinError) -> RunReport {
        tracing::error!(run_id = %self.run, %error, "the worker broke down; its run is reclaimed");
        let reclaiming = unwinding(self.host.reclaim(self.order.clone()));
        let reclaimed = match tokio::time::timeout(RECLAIM, reclaiming).await {
            Ok(Ok(reclaimed)) => reclaimed,
            Ok(Err(panic)) => {
                tracing::error!(run_id = %self.run, panic, "what it left could not be reclaimed; the next start does it");
                Reclaimed::default()
            }
            Err(_) => {
                tracing::error!(run_id = %self.run, "what it left could not be reclaimed in time; the next start does it");
                Reclaimed::default()
            }
        };
        let failure = RunFailure::Launch { detail: format!("the worker broke down: {error}"), permanent: false };
        let mut report = RunReport::bare(RunOutcome::Failed { failure });
        report.salvage = reclaimed.salvage;
        report.head = reclaimed.head;
        report
    }

    async fn forward(&self, event: WorkerEvent) {
        let run = self.run.clone();
        let event = match event {
            WorkerEvent::Started { process, worktree, head } => Event::RunStarted { run, process, worktree, head },
            WorkerEvent::Activity(activity) => Event::RunProgress { run, activity },
        };
        let _ = self.inbox.send(Message::Event(event)).await;
    }
}
