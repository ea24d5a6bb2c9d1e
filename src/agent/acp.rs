//! The protocol of every agent that speaks the Agent Client Protocol, version 1: JSON-RPC 2.0 lines. Owns the conversation; does no IO.
//! Offers the agent neither files nor terminals, because the agent works in its own process.

use std::collections::{BTreeMap, HashMap};

use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::conversation::{Meter, Turn, about, count, microusd, object, text};
use super::fault::Fault;
use super::{AgentEvent, Answer, DeskServer, Opening, Protocol, Question, Reaction, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::usage::Usage;

const MESSAGE_LIMIT: usize = 1 << 20;
const AUTH_REQUIRED: i64 = -32000;
const METHOD_NOT_FOUND: i64 = -32601;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Initialize,
    New,
    Load,
    SetModel,
    Prompt,
}

#[derive(Debug, Default)]
pub struct Acp {
    opening: Option<Opening>,
    calls: HashMap<u64, Call>,
    last_call: u64,
    session: Option<String>,
    ready: bool,
    turn: Turn,
    /// The pieces of a message, collected until something else follows.
    message: String,
    /// Open permission requests, by their id as text: the id to answer with, and the options.
    asks: BTreeMap<String, (Value, Value)>,
    /// The session's cost so far; `None` until a resumed session has reported what it cost before.
    cost: Option<Meter>,
    /// Whether a session was loaded and not prompted yet.
    loaded: bool,
    /// The first prompt of a loaded session, until the agent shows that it works on it. Some agents tie a session to the directory it began
    /// in: they load it elsewhere, and then cannot go on with it.
    on_trial: Option<String>,
    /// A prompt that waits for the fresh session which replaces a loaded one.
    again: Option<String>,
}

impl Acp {
    fn call(&mut self, call: Call, method: &str, params: Value, out: &mut Reaction) {
        self.last_call += 1;
        self.calls.insert(self.last_call, call);
        out.say(&json!({"jsonrpc": "2.0", "id": self.last_call, "method": method, "params": params}));
    }

    fn cwd(&self) -> Value {
        self.opening.as_ref().map_or(Value::Null, |opening| json!(opening.cwd))
    }

    /// Returns the desk's server for the agent to start. Every agent of this protocol supports servers on standard streams.
    fn servers(&self) -> Value {
        let desk = self.opening.as_ref().and_then(|opening| opening.desk.as_ref());
        let Some(desk) = desk else { return json!([]) };
        let token = (DeskServer::TOKEN_VARIABLE, desk.token.expose_secret());
        let plain = desk.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let env = plain.chain([token]).map(|(name, value)| json!({"name": name, "value": value}));
        json!([{"name": DeskServer::NAME, "command": desk.program, "args": desk.arguments, "env": env.collect::<Value>()}])
    }

    fn new_session(&mut self, out: &mut Reaction) {
        self.cost = Some(Meter::default());
        let params = json!({"cwd": self.cwd(), "mcpServers": self.servers()});
        self.call(Call::New, "session/new", params, out);
    }

    fn initialized(&mut self, result: &Value, out: &mut Reaction) {
        let resume = self.opening.as_ref().and_then(|opening| opening.resume.clone());
        match resume {
            Some(session) if result["agentCapabilities"]["loadSession"] == true => {
                let params = json!({"sessionId": session.as_str(), "cwd": self.cwd(), "mcpServers": self.servers()});
                self.call(Call::Load, "session/load", params, out);
            }
            Some(_) => {
                out.tell(AgentEvent::ResumeFailed { detail: "this agent cannot load a session".to_owned() });
                self.new_session(out);
            }
            None => self.new_session(out),
        }
    }

    fn session_opened(&mut self, id: &str, out: &mut Reaction) {
        if id.is_empty() || self.session.is_some() {
            return;
        }
        self.session = Some(id.to_owned());
        out.tell(AgentEvent::SessionStarted { id: SessionId::new(id) });
        match self.opening.as_ref().and_then(|opening| opening.model.clone()) {
            Some(model) => {
                let params = json!({"sessionId": id, "modelId": model});
                self.call(Call::SetModel, "session/set_model", params, out);
            }
            None => self.become_ready(out),
        }
    }

    fn become_ready(&mut self, out: &mut Reaction) {
        if !self.ready {
            self.ready = true;
            out.tell(AgentEvent::Ready);
        }
        match self.again.take() {
            Some(_) if self.turn.interrupting => self.end_turn(TurnEnd::Interrupted, out),
            Some(prompt) => self.send_prompt(&prompt, out),
            None => {}
        }
    }

