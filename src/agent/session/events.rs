//! Decides which of an agent's events the worker gets at once; all others only add up in the usage_totals.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::Session;
use crate::agent::{AgentEvent, Question, Reset, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::time::Timestamp;
use crate::launcher::{Exit, Orphans};

/// What the worker has to know at once. Everything else is in the usage_totals.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionEvent {
    Ready,
    /// The agent was neither ready nor gone within its time.
    HandshakeOverdue {
        detail: String,
    },
    SessionStarted {
        id: SessionId,
    },
    ResumeFailed {
        detail: String,
    },
    TurnEnded(TurnEnd),
    RateLimited {
        description: String,
        reset_at: Option<Timestamp>,
    },
    Asked {
        ask: String,
        question: Question,
    },
    SteerFailed {
        text: String,
    },
    /// Enough was spent since the last report that a budget may be affected.
    Spent,
    /// The process tree is gone. Returned again on every further call.
    Ended(Exit),
}

/// A problem that the agent reported, kept to explain an exit without an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub class: TurnError,
    pub detail: String,
    pub reset_at: Option<Timestamp>,
}

impl Session {
    pub(super) fn take_event(&mut self, event: AgentEvent, at: Timestamp) {
        self.usage_totals.alive();
        let heard = match event {
            AgentEvent::Ready => {
                self.handshake = None;
                SessionEvent::Ready
            }
            AgentEvent::SessionStarted { id } => {
                self.conversation_began(&id);
                SessionEvent::SessionStarted { id }
            }
            AgentEvent::ResumeFailed { detail } => SessionEvent::ResumeFailed { detail },
            AgentEvent::TurnEnded(end) => {
                self.usage_totals.turn_ended();
                let interrupted = std::mem::take(&mut self.interrupting) || end == TurnEnd::Interrupted;
                self.orphans = interrupted.then(|| (Orphans::default(), Instant::now()));
                SessionEvent::TurnEnded(end)
            }
            AgentEvent::Message { text } => {
                self.last_words.add(&text);
                return self.usage_totals.said(&text);
            }
            AgentEvent::ToolStarted { id, name, about } => {
                if let Some((orphans, _)) = &mut self.orphans {
                    orphans.no_newer();
                }
                let tool = if about.is_empty() { name } else { format!("{name} {about}") };
                return self.usage_totals.tool_started(&id, &tool, at);
            }
            AgentEvent::ToolFinished { id, .. } => return self.usage_totals.tool_finished(&id),
            AgentEvent::Model { name } => return self.usage_totals.works_with(&name),
            AgentEvent::Usage(usage) => {
                let counted = self.usage_totals.used(usage);
                self.write_down(counted);
                // One event for many usage reports that came together.
                if !self.usage_totals.is_worth_telling() || self.heard.contains(&SessionEvent::Spent) {
                    return;
                }
                SessionEvent::Spent
            }
            AgentEvent::RateLimited { description, reset } => {
                SessionEvent::RateLimited { description, reset_at: reset.map(|reset| reset_at(reset, at)) }
            }
            AgentEvent::Asked { ask, question } => {
                self.usage_totals.tool_started(&parked(&ask), "asks", at);
                SessionEvent::Asked { ask, question }
            }
            AgentEvent::Error { class, detail, reset, .. } => {
                self.usage_totals.said(&detail);
                self.trouble = Some(Trouble { class, detail, reset_at: reset.map(|reset| reset_at(reset, at)) });
                return;
            }
            AgentEvent::SteerFailed { text } => SessionEvent::SteerFailed { text },
            AgentEvent::UnsupportedTool { name } => {
                return self.note(&format!("the agent called the unknown tool {name}"));
            }
            AgentEvent::Malformed { detail } => return self.note(&format!("not understood: {detail}")),
            AgentEvent::TurnStarted => return self.last_words.clear(),
            AgentEvent::Alive => return,
        };
        self.heard.push_back(heard);
    }
}

pub(super) fn parked(ask: &str) -> String {
    format!("question {ask}")
}

fn reset_at(reset: Reset, now: Timestamp) -> Timestamp {
    match reset {
        Reset::At(at) => at,
        Reset::In(span) => now + span,
    }
}

/// Returns when a failed turn may be tried again.
pub fn reset_time(reset: Option<Reset>) -> Option<Timestamp> {
    reset.map(|reset| reset_at(reset, now()))
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
