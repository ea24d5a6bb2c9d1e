//! The protocol of Claude Code: stream-json in both directions, with the control protocol on the same pipes. Owns the conversation;
//! permission requests are handled in `asks`, usage is added up in `spending`. Does no IO.
//!
//! A message that is sent while a turn runs is taken up by that turn at its next step; when it comes too late, the client goes on with it
//! by itself. So a turn ends with the first `result` that leaves none of the runner's messages behind: the client repeats each message when
//! it takes it up (`--replay-user-messages`).

mod asks;
mod spending;

use serde_json::{Value, json};

use self::asks::Asks;
use self::spending::Spending;
use super::conversation::{Turn, about, object, text};
use super::fault::{Fault, unix_seconds};
use super::{AgentEvent, Answer, Opening, Protocol, Reaction, Reset, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;

const INITIALIZE: &str = "dirigent-initialize";

#[derive(Debug, Default)]
pub struct Claude {
    session: Option<String>,
    resumed: bool,
    ready: bool,
    turn: Turn,
    interrupts: u64,
    asks: Asks,
    spending: Spending,
    limit_reset: Option<Reset>,
}

impl Claude {
    fn become_ready(&mut self, out: &mut Reaction) {
        if !self.ready {
            self.ready = true;
            out.tell(AgentEvent::Ready);
        }
    }

    fn system(&mut self, message: &Value, out: &mut Reaction) {
        match text(message, "/subtype") {
            "init" => {
                let id = text(message, "/session_id");
                if !id.is_empty() && self.session.as_deref() != Some(id) {
                    self.session = Some(id.to_owned());
                    out.tell(AgentEvent::SessionStarted { id: SessionId::new(id) });
                }
                let model = text(message, "/model");
                if !model.is_empty() {
                    out.tell(AgentEvent::Model { name: model.to_owned() });
                }
                self.become_ready(out);
                self.turn.announce(out);
            }
            "api_retry" => {
                let status = message.get("error_status").and_then(Value::as_u64);
                let delay = message.get("retry_delay_ms").and_then(Value::as_f64).unwrap_or(0.0);
                let words = match text(message, "/error") {
                    "" => "the model's server did not answer well; trying again",
                    named => named,
                };
                let reset = (delay > 0.0).then(|| Reset::In(std::time::Duration::from_millis(delay as u64)));
                let fault = Fault::of(status, words).with_reset(reset).retrying();
                out.tell(fault.event());
                self.turn.fault = Some(fault);
            }
            _ => {}
        }
    }

    fn assistant(&mut self, message: &Value, out: &mut Reaction) {
        self.turn.announce(out);
        let subagent = !message["parent_tool_use_id"].is_null();
        if !subagent {
            self.spending.request(&message["message"], out);
        }
        for block in blocks(message) {
            match text(block, "/type") {
                "text" if !subagent => {
                    let text = text(block, "/text");
                    if !text.is_empty() {
                        out.tell(AgentEvent::Message { text: text.to_owned() });
                    }
                }
                "tool_use" | "server_tool_use" => {
                    let about = about(&block["input"]);
                    self.turn.tool_started(text(block, "/id"), text(block, "/name"), &about, out);
                }
                _ => {}
            }
        }
    }

    fn user(&mut self, message: &Value, out: &mut Reaction) {
        if message["isReplay"] == true {
            let taken = match &message["message"]["content"] {
                Value::String(whole) => whole.as_str(),
                _ => blocks(message)
                    .iter()
                    .map(|block| text(block, "/text"))
                    .find(|text| !text.is_empty())
                    .unwrap_or_default(),
            };
            if self.turn.heard(taken) && self.turn.interrupting {
                self.send_interrupt(out);
            }
            return;
        }
        for block in blocks(message) {
            if text(block, "/type") == "tool_result" {
                self.turn.tool_finished(text(block, "/tool_use_id"), block["is_error"] != true, out);
            }
        }
    }

    fn result(&mut self, message: &Value, out: &mut Reaction) {
        let detail = detail_of(message);
        if self.resumed && detail.contains("No conversation found") {
            out.tell(AgentEvent::ResumeFailed { detail: detail.clone() });
        }
        if !self.turn.running() {
            return;
        }
        self.spending.result(message, out);
        if self.turn.steering_waits() {
            return;
        }
        let end = self.end_of(message, &detail);
        self.asks.clear();
        self.turn.end(end, out);
    }

    /// Returns how the turn ended. `subtype` says success even for a failed request, so it is read last.
    fn end_of(&mut self, message: &Value, detail: &str) -> TurnEnd {
        let reason = text(message, "/terminal_reason");
        let status = message.get("api_error_status").and_then(Value::as_u64);
        if self.turn.interrupting || reason.starts_with("aborted") {
            return TurnEnd::Interrupted;
        }
        if text(message, "/stop_reason") == "refusal" {
            return Fault::new(TurnError::Refused, or(detail, "the model refused to go on")).end();
        }
        if message["is_error"] == true {
            let fault = Fault::of(status, or(detail, "the turn failed without a reason"));
            let reset = self.turn.fault.take().and_then(|earlier| earlier.reset).or(self.limit_reset);
            return fault.with_reset(reset).end();
        }
        let subtype = text(message, "/subtype");
        if subtype.starts_with("error") {
            return Fault::new(TurnError::Other, or(detail, subtype)).end();
        }
        TurnEnd::Completed
    }

    fn limits(&mut self, info: &Value, out: &mut Reaction) {
        let reset = info.get("resetsAt").and_then(Value::as_i64).and_then(unix_seconds);
        let status = text(info, "/status");
        if status.is_empty() {
            return;
        }
        self.limit_reset = reset;
        let window = text(info, "/rateLimitType");
        out.tell(AgentEvent::RateLimited { description: format!("{window} {status}").trim().to_owned(), reset });
    }

    fn send_interrupt(&mut self, out: &mut Reaction) {
        self.interrupts += 1;
        let id = format!("dirigent-interrupt-{}", self.interrupts);
        out.say(&json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}}));
    }
}

