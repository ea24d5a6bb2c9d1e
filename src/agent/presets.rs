//! The protocol of one-shot commands that print JSON events: `codex exec --json`, `claude -p --output-format stream-json`, `opencode run
//! --format json`, `pi --mode json`. The prompt goes to stdin, stdin is closed, one turn follows. Reads session ids, usage and the end of
//! the turn; cannot steer, interrupt or answer.

use serde_json::Value;

use super::claude::Claude;
use super::conversation::{Meter, Turn, about, count, microusd, object, text};
use super::fault::Fault;
use super::pi::Pi;
use super::{AgentEvent, Answer, Opening, Protocol, Reaction, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::usage::Usage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Codex,
    Claude,
    Opencode,
    Pi,
}

#[derive(Debug)]
pub struct OneShot {
    dialect: Dialect,
    /// Two of the clients print the same events here as in their conversation mode.
    claude: Claude,
    pi: Pi,
    session: Option<String>,
    turn: Turn,
    meter: Meter,
    steps: Vec<String>,
}

impl OneShot {
    /// Recognises a command by its words; `None` for a command that prints no known events.
    pub fn of_command(command: &str) -> Option<Self> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let has = |word: &str| words.contains(&word);
        let pair = |name: &str, value: &str| {
            has(&format!("{name}={value}")) || words.windows(2).any(|two| two == [name, value])
        };
        let program = |name: &str| words.iter().any(|word| word.rsplit('/').next() == Some(name));
        let dialect = if program("codex") && has("exec") && has("--json") {
            Dialect::Codex
        } else if program("claude") && pair("--output-format", "stream-json") && !pair("--input-format", "stream-json")
        {
            Dialect::Claude
        } else if program("opencode") && has("run") && pair("--format", "json") {
            Dialect::Opencode
        } else if program("pi") && pair("--mode", "json") {
            Dialect::Pi
        } else {
            return None;
        };
        Some(Self {
            dialect,
            claude: Claude::default(),
            pi: Pi::default(),
            session: None,
            turn: Turn::default(),
            meter: Meter::default(),
            steps: Vec::new(),
        })
    }

    pub fn is_codex(&self) -> bool {
        self.dialect == Dialect::Codex
    }

    pub fn is_claude(&self) -> bool {
        self.dialect == Dialect::Claude
    }

    /// Returns the flags that resume an earlier session; the prompt still comes from stdin.
    pub fn resume_flags(&self, session: Option<&SessionId>) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match (self.dialect, session) {
            (_, None) => Vec::new(),
            (Dialect::Codex, Some(id)) => words(&["resume", id.as_str(), "-"]),
            (Dialect::Claude, Some(id)) => words(&["--resume", id.as_str()]),
            (Dialect::Opencode, Some(id)) => words(&["--session", id.as_str()]),
            (Dialect::Pi, Some(id)) => words(&["--session-id", id.as_str()]),
        }
    }

    fn session_named(&mut self, id: &str, out: &mut Reaction) {
        if !id.is_empty() && self.session.is_none() {
            self.session = Some(id.to_owned());
            out.tell(AgentEvent::SessionStarted { id: SessionId::new(id) });
        }
    }

    fn codex(&mut self, message: &Value, out: &mut Reaction) {
        let item = &message["item"];
        match text(message, "/type") {
            "thread.started" => self.session_named(text(message, "/thread_id"), out),
            "turn.started" => self.turn.announce(out),
            "item.started" if text(item, "/type") == "command_execution" => {
                self.turn.tool_started(text(item, "/id"), "shell", text(item, "/command"), out);
            }
            "item.completed" => match text(item, "/type") {
                "agent_message" => out.tell(AgentEvent::Message { text: text(item, "/text").to_owned() }),
                "command_execution" => {
                    self.turn.tool_finished(text(item, "/id"), item["exit_code"] == 0, out);
                }
                _ => {}
            },
            "error" => out.tell(Fault::of(None, text(message, "/message")).retrying().event()),
            // The numbers are the thread's; those of a resumed thread include its past, with which the meter begins. A past that nobody
            // recorded is counted here: rather too much than nothing.
            "turn.completed" => {
                let usage = &message["usage"];
                let cached = count(usage, "cached_input_tokens");
                let total = Usage {
                    fresh_input: count(usage, "input_tokens").saturating_sub(cached),
                    cached_input: cached,
                    output: count(usage, "output_tokens"),
                    reasoning: count(usage, "reasoning_output_tokens"),
                    ..Usage::default()
                };
                self.meter.total(total, out);
                self.turn.end(TurnEnd::Completed, out);
            }
            "turn.failed" => {
                let end = Fault::of(None, text(message, "/error/message")).end();
                self.turn.end(end, out);
            }
            _ => {}
        }
    }

    fn opencode(&mut self, message: &Value, out: &mut Reaction) {
        self.session_named(text(message, "/sessionID"), out);
        let part = &message["part"];
        match text(message, "/type") {
            "step_start" => self.turn.announce(out),
            "text" => out.tell(AgentEvent::Message { text: text(part, "/text").to_owned() }),
            // Printed once, when the call is over.
            "tool_use" => {
                let (id, state) = (text(part, "/callID"), &part["state"]);
                self.turn.tool_started(id, text(part, "/tool"), &about(&state["input"]), out);
                let ok = text(state, "/status") == "completed" && state["metadata"]["exit"].as_i64().unwrap_or(0) == 0;
                self.turn.tool_finished(id, ok, out);
            }
            "step_finish" => self.opencode_step(part, out),
            "error" => {
                let words = [
                    text(message, "/error/data/message"),
                    text(message, "/error/message"),
                    text(message, "/error/name"),
                ];
                let words =
                    words.into_iter().find(|words| !words.is_empty()).unwrap_or("the run failed without a reason");
                let status = message.pointer("/error/data/statusCode").and_then(Value::as_u64);
                let end = Fault::of(status, words).end();
                self.turn.end(end, out);
            }
            _ => {}
        }
    }

    /// Counts a step. Usage is reported per step, so a repeated step must not count again.
    fn opencode_step(&mut self, part: &Value, out: &mut Reaction) {
        let id = text(part, "/id").to_owned();
        if !self.turn.running() || self.steps.contains(&id) {
            return;
        }
        self.steps.push(id);
        let tokens = &part["tokens"];
        let cache = &tokens["cache"];
        let usage = Usage {
            fresh_input: count(tokens, "input").saturating_add(count(cache, "write")),
            cached_input: count(cache, "read"),
            output: count(tokens, "output"),
            reasoning: count(tokens, "reasoning"),
            cost_microusd: microusd(part.get("cost")),
            turns: 0,
        };
        self.meter.add(usage, out);
        match text(part, "/reason") {
            "stop" | "end_turn" => self.turn.end(TurnEnd::Completed, out),
            "length" => {
                let cut_off = Fault::new(TurnError::Context, "the answer was cut off at the model's length limit");
                self.turn.end(cut_off.end(), out);
            }
            _ => {}
        }
    }

    /// Drops what the inner protocol wants to write, because a one-shot command does not read it.
    fn heard(mut reaction: Reaction) -> Reaction {
        reaction.send.clear();
        reaction
    }
}