    fn send_prompt(&mut self, text: &str, out: &mut Reaction) {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.call(Call::Prompt, "session/prompt", params, out);
    }

    fn prompt_failed(&mut self, error: &Value, out: &mut Reaction) {
        let fault = fault_of(error);
        match self.on_trial.take() {
            _ if self.turn.interrupting => self.end_turn(TurnEnd::Interrupted, out),
            Some(prompt) if fault.class == TurnError::Other => {
                out.tell(AgentEvent::ResumeFailed { detail: fault.detail });
                self.again = Some(prompt);
                self.session = None;
                self.new_session(out);
            }
            _ => self.end_turn(fault.end(), out),
        }
    }

    fn response(&mut self, message: &Value, out: &mut Reaction) {
        let Some(call) = message.get("id").and_then(Value::as_u64).and_then(|id| self.calls.remove(&id)) else {
            return;
        };
        let result = &message["result"];
        match (call, message.get("error")) {
            (Call::Initialize, None) => self.initialized(result, out),
            (Call::New, None) => self.session_opened(text(result, "/sessionId"), out),
            (Call::Load, None) => {
                self.loaded = true;
                let id = self.opening.as_ref().and_then(|opening| opening.resume.clone());
                self.session_opened(id.as_ref().map(SessionId::as_str).unwrap_or_default(), out);
            }
            (Call::SetModel, None) => {
                if let Some(name) = self.opening.as_ref().and_then(|opening| opening.model.clone()) {
                    out.tell(AgentEvent::Model { name });
                }
                self.become_ready(out);
            }
            (Call::Prompt, None) => self.prompt_done(result, out),
            (Call::Load, Some(error)) => {
                out.tell(AgentEvent::ResumeFailed { detail: text(error, "/message").to_owned() });
                self.new_session(out);
            }
            (Call::SetModel, Some(error)) if error["code"] == METHOD_NOT_FOUND => {
                let text =
                    "this agent lets nobody choose its model; name the model in its own command or configuration";
                out.tell(AgentEvent::Message { text: text.to_owned() });
                self.become_ready(out);
            }
            (Call::SetModel, Some(error)) => {
                let fault = Fault::new(TurnError::Model, text(error, "/message"));
                if self.turn.running() { self.end_turn(fault.end(), out) } else { out.tell(fault.event()) }
            }
            (Call::New, Some(error)) if self.turn.running() => {
                let end = fault_of(error).end();
                self.end_turn(end, out);
            }
            (Call::Initialize | Call::New, Some(error)) => out.tell(fault_of(error).event()),
            (Call::Prompt, Some(error)) => self.prompt_failed(error, out),
        }
    }

    fn prompt_done(&mut self, result: &Value, out: &mut Reaction) {
        if !self.turn.running() {
            return;
        }
        let usage = &result["usage"];
        let usage = Usage {
            fresh_input: count(usage, "inputTokens").saturating_add(count(usage, "cachedWriteTokens")),
            cached_input: count(usage, "cachedReadTokens"),
            output: count(usage, "outputTokens"),
            reasoning: count(usage, "thoughtTokens"),
            ..Usage::default()
        };
        if usage != Usage::default() {
            out.tell(AgentEvent::Usage(usage));
        }
        let end = match text(result, "/stopReason") {
            "cancelled" => TurnEnd::Interrupted,
            "refusal" => Fault::new(TurnError::Refused, "the agent refused to go on").end(),
            "max_tokens" => Fault::new(TurnError::Context, "the answer was cut off at the model's length limit").end(),
            "max_turn_requests" => Fault::new(TurnError::Other, "the agent reached its own limit of requests").end(),
            _ if self.turn.interrupting => TurnEnd::Interrupted,
            _ => TurnEnd::Completed,
        };
        self.end_turn(end, out);
    }

    fn end_turn(&mut self, end: TurnEnd, out: &mut Reaction) {
        self.flush(out);
        self.asks.clear();
        self.on_trial = None;
        self.again = None;
        self.turn.end(end, out);
    }

    fn flush(&mut self, out: &mut Reaction) {
        if !self.message.is_empty() {
            out.tell(AgentEvent::Message { text: std::mem::take(&mut self.message) });
        }
    }