impl Protocol for Claude {
    fn open(&mut self, opening: &Opening) -> Reaction {
        let mut out = Reaction::default();
        self.resumed = opening.resume.is_some();
        self.spending = Spending::new(self.resumed);
        out.say(&json!({"type": "control_request", "request_id": INITIALIZE, "request": {"subtype": "initialize"}}));
        out
    }

    fn line(&mut self, line: &[u8]) -> Reaction {
        let message = match object(line) {
            Ok(message) => message,
            Err(reaction) => return reaction,
        };
        let mut out = Reaction::default();
        match text(&message, "/type") {
            "system" => self.system(&message, &mut out),
            "assistant" => self.assistant(&message, &mut out),
            "user" => self.user(&message, &mut out),
            "result" => self.result(&message, &mut out),
            "rate_limit_event" => self.limits(&message["rate_limit_info"], &mut out),
            "control_request" => self.asks.request(&message, &mut out),
            "control_cancel_request" => self.asks.cancelled(text(&message, "/request_id")),
            "control_response" if text(&message, "/response/request_id") == INITIALIZE => self.become_ready(&mut out),
            _ => {}
        }
        out.or_alive()
    }

    /// Starts a turn. While a turn runs, the text steers it.
    fn prompt(&mut self, text: &str) -> Reaction {
        if self.turn.running() {
            return self.steer(text).unwrap_or_default();
        }
        let mut out = Reaction::default();
        self.turn.begin();
        self.spending.turn();
        out.say(&user_line(text));
        out
    }

    fn steer(&mut self, text: &str) -> Option<Reaction> {
        let mut out = Reaction::default();
        if self.turn.running() {
            self.turn.steered(text);
            out.say(&user_line(text));
        } else {
            out.tell(AgentEvent::SteerFailed { text: text.to_owned() });
        }
        Some(out)
    }

    fn interrupt(&mut self) -> Option<Reaction> {
        let mut out = Reaction::default();
        if self.turn.running() {
            self.turn.interrupting = true;
            self.send_interrupt(&mut out);
        }
        Some(out)
    }

    fn answer(&mut self, ask: &str, answer: &Answer) -> Reaction {
        self.asks.answer(ask, answer)
    }
}

fn user_line(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
}

fn blocks(message: &Value) -> &[Value] {
    message["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn detail_of(result: &Value) -> String {
    let errors = result["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
    if errors.is_empty() { text(result, "/result").to_owned() } else { errors.join("; ") }
}

fn or<'a>(detail: &'a str, otherwise: &'a str) -> &'a str {
    if detail.is_empty() { otherwise } else { detail }
}
