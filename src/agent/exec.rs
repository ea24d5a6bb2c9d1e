//! The protocol for any command: the prompt goes to its stdin, there is one turn, and its exit ends it. Its output lines are text, or JSON
//! events if `exec.events` is `jsonl` (docs/agents/exec.md).

use std::time::Duration;

use serde::Deserialize;

use super::{AgentEvent, Answer, Opening, Protocol, Reaction, Reset, TurnEnd};
use crate::config::exec::ExecEvents;
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

/// The longest text in bytes. Longer texts are truncated; the transcript has them in full.
const TEXT_LIMIT: usize = 2000;

#[derive(Debug)]
pub struct Exec {
    events: ExecEvents,
}

impl Exec {
    pub fn new(events: ExecEvents) -> Self {
        Self { events }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
enum Event {
    Message {
        text: String,
    },
    ToolStarted {
        id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        about: String,
    },
    ToolFinished {
        id: String,
        #[serde(default = "yes")]
        ok: bool,
    },
    /// The usage since the last such event.
    Usage {
        #[serde(default)]
        input: u64,
        #[serde(default)]
        cached_input: u64,
        #[serde(default)]
        output: u64,
        #[serde(default)]
        reasoning: u64,
        #[serde(default)]
        cost_usd: f64,
    },
    Session {
        id: String,
    },
    RateLimited {
        #[serde(default)]
        description: String,
        reset_at_ms: Option<i64>,
        reset_in_ms: Option<u64>,
    },
    Error {
        #[serde(default = "other")]
        class: TurnError,
        message: String,
        reset_at_ms: Option<i64>,
        reset_in_ms: Option<u64>,
    },
}

fn yes() -> bool {
    true
}

fn other() -> TurnError {
    TurnError::Other
}

fn reset(at: Option<i64>, after: Option<u64>) -> Option<Reset> {
    at.map(|millis| Reset::At(Timestamp(millis))).or(after.map(|millis| Reset::In(Duration::from_millis(millis))))
}

impl Event {
    fn read(self) -> AgentEvent {
        match self {
            Self::Message { text } => AgentEvent::Message { text },
            Self::ToolStarted { id, name, about } => AgentEvent::ToolStarted { id, name, about },
            Self::ToolFinished { id, ok } => AgentEvent::ToolFinished { id, ok },
            Self::Usage { input, cached_input, output, reasoning, cost_usd } => AgentEvent::Usage(Usage {
                fresh_input: input,
                cached_input,
                output,
                reasoning,
                // A float that does not fit saturates; a negative one or no number is zero.
                cost_microusd: (cost_usd * 1_000_000.0).round() as u64,
                turns: 0,
            }),
            Self::Session { id } => AgentEvent::SessionStarted { id: SessionId::new(id) },
            Self::RateLimited { description, reset_at_ms, reset_in_ms } => {
                AgentEvent::RateLimited { description, reset: reset(reset_at_ms, reset_in_ms) }
            }
            Self::Error { class, message, reset_at_ms, reset_in_ms } => AgentEvent::TurnEnded(TurnEnd::Failed {
                class,
                detail: message,
                reset: reset(reset_at_ms, reset_in_ms),
            }),
        }
    }
}

fn one(event: AgentEvent) -> Reaction {
    Reaction { events: vec![event], send: Vec::new() }
}

impl Protocol for Exec {
    fn open(&mut self, _opening: &Opening) -> Reaction {
        one(AgentEvent::Ready)
    }

    fn line(&mut self, line: &[u8]) -> Reaction {
        if self.events == ExecEvents::Jsonl && line.starts_with(b"{") {
            return one(serde_json::from_slice::<Event>(line).map_or(AgentEvent::Alive, Event::read));
        }
        let text = String::from_utf8_lossy(line.get(..line.len().min(TEXT_LIMIT)).unwrap_or_default()).into_owned();
        one(AgentEvent::Message { text })
    }

    fn prompt(&mut self, text: &str) -> Reaction {
        Reaction { events: vec![AgentEvent::TurnStarted], send: vec![text.to_owned()] }
    }

    fn steer(&mut self, _text: &str) -> Option<Reaction> {
        None
    }

    fn interrupt(&mut self) -> Option<Reaction> {
        None
    }

    fn answer(&mut self, _ask: &str, _answer: &Answer) -> Reaction {
        Reaction::default()
    }

    fn one_shot(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(events: ExecEvents, line: &str) -> AgentEvent {
        Exec::new(events).line(line.as_bytes()).events.remove(0)
    }

    #[test]
    fn plain_lines_are_messages_whatever_they_hold() {
        let line = r#"{"type":"usage","output":5}"#;
        assert_eq!(heard(ExecEvents::Plain, line), AgentEvent::Message { text: line.into() });
        assert!(matches!(
            Exec::new(ExecEvents::Plain).line(b"\xff\xfe bad").events.remove(0),
            AgentEvent::Message { text } if text.ends_with(" bad")
        ));
    }

    #[test]
    fn json_lines_are_events() {
        let usage = Usage { fresh_input: 10, output: 5, cost_microusd: 20_000, ..Usage::default() };
        let jsonl = ExecEvents::Jsonl;
        assert_eq!(
            heard(jsonl, r#"{"type":"usage","input":10,"output":5,"cost_usd":0.02,"new":1}"#),
            AgentEvent::Usage(usage)
        );
        assert_eq!(
            heard(jsonl, r#"{"type":"tool_started","id":"1","name":"sh"}"#),
            AgentEvent::ToolStarted { id: "1".into(), name: "sh".into(), about: String::new() }
        );
        assert_eq!(
            heard(jsonl, r#"{"type":"error","class":"rate_limit","message":"slow down","reset_in_ms":5}"#),
            AgentEvent::TurnEnded(TurnEnd::Failed {
                class: TurnError::RateLimit,
                detail: "slow down".into(),
                reset: Some(Reset::In(Duration::from_millis(5))),
            })
        );
    }

    #[test]
    fn what_is_not_understood_is_a_sign_of_life() {
        assert_eq!(heard(ExecEvents::Jsonl, r#"{"type":"news"}"#), AgentEvent::Alive);
        assert_eq!(heard(ExecEvents::Jsonl, r#"{"type":"usage","output":-5}"#), AgentEvent::Alive);
        assert_eq!(heard(ExecEvents::Jsonl, "hello"), AgentEvent::Message { text: "hello".into() });
        let AgentEvent::Usage(usage) = heard(ExecEvents::Jsonl, r#"{"type":"usage","cost_usd":-3}"#) else { panic!() };
        assert_eq!(usage.cost_microusd, 0);
    }
}