    fn update(&mut self, update: &Value, out: &mut Reaction) {
        let kind = text(update, "/sessionUpdate");
        if kind == "usage_update" {
            return self.cost_named(update, out);
        }
        // A loaded session repeats its past before the first prompt.
        if !self.turn.running() {
            return;
        }
        self.turn.announce(out);
        if kind != "available_commands_update" {
            self.on_trial = None;
        }
        if kind == "agent_message_chunk" {
            let piece = text(update, "/content/text");
            if self.message.len() + piece.len() > MESSAGE_LIMIT {
                self.flush(out);
            }
            self.message.push_str(piece);
            return;
        }
        if kind != "tool_call" && kind != "tool_call_update" {
            return;
        }
        self.flush(out);
        let (id, status) = (text(update, "/toolCallId"), text(update, "/status"));
        let ended = matches!(status, "completed" | "failed");
        if kind == "tool_call" {
            let name = if text(update, "/kind").is_empty() { "tool" } else { text(update, "/kind") };
            let words = text(update, "/title");
            let words = if words.is_empty() { about(&update["rawInput"]) } else { words.to_owned() };
            self.turn.tool_started(id, name, &words, out);
        }
        if ended {
            self.turn.tool_finished(id, status == "completed", out);
        }
    }

    fn cost_named(&mut self, update: &Value, out: &mut Reaction) {
        if text(update, "/cost/currency") != "USD" {
            return;
        }
        let total = Usage { cost_microusd: microusd(update.pointer("/cost/amount")), ..Usage::default() };
        self.cost.get_or_insert_with(|| Meter::starting_at(total)).total(total, out);
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value, out: &mut Reaction) {
        if method != "session/request_permission" {
            let message = format!("`{method}` is not served here");
            out.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": METHOD_NOT_FOUND, "message": message}}));
            return;
        }
        let call = &params["toolCall"];
        let words = text(call, "/title");
        let words = if words.is_empty() { about(&call["rawInput"]) } else { words.to_owned() };
        let tool = if text(call, "/kind").is_empty() { "tool" } else { text(call, "/kind") };
        let key = id.to_string();
        if self.asks.insert(key.clone(), (id.clone(), params["options"].clone())).is_none() {
            let question = Question::Approval { tool: tool.to_owned(), about: words };
            out.tell(AgentEvent::Asked { ask: key, question });
        }
    }
}

impl Protocol for Acp {
    fn open(&mut self, opening: &Opening) -> Reaction {
        let mut out = Reaction::default();
        self.opening = Some(opening.clone());
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "dirigent", "title": "Dirigent", "version": env!("CARGO_PKG_VERSION")},
        });
        self.call(Call::Initialize, "initialize", params, &mut out);
        out
    }

    fn line(&mut self, line: &[u8]) -> Reaction {
        let message = match object(line) {
            Ok(message) => message,
            Err(reaction) => return reaction,
        };
        let mut out = Reaction::default();
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => self.request(id, method, &message["params"], &mut out),
            (Some("session/update"), None) => self.update(&message["params"]["update"], &mut out),
            (Some(_), None) => {}
            (None, _) => self.response(&message, &mut out),
        }
        out.or_alive()
    }

    fn prompt(&mut self, text: &str) -> Reaction {
        let mut out = Reaction::default();
        if self.turn.running() {
            out.tell(AgentEvent::SteerFailed { text: text.to_owned() });
            return out;
        }
        self.turn.begin();
        if self.loaded {
            self.on_trial = Some(text.to_owned());
            self.loaded = false;
        }
        self.send_prompt(text, &mut out);
        out
    }

    /// The protocol has no way to send a message into a running turn.
    fn steer(&mut self, _text: &str) -> Option<Reaction> {
        None
    }

    fn interrupt(&mut self) -> Option<Reaction> {
        let mut out = Reaction::default();
        if self.turn.running() {
            self.turn.interrupting = true;
            if self.session.is_some() {
                out.say(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session}}));
            }
            // A cancelled turn still requires a response to each of its open requests.
            for (id, _) in std::mem::take(&mut self.asks).into_values() {
                out.say(&outcome(&id, None));
            }
        }
        Some(out)
    }

    fn answer(&mut self, ask: &str, answer: &Answer) -> Reaction {
        let mut out = Reaction::default();
        let Some((id, options)) = self.asks.remove(ask) else { return out };
        let kinds = match answer {
            Answer::Allow => ["allow_once", "allow_always"],
            _ => ["reject_once", "reject_always"],
        };
        let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
        let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| text(option, "/kind") == *kind));
        out.say(&outcome(&id, chosen.map(|option| text(option, "/optionId"))));
        out
    }
}

fn outcome(id: &Value, option: Option<&str>) -> Value {
    let outcome = match option {
        Some(option) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
}

fn fault_of(error: &Value) -> Fault {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
    let mut words = text(error, "/message").to_owned();
    let more = text(error, "/data/details");
    if !more.is_empty() {
        words = format!("{words}: {more}");
    }
    if code == AUTH_REQUIRED {
        return Fault::new(TurnError::Auth, words);
    }
    Fault::of(u64::try_from(code).ok(), &words)
}
