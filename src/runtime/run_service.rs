//! The tracker's own API as one run may use it: bound to the run's own ticket and pull request. Every write needs a fresh permit and
//! carries the mark that shows that the worker wrote it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;

use super::gatekeeper::{Gatekeeper, Ground};
use super::handle::Message;
use super::lanes::{CallQueue, LaneFailure, Priority, READ_TICKET, WRITE};
use crate::config::policy::Policy;
use crate::config::tracker::AgentTool;
use crate::domain::ids::{RunId, TicketId, TicketKey};
use crate::domain::run::{Activity, Declared, MoveStep};
use crate::domain::service::{ApiAnswer, ApiDeed, ApiScope, ApiTool, Attachment};
use crate::domain::ticket::state_in;
use crate::engine::event::Event;
use crate::engine::permit::EffectKind;
use crate::engine::{provenance, select};
use crate::github::while_it_holds;
use crate::tracker::Tracker;
use crate::worker::{ApiOutcome, ServiceAccess};

pub struct RunnerServiceParts {
    pub run: RunId,
    pub ticket: TicketId,
    pub key: TicketKey,
    pub pull_request: Option<String>,
    pub policy: Arc<Policy>,
    pub comment_key: Arc<str>,
    pub tracker: Arc<dyn Tracker>,
    pub lane: Arc<CallQueue>,
    pub gatekeeper: Arc<Gatekeeper>,
    pub inbox: mpsc::Sender<Message>,
}

pub struct RunnerService {
    parts: RunnerServiceParts,
    /// How many requests the run has made; makes the mark of each one unique.
    asked: AtomicU64,
}

impl RunnerService {
    pub fn new(parts: RunnerServiceParts) -> Self {
        Self { parts, asked: AtomicU64::default() }
    }

    fn scope(&self) -> ApiScope {
        let RunnerServiceParts { run, ticket, key: ticket_key, pull_request, comment_key, .. } = &self.parts;
        let key = provenance::worker_key(run, self.asked.fetch_add(1, Ordering::Relaxed));
        ApiScope {
            ticket: ticket.clone(),
            key: ticket_key.clone(),
            pull_request: pull_request.clone(),
            mark: provenance::marked_key(comment_key, ticket, &key),
        }
    }

    /// Refuses moves to states that are not the worker's to set: where people approve, and where tickets are closed when their work is
    /// merged.
    fn may_move(&self, to: &str) -> Result<(), String> {
        let policy = &self.parts.policy;
        if state_in(to, &policy.merge.approval_states) {
            return Err(format!("`{to}` is where people approve the work; a worker cannot move its ticket there"));
        }
        if select::is_terminal(to, policy) && !policy.directories {
            return Err(format!(
                "`{to}` closes the ticket, which happens when its work is merged; declare it done instead"
            ));
        }
        Ok(())
    }

    /// Tells the engine of a worker's move: before the request leaves, and again with its result.
    async fn tell(&self, from: &str, to: &str, step: MoveStep) {
        let activity = Activity::MovedTicket { from: from.to_owned(), to: to.to_owned(), step };
        let event = Event::RunProgress { run: self.parts.run.clone(), activity };
        let _ = self.parts.inbox.send(Message::Event(event)).await;
    }

