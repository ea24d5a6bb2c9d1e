//! The protocol of pi in its RPC mode: one JSON object per line, commands with ids. Owns the conversation; does no IO, never changes
//! settings.
//!
//! The turn is over at `agent_settled`: retries and queued messages may follow `agent_end`. Clients without `agent_settled` send no
//! `willRetry` with `agent_end` either; they are asked for their state, and a state that is not streaming ends the turn.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::conversation::{Meter, Turn, about, count, microusd, object, text};
use super::fault::Fault;
use super::{AgentEvent, Answer, Opening, Protocol, Question, Reaction, Reset, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::usage::Usage;

const REMEMBERED: usize = 256;

#[derive(Debug, Clone, PartialEq)]
enum Command {
    Open,
    Prompt,
    Steer(String),
    ClearQueue,
    /// Sent after an `agent_end` that may be final.
    Settle,
    Other,
}

#[derive(Debug, Default)]
pub struct Pi {
    resume: bool,
    ready: bool,
    commands: BTreeMap<u64, Command>,
    last_command: u64,
    turn: Turn,
    /// Why the model's last response stopped, and the error that it reported.
    stopped: Option<(String, String)>,
    retrying: bool,
    meter: Meter,
    counted: VecDeque<String>,
    /// Open questions of extensions, by id. The method decides the shape of the answer.
    dialogs: BTreeMap<String, String>,
}

impl Pi {
    fn command(&mut self, command: Command, mut line: Value, out: &mut Reaction) {
        self.last_command += 1;
        self.commands.insert(self.last_command, command);
        line["id"] = json!(format!("d{}", self.last_command));
        out.say(&line);
    }

    fn response(&mut self, message: &Value, out: &mut Reaction) {
        let id = text(message, "/id").strip_prefix('d').and_then(|number| number.parse().ok());
        let Some(command) = id.and_then(|id: u64| self.commands.remove(&id)) else { return };
        let ok = message["success"] != false;
        let data = &message["data"];
        match command {
            Command::Open if ok => self.opened(data, out),
            Command::Open => out.tell(Fault::of(None, text(message, "/error")).event()),
            Command::Prompt if !ok => {
                let fault = Fault::of(None, text(message, "/error"));
                self.turn.end(fault.end(), out);
            }
            Command::Steer(text) if !ok => self.steer_failed(&text, out),
            Command::ClearQueue => {
                for list in ["steering", "followUp"] {
                    let texts = data[list].as_array().map(Vec::as_slice).unwrap_or_default();
                    for text in texts.iter().filter_map(Value::as_str) {
                        self.steer_failed(text, out);
                    }
                }
            }
            Command::Settle if data["isStreaming"] == false && !self.retrying => self.settled(out),
            Command::Prompt | Command::Steer(_) | Command::Settle | Command::Other => {}
        }
    }

    fn steer_failed(&mut self, text: &str, out: &mut Reaction) {
        if self.turn.heard(text) {
            out.tell(AgentEvent::SteerFailed { text: text.to_owned() });
        }
    }

    fn opened(&mut self, state: &Value, out: &mut Reaction) {
        if self.ready {
            return;
        }
        self.ready = true;
        if self.resume && state["messageCount"] == 0 {
            out.tell(AgentEvent::ResumeFailed { detail: "the session has no messages".to_owned() });
        }
        let id = text(state, "/sessionId");
        if !id.is_empty() {
            out.tell(AgentEvent::SessionStarted { id: SessionId::new(id) });
        }
        out.tell(AgentEvent::Ready);
    }

    fn message_ended(&mut self, message: &Value, out: &mut Reaction) {
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> =
            blocks.iter().map(|block| text(block, "/text")).filter(|text| !text.is_empty()).collect();
        if text(message, "/role") == "user" {
            for said in texts {
                self.turn.heard(said);
            }
            return;
        }
        if text(message, "/role") != "assistant" {
            return;
        }
        let model = text(message, "/model");
        if !model.is_empty() {
            out.tell(AgentEvent::Model { name: model.to_owned() });
        }
        self.stopped = Some((text(message, "/stopReason").to_owned(), text(message, "/errorMessage").to_owned()));
        if self.first_sight_of(message) {
            self.meter.add(usage_of(&message["usage"]), out);
        }
        for text in texts {
            out.tell(AgentEvent::Message { text: text.to_owned() });
        }
    }

    /// Whether the message was not counted yet. Usage is reported per request, so a repeated message must not count again.
    fn first_sight_of(&mut self, message: &Value) -> bool {
        let key = format!("{}/{}", message["timestamp"], text(message, "/responseId"));
        if self.counted.contains(&key) {
            return false;
        }
        if self.counted.len() == REMEMBERED {
            self.counted.pop_front();
        }
        self.counted.push_back(key);
        true
    }

    fn settled(&mut self, out: &mut Reaction) {
        let (reason, error) = self.stopped.take().unwrap_or_default();
        let error = if error.is_empty() { "the turn failed without a reason".to_owned() } else { error };
        let end = match reason.as_str() {
            "aborted" => TurnEnd::Interrupted,
            _ if self.turn.interrupting => TurnEnd::Interrupted,
            "error" => Fault::of(None, &error).with_reset(self.turn.fault.take().and_then(|fault| fault.reset)).end(),
            "length" => Fault::new(TurnError::Context, "the answer was cut off at the model's length limit").end(),
            _ => TurnEnd::Completed,
        };
        self.dialogs.clear();
        self.turn.end(end, out);
    }

    fn dialog(&mut self, request: &Value, out: &mut Reaction) {
        let (id, method) = (text(request, "/id").to_owned(), text(request, "/method").to_owned());
        let words = [text(request, "/title"), text(request, "/message")];
        let words: Vec<&str> = words.into_iter().filter(|part| !part.is_empty()).collect();
        let question = match method.as_str() {
            "confirm" => Question::Approval { tool: "extension".to_owned(), about: words.join(": ") },
            "select" | "input" | "editor" => {
                let options = request["options"].as_array().map(Vec::as_slice).unwrap_or_default();
                let choices = options.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                Question::Input { text: words.join(": "), choices }
            }
            // Notices and widgets need no answer.
            _ => return,
        };
        if self.dialogs.insert(id.clone(), method).is_none() {
            out.tell(AgentEvent::Asked { ask: id, question });
        }
    }

    fn event(&mut self, message: &Value, out: &mut Reaction) {
        match text(message, "/type") {
            "response" => self.response(message, out),
            "agent_start" => {
                self.retrying = false;
                self.turn.announce(out);
            }
            "message_end" => self.message_ended(&message["message"], out),
            "tool_execution_start" => {
                let about = about(&message["args"]);
                self.turn.tool_started(text(message, "/toolCallId"), text(message, "/toolName"), &about, out);
            }
            "tool_execution_end" => {
                self.turn.tool_finished(text(message, "/toolCallId"), message["isError"] != true, out);
            }
            "auto_retry_start" => {
                self.retrying = true;
                let delay = Duration::from_millis(count(message, "delayMs"));
                let fault = Fault::of(None, text(message, "/errorMessage")).with_reset(Some(Reset::In(delay)));
                out.tell(fault.clone().retrying().event());
                self.turn.fault = Some(fault);
            }
            "auto_retry_end" => self.retrying = false,
            "agent_end" if self.turn.running() && message.get("willRetry").is_none() => {
                self.command(Command::Settle, json!({"type": "get_state"}), out);
            }
            "agent_settled" => self.settled(out),
            "extension_ui_request" => self.dialog(message, out),
            _ => {}
        }
    }
}

impl Protocol for Pi {
    fn open(&mut self, opening: &Opening) -> Reaction {
        let mut out = Reaction::default();
        self.resume = opening.resume.is_some();
        self.command(Command::Open, json!({"type": "get_state"}), &mut out);
        out
    }

    fn line(&mut self, line: &[u8]) -> Reaction {
        let message = match object(line) {
            Ok(message) => message,
            Err(reaction) => return reaction,
        };
        let mut out = Reaction::default();
        self.event(&message, &mut out);
        out.or_alive()
    }

    /// Starts a turn. While a turn runs, the text steers it.
    fn prompt(&mut self, text: &str) -> Reaction {
        if self.turn.running() {
            return self.steer(text).unwrap_or_default();
        }
        let mut out = Reaction::default();
        self.turn.begin();
        self.stopped = None;
        self.retrying = false;
        self.command(Command::Prompt, json!({"type": "prompt", "message": text}), &mut out);
        out
    }

    fn steer(&mut self, text: &str) -> Option<Reaction> {
        let mut out = Reaction::default();
        if self.turn.running() {
            self.turn.steered(text);
            self.command(Command::Steer(text.to_owned()), json!({"type": "steer", "message": text}), &mut out);
        } else {
            out.tell(AgentEvent::SteerFailed { text: text.to_owned() });
        }
        Some(out)
    }

    fn interrupt(&mut self) -> Option<Reaction> {
        let mut out = Reaction::default();
        if self.turn.running() {
            self.turn.interrupting = true;
            self.command(Command::ClearQueue, json!({"type": "clear_queue"}), &mut out);
            self.command(Command::Other, json!({"type": "abort"}), &mut out);
        }
        Some(out)
    }

    fn answer(&mut self, ask: &str, answer: &Answer) -> Reaction {
        let mut out = Reaction::default();
        let Some(method) = self.dialogs.remove(ask) else { return out };
        let mut line = json!({"type": "extension_ui_response", "id": ask});
        match (method.as_str(), answer) {
            ("confirm", answer) => line["confirmed"] = json!(matches!(answer, Answer::Allow)),
            (_, Answer::Text(text)) => line["value"] = json!(text),
            _ => line["cancelled"] = json!(true),
        }
        out.say(&line);
        out
    }
}

/// Converts usage. pi's `input` does not include what came from the cache.
pub(super) fn usage_of(usage: &Value) -> Usage {
    Usage {
        fresh_input: count(usage, "input").saturating_add(count(usage, "cacheWrite")),
        cached_input: count(usage, "cacheRead"),
        output: count(usage, "output"),
        reasoning: count(usage, "reasoning"),
        cost_microusd: microusd(usage.pointer("/cost/total")),
        turns: 0,
    }
}
