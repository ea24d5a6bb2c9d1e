//! The protocol of Codex's app server: JSON-RPC lines without a version field. Owns the conversation (handshake, thread, turn, steering,
//! interrupt); the items of a turn are read in `items`, requests of the server are answered in `asks`. Does no IO.

mod asks;
mod faults;
pub mod home;
mod items;
mod thread;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use self::asks::Asks;
pub use self::thread::ThreadPolicy;
use self::thread::with_roots;
use super::conversation::{Meter, Turn, count, minus, object, text};
use super::fault::{Fault, unix_seconds};
use super::{AgentEvent, Answer, Opening, Protocol, Reaction, Reset, TurnEnd};
use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::usage::Usage;

/// The most threads whose usage is counted in one run. An agent with more is out of control, and memory has to stay bounded.
const THREADS: usize = 256;

/// The runner's requests that still wait for a response.
#[derive(Debug, Clone, PartialEq)]
enum Call {
    Initialize,
    Start,
    Resume,
    Prompt,
    Steer(String),
    Other,
}

#[derive(Debug)]
pub struct Codex {
    policy: ThreadPolicy,
    opening: Option<Opening>,
    calls: HashMap<u64, Call>,
    last_call: u64,
    thread: Option<String>,
    turn: Turn,
    turn_id: Option<String>,
    /// The prompt that came before the thread was known. The field below holds messages that came before the turn's id was known.
    early_prompt: Option<String>,
    early_steers: Vec<String>,
    asks: Asks,
    /// Totals by thread: an agent may start threads of its own.
    meters: BTreeMap<String, Meter>,
    limit_reset: Option<Reset>,
}

impl Codex {
    pub fn new(policy: ThreadPolicy) -> Self {
        Self {
            policy,
            opening: None,
            calls: HashMap::new(),
            last_call: 0,
            thread: None,
            turn: Turn::default(),
            turn_id: None,
            early_prompt: None,
            early_steers: Vec::new(),
            asks: Asks::default(),
            meters: BTreeMap::new(),
            limit_reset: None,
        }
    }

    fn call(&mut self, call: Call, method: &str, params: Value, out: &mut Reaction) {
        self.last_call += 1;
        self.calls.insert(self.last_call, call);
        out.say(&json!({"id": self.last_call, "method": method, "params": params}));
    }

    fn start_turn(&mut self, prompt: &str, out: &mut Reaction) {
        let mut params = json!({"threadId": self.thread, "input": [{"type": "text", "text": prompt}]});
        if let Some(level) = self.opening.as_ref().and_then(|opening| opening.thinking_level.as_ref()) {
            params["effort"] = json!(level);
        }
        if let Some(policy) = &self.policy.turn_sandbox_policy {
            params["sandboxPolicy"] = with_roots(policy, &self.policy.writable_roots);
        }
        self.call(Call::Prompt, "turn/start", params, out);
    }

    fn turn_known(&mut self, id: &str, out: &mut Reaction) {
        if id.is_empty() || !self.turn.running() || self.turn_id.is_some() {
            return;
        }
        self.turn_id = Some(id.to_owned());
        for steer in std::mem::take(&mut self.early_steers) {
            self.send_steer(&steer, out);
        }
        if self.turn.interrupting {
            self.send_interrupt(out);
        }
    }

    fn send_steer(&mut self, message: &str, out: &mut Reaction) {
        let params = json!({"threadId": self.thread, "expectedTurnId": self.turn_id,
                            "input": [{"type": "text", "text": message}]});
        self.call(Call::Steer(message.to_owned()), "turn/steer", params, out);
    }

    fn send_interrupt(&mut self, out: &mut Reaction) {
        let params = json!({"threadId": self.thread, "turnId": self.turn_id});
        self.call(Call::Other, "turn/interrupt", params, out);
    }

    fn end_turn(&mut self, end: TurnEnd, out: &mut Reaction) {
        if !self.turn.running() {
            return;
        }
        // An interrupted turn leaves its shell command running until the thread's terminals are cleaned.
        if (self.turn.interrupting || end == TurnEnd::Interrupted) && self.thread.is_some() {
            let params = json!({"threadId": self.thread});
            self.call(Call::Other, "thread/backgroundTerminals/clean", params, out);
        }
        self.early_steers.clear();
        self.turn.end(end, out);
        self.turn_id = None;
        self.asks.clear();
    }

    fn response(&mut self, message: &Value, out: &mut Reaction) {
        let Some(call) = message.get("id").and_then(Value::as_u64).and_then(|id| self.calls.remove(&id)) else {
            return;
        };
        match (call, message.get("error")) {
            (Call::Initialize, None) => self.open_thread(out),
            (Call::Start, None) => self.thread_opened(&message["result"], false, out),
            (Call::Resume, None) => self.thread_opened(&message["result"], true, out),
            (Call::Prompt, None) => {
                let id = text(message, "/result/turn/id").to_owned();
                self.turn_known(&id, out);
            }
            (Call::Resume, Some(error)) => {
                out.tell(AgentEvent::ResumeFailed { detail: text(error, "/message").to_owned() });
                self.start_thread(out);
            }
            (Call::Initialize | Call::Start, Some(error)) => out.tell(faults::of_rpc(error).event()),
            (Call::Prompt, Some(error)) => {
                let fault = faults::of_rpc(error);
                self.end_turn(fault.end(), out);
            }
            (Call::Steer(text), Some(_)) => {
                if self.turn.heard(&text) {
                    out.tell(AgentEvent::SteerFailed { text });
                }
            }
            (Call::Steer(_) | Call::Other, _) => {}
        }
    }