    async fn write(&self, kind: EffectKind, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, WriteTrouble> {
        let RunnerServiceParts { ticket, tracker, lane, gatekeeper, .. } = &self.parts;
        let refused = |why: String| WriteTrouble { why, may_be_done: false };
        let api = tracker.agent_api().ok_or_else(|| refused(NO_API.to_owned()))?;
        let slot = lane.enter(Priority::Write).await.map_err(|error| refused(error.to_string()))?;
        // A worker's write needs the same permit as one of the runner: what stops the runner's writes stops this one, too.
        let permit = gatekeeper.permit(kind, Some(ticket)).map_err(|refusal| refused(refusal.to_string()))?;
        let ground = Arc::new(Ground { gatekeeper: gatekeeper.clone(), kind, ticket: ticket.clone() });
        let writing = while_it_holds(ground, api.write_api(&permit, scope, request));
        slot.call(WRITE, writing)
            .await
            .map_err(|error| WriteTrouble { why: format!("{error}; look before you repeat it"), may_be_done: true })
    }

    /// Moves the ticket for the worker. A move out of the live states declares the work done.
    async fn shift(&self, scope: &ApiScope, request: &Value, from: String, to: String) -> Result<ApiOutcome, String> {
        self.may_move(&to)?;
        self.tell(&from, &to, MoveStep::Sent).await;
        let written = self.write(EffectKind::MoveTicket, scope, request).await;
        let step = match &written {
            Ok(answer) if answer.success => MoveStep::Done,
            Ok(_) => MoveStep::Refused,
            Err(trouble) if trouble.may_be_done => MoveStep::MaybeDone,
            Err(_) => MoveStep::Refused,
        };
        self.tell(&from, &to, step).await;
        let answer = written.map_err(|trouble| trouble.why)?;
        let left = answer.success && !select::is_live(&to, &self.parts.policy);
        let summary = format!("The worker moved {} to `{to}`.", self.parts.key);
        Ok(ApiOutcome { answer, wrote: None, declared: left.then_some(Declared::Done { summary }) })
    }
}

/// Why a write failed.
struct WriteTrouble {
    why: String,
    may_be_done: bool,
}

const NO_API: &str = "this tracker has no API for workers";

impl fmt::Debug for RunnerService {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunnerService").field("run", &self.parts.run).finish_non_exhaustive()
    }
}

#[async_trait]
impl ServiceAccess for RunnerService {
    fn api_tool(&self) -> Option<ApiTool> {
        self.parts.tracker.agent_api().map(|api| api.tool())
    }

    fn attachments(&self, text: &str) -> Vec<Attachment> {
        self.parts.tracker.attachments(text)
    }

    async fn fetch(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, String> {
        // Not through the lane: a missing file says nothing about the health of the board.
        let fetching = self.parts.tracker.fetch_attachment(attachment, longest);
        match tokio::time::timeout(READ_TICKET, fetching).await {
            Ok(fetched) => fetched.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    async fn ask(&self, allowed: AgentTool, request: &Value) -> Result<ApiOutcome, String> {
        let RunnerServiceParts { ticket, tracker, lane, comment_key, .. } = &self.parts;
        if allowed == AgentTool::Off {
            return Err("tracker.provider.agent_tool is off in this workflow".to_owned());
        }
        let api = tracker.agent_api().ok_or(NO_API)?;
        let scope = self.scope();
        // Judging a request makes requests too, so it waits while the lane is paused.
        let held = |failure: LaneFailure| failure.to_string();
        let place = lane.enter(Priority::Look).await.map_err(held)?;
        let judged = place.run(READ_TICKET, api.judge(&scope, request)).await.map_err(held)??;
        drop(place);
        let what = match (judged, allowed) {
            (ApiDeed::Read, _) => {
                let answer = lane.call(Priority::Look, READ_TICKET, api.read_api(&scope, request)).await;
                let answer = answer.map_err(|error| error.to_string())?;
                return Ok(ApiOutcome { answer, wrote: None, declared: None });
            }
            (_, AgentTool::Off | AgentTool::Read) => {
                return Err("this would write, and tracker.provider.agent_tool is `read` in this workflow".to_owned());
            }
            (ApiDeed::Move { from, to }, _) => return self.shift(&scope, request, from, to).await,
            (ApiDeed::Edit { text, .. }, _) if !provenance::is_workers(comment_key, ticket, &text) => {
                return Err("a worker may change only what a worker of this ticket wrote".to_owned());
            }
            (ApiDeed::Write { what } | ApiDeed::Edit { what, .. }, _) => what,
        };
        let answer = self.write(EffectKind::Comment, &scope, request).await.map_err(|trouble| trouble.why)?;
        let wrote = answer.success.then_some(what);
        Ok(ApiOutcome { answer, wrote, declared: None })
    }
}