impl Protocol for OneShot {
    fn open(&mut self, opening: &Opening) -> Reaction {
        if let (Dialect::Codex, Some(_), Some(before)) = (self.dialect, &opening.resume, opening.used_before) {
            self.meter = Meter::starting_at(before);
        }
        let _ = Self::heard(self.claude.open(opening));
        let _ = Self::heard(self.pi.open(opening));
        Reaction { events: vec![AgentEvent::Ready], send: Vec::new() }
    }

    fn line(&mut self, line: &[u8]) -> Reaction {
        let message = match object(line) {
            Ok(message) => message,
            Err(reaction) => return reaction,
        };
        let mut out = Reaction::default();
        match self.dialect {
            Dialect::Codex => self.codex(&message, &mut out),
            Dialect::Opencode => self.opencode(&message, &mut out),
            Dialect::Claude => out = Self::heard(self.claude.line(line)),
            Dialect::Pi => {
                if text(&message, "/type") == "session" {
                    self.session_named(text(&message, "/id"), &mut out);
                } else {
                    out = Self::heard(self.pi.line(line));
                }
            }
        }
        out.events.retain(|event| !matches!(event, AgentEvent::Ready | AgentEvent::Asked { .. }));
        out.or_alive()
    }

    fn prompt(&mut self, text: &str) -> Reaction {
        match self.dialect {
            Dialect::Claude => drop(self.claude.prompt(text)),
            Dialect::Pi => drop(self.pi.prompt(text)),
            Dialect::Codex | Dialect::Opencode => self.turn.begin(),
        }
        Reaction { events: Vec::new(), send: vec![text.to_owned()] }
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