    fn notification(&mut self, method: &str, params: &Value, out: &mut Reaction) {
        let thread = text(params, "/threadId");
        if method == "thread/tokenUsage/updated" {
            return self.usage(thread, params, out);
        }
        if method == "account/rateLimits/updated" {
            return self.limits(&params["rateLimits"], out);
        }
        // A thread that the agent started itself: its work is a sign of life, but its turns are not the runner's.
        if self.thread.as_deref().is_some_and(|own| !thread.is_empty() && own != thread) {
            return;
        }
        match method {
            "turn/started" => {
                self.turn_known(text(params, "/turn/id"), out);
                self.turn.announce(out);
            }
            "item/started" => items::started(&params["item"], &mut self.turn, out),
            "item/completed" => items::completed(&params["item"], &mut self.turn, out),
            "error" => {
                let fault = faults::of_turn(&params["error"]).with_reset(self.limit_reset);
                let fault = if params["willRetry"] == true { fault.retrying() } else { fault };
                out.tell(fault.event());
                self.turn.fault = Some(fault);
            }
            "turn/completed" => self.turn_completed(&params["turn"], out),
            "serverRequest/resolved" => self.asks.resolved(&params["requestId"]),
            _ => {}
        }
    }

    fn turn_completed(&mut self, turn: &Value, out: &mut Reaction) {
        if self.turn_id.as_deref().is_some_and(|id| id != text(turn, "/id")) {
            return;
        }
        let end = match text(turn, "/status") {
            "completed" => TurnEnd::Completed,
            "interrupted" => TurnEnd::Interrupted,
            "failed" if self.turn.interrupting => TurnEnd::Interrupted,
            "failed" => {
                let named = turn.get("error").filter(|error| error.is_object()).map(faults::of_turn);
                let fault = named.or_else(|| self.turn.fault.take());
                let fault = fault.unwrap_or_else(|| Fault::new(TurnError::Other, "the turn failed without a reason"));
                fault.with_reset(self.limit_reset).end()
            }
            _ => return,
        };
        self.end_turn(end, out);
    }

    /// Counts usage. `total` is the thread's total over all processes that ever served it; what was spent before this process was counted
    /// then.
    fn usage(&mut self, thread: &str, params: &Value, out: &mut Reaction) {
        let breakdown = |pointer: &str| {
            let part = params.pointer(pointer).unwrap_or(&Value::Null);
            let (input, cached) = (count(part, "inputTokens"), count(part, "cachedInputTokens"));
            Usage {
                fresh_input: input.saturating_sub(cached),
                cached_input: cached,
                output: count(part, "outputTokens"),
                reasoning: count(part, "reasoningOutputTokens"),
                ..Usage::default()
            }
        };
        let total = breakdown("/tokenUsage/total");
        if self.meters.len() >= THREADS && !self.meters.contains_key(thread) {
            return;
        }
        let resumed = self.opening.as_ref().and_then(|opening| opening.resume.as_ref());
        let own = self.thread.as_deref().or(resumed.map(SessionId::as_str)) == Some(thread);
        let of_this_turn = !own || self.turn_id.as_deref() == Some(text(params, "/turnId"));
        let meter = self.meters.entry(thread.to_owned()).or_insert_with(|| {
            let before = if of_this_turn { minus(total, breakdown("/tokenUsage/last")) } else { total };
            Meter::starting_at(before)
        });
        meter.total(total, out);
    }

    fn limits(&mut self, limits: &Value, out: &mut Reaction) {
        let mut words = Vec::new();
        let mut fullest: Option<(u64, Option<Reset>)> = None;
        for name in ["primary", "secondary"] {
            let Some(window) = limits.get(name).filter(|window| window.is_object()) else { continue };
            let used = count(window, "usedPercent");
            let reset = window.get("resetsAt").and_then(Value::as_i64).and_then(unix_seconds);
            words.push(format!("{used} % of the {} min window", count(window, "windowDurationMins")));
            if fullest.is_none_or(|(most, _)| used > most) {
                fullest = Some((used, reset));
            }
        }
        if let Some((_, reset)) = fullest {
            self.limit_reset = reset;
            out.tell(AgentEvent::RateLimited { description: words.join(", "), reset });
        }
    }
}

impl Protocol for Codex {
    fn open(&mut self, opening: &Opening) -> Reaction {
        let mut out = Reaction::default();
        self.asks.offer(&opening.tools);
        self.opening = Some(opening.clone());
        let params = json!({
            "clientInfo": {"name": "dirigent", "title": "Dirigent", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": true, "requestAttestation": false},
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
            (Some(method), Some(id)) => self.asks.request(id, method, &message["params"], &mut out),
            (Some(method), None) => self.notification(method, &message["params"], &mut out),
            (None, _) => self.response(&message, &mut out),
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
        if self.thread.is_some() {
            self.start_turn(text, &mut out);
        } else {
            self.early_prompt = Some(text.to_owned());
        }
        out
    }

    fn steer(&mut self, text: &str) -> Option<Reaction> {
        let mut out = Reaction::default();
        if !self.turn.running() {
            out.tell(AgentEvent::SteerFailed { text: text.to_owned() });
            return Some(out);
        }
        // Codex accepts steering at once, reports it as a user message when the model gets it, and drops it if the turn is interrupted
        // before.
        self.turn.steered(text);
        if self.turn_id.is_some() {
            self.send_steer(text, &mut out);
        } else {
            self.early_steers.push(text.to_owned());
        }
        Some(out)
    }

    fn interrupt(&mut self) -> Option<Reaction> {
        let mut out = Reaction::default();
        if self.turn.running() {
            self.turn.interrupting = true;
            if self.turn_id.is_some() {
                self.send_interrupt(&mut out);
            }
        }
        Some(out)
    }

    fn answer(&mut self, ask: &str, answer: &Answer) -> Reaction {
        self.asks.answer(ask, answer)
    }
}
