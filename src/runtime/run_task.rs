//! One run seen from the runtime: the ticket is read again, the permit asked, the worker let go, its end reported.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::calls;
use super::gatekeeper::Gatekeeper;
use super::handle::Message;
use super::host::RunHost;
use super::now;
use crate::config::policy::Policy;
use crate::domain::basis::{Basis, Moment};
use crate::domain::failure::RunFailure;
use crate::domain::ids::EffectId;
use crate::domain::job::{Job, TicketFacts, Work};
use crate::domain::route::Route;
use crate::domain::run::{RunOutcome, RunReport};
use crate::domain::ticket::Ticket;
use crate::engine::event::{EffectError, Event, Lookup};
use crate::engine::permit::EffectKind;
use crate::engine::select;
use crate::tracker::Tracker;
use crate::worker::{Control, PreviousRun, ReclaimOrder, RunOrder, WorkerEvent};

pub struct RunTask {
    pub effect: EffectId,
    pub run: crate::domain::ids::RunId,
    pub work: Work,
    pub attempt: u32,
    pub branch: String,
    pub resume: Option<crate::domain::ids::SessionId>,
    pub route: Route,
    pub undelivered: Vec<crate::domain::job::HumanMessage>,
    /// What the engine had taken in when the run was decided.
    pub after: Moment,
    pub job: Job,
    pub policy: Arc<Policy>,
    pub tracker: Arc<dyn Tracker>,
    pub host: Arc<dyn RunHost>,
    pub gatekeeper: Arc<Gatekeeper>,
    pub control: mpsc::Receiver<Control>,
    pub inbox: mpsc::Sender<Message>,
}

impl RunTask {
    /// Ends with a `RunFinished`, or with the start refused.
    pub async fn go(mut self) {
        let id = self.job.ticket.id.clone();
        let asked_at = now();
        let ticket = match self.tracker.fetch_by_ids(std::slice::from_ref(&id)).await {
            Ok(found) => {
                let basis = Basis { asked_at, after: self.after };
                let found: Vec<_> = found.into_iter().map(|(id, found)| (id, calls::lookup(found))).collect();
                self.send(Event::TicketsRefreshed { found: found.clone(), basis }).await;
                match found.into_iter().find(|(seen, _)| *seen == id) {
                    Some((_, Lookup::Found { ticket })) => Some(ticket),
                    Some((_, Lookup::Unreadable { because })) => {
                        let failure = RunFailure::Tracker { detail: because };
                        self.finish(RunReport::bare(RunOutcome::Failed { failure })).await;
                        return;
                    }
                    _ => None,
                }
            }
            Err(error) => {
                let failure = RunFailure::Tracker { detail: error.to_string() };
                self.finish(RunReport::bare(RunOutcome::Failed { failure })).await;
                return;
            }
        };
        if let Some(reason) = select::too_late(ticket.as_ref().map(TicketFacts::of).as_ref(), &self.policy) {
            self.finish(RunReport::bare(RunOutcome::Killed { reason })).await;
            return;
        }
        let Some(ticket) = ticket else { return };
        failpoint!("run.ticket_read");
        // A stop that came while the ticket was read is obeyed before anything is made.
        if let Ok(Control::Stop(reason)) = self.control.try_recv() {
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
        let report = self.work(permit, ticket).await;
        failpoint!("run.report_made");
        self.finish(report).await;
    }

    async fn work(&mut self, permit: crate::domain::permit::Permit, ticket: Ticket) -> RunReport {
        let order = RunOrder {
            run: self.run.clone(),
            ticket,
            work: self.work.clone(),
            attempt: self.attempt,
            branch: self.branch.clone(),
            base_branch: self.policy.pr.base_branch.clone(),
            resume: self.resume.take(),
            route: self.route.clone(),
            undelivered: std::mem::take(&mut self.undelivered),
            previous: (self.attempt > 1).then(|| PreviousRun {
                summary: self.job.evidence.summary.clone(),
                failure: self.job.evidence.last_failure.clone(),
                head: self.job.delivery.head.clone(),
                salvage: self.job.evidence.salvage.clone(),
            }),
            policy: self.policy.clone(),
            rework_cycles: self.job.rework_cycles,
            cost_left: self
                .policy
                .budget
                .ticket
                .max_cost_microusd
                .map(|cap| cap.saturating_sub(self.job.spending.since_reset.cost_microusd)),
        };
        let (events, mut told) = mpsc::channel(64);
        let (_closed, control) = mpsc::channel(1);
        let control = std::mem::replace(&mut self.control, control);
        // In a task of its own: a panic in there must not take the report along.
        let host = self.host.clone();
        let mut worker = tokio::spawn(async move { host.run(permit, order, control, events).await });
        let result = loop {
            tokio::select! {
                event = told.recv() => match event {
                    Some(event) => self.forward(event).await,
                    None => break (&mut worker).await,
                },
                result = &mut worker => break result,
            }
        };
        while let Ok(event) = told.try_recv() {
            self.forward(event).await;
        }
        match result {
            Ok(report) => report,
            Err(error) => self.after_panic(error).await,
        }
    }

    async fn after_panic(&self, error: tokio::task::JoinError) -> RunReport {
        tracing::error!(run = %self.run, %error, "the worker broke down; its run is reclaimed");
        let order = ReclaimOrder {
            run: self.run.clone(),
            key: self.job.ticket.key.clone(),
            branch: self.branch.clone(),
            process: None,
            worktree: None,
        };
        let reclaimed = self.host.reclaim(order).await;
        let failure = RunFailure::Launch { detail: format!("the worker broke down: {error}"), permanent: false };
        let mut report = RunReport::bare(RunOutcome::Failed { failure });
        report.salvage = reclaimed.salvage;
        report.head = reclaimed.head;
        report
    }

    async fn forward(&self, event: WorkerEvent) {
        let run = self.run.clone();
        let event = match event {
            WorkerEvent::Started { process, worktree, base, head } => {
                Event::RunStarted { run, process, worktree, base, head }
            }
            WorkerEvent::Activity(activity) => Event::RunProgress { run, activity },
        };
        self.send(event).await;
    }

    async fn finish(&self, report: RunReport) {
        self.send(Event::RunFinished { run: self.run.clone(), report }).await;
    }

    async fn send(&self, event: Event) {
        // The driver outlives its runs; if it is gone, the ledger still holds the run as live and recovery ends it.
        let _ = self.inbox.send(Message::Event(event)).await;
    }
}
