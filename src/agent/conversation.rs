//! What the line protocols share: reading a line, following one turn from its prompt to its single end, and adding up usage without
//! counting anything twice. Independent of the agent.

use serde_json::Value;

use super::fault::{Fault, cut};
use super::{AgentEvent, Reaction, TurnEnd};
use crate::domain::usage::Usage;

/// The most open tool calls of a turn. An agent with more is out of control.
const OPEN_TOOLS: usize = 4096;
const ABOUT_LIMIT: usize = 500;

impl Reaction {
    pub(super) fn tell(&mut self, event: AgentEvent) {
        self.events.push(event);
    }

    pub(super) fn say(&mut self, line: &Value) {
        self.send.push(line.to_string());
    }

    /// Adds a sign of life if there is no other event: every understood line is one.
    pub(super) fn or_alive(mut self) -> Self {
        if self.events.is_empty() {
            self.events.push(AgentEvent::Alive);
        }
        self
    }
}

/// Parses the object on a line. The error is the reaction to a line without one.
pub(super) fn object(line: &[u8]) -> Result<Value, Reaction> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Err(Reaction::default());
    }
    let detail = match serde_json::from_slice::<Value>(line) {
        Ok(value) if value.is_object() => return Ok(value),
        Ok(_) => "JSON, but no object".to_owned(),
        Err(error) => format!("no JSON ({error})"),
    };
    let start = String::from_utf8_lossy(line.get(..line.len().min(120)).unwrap_or_default()).into_owned();
    let detail = format!("{detail}: {start}");
    Err(Reaction { events: vec![AgentEvent::Malformed { detail }], send: Vec::new() })
}

/// Returns the text at a path of keys; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Converts US dollars to millionths; invalid numbers count as zero.
pub(super) fn microusd(value: Option<&Value>) -> u64 {
    let dollars = value.and_then(Value::as_f64).unwrap_or(0.0);
    if dollars.is_finite() && dollars > 0.0 { (dollars * 1_000_000.0).round() as u64 } else { 0 }
}

/// Describes what a tool call is about: the command or the file, else its arguments.
pub(super) fn about(arguments: &Value) -> String {
    let named = ["command", "cmd", "file_path", "path", "url", "pattern", "query", "description"]
        .iter()
        .find_map(|key| arguments.get(key).and_then(Value::as_str));
    match named {
        Some(named) => cut(named, ABOUT_LIMIT),
        None if arguments.is_null() => String::new(),
        None => cut(&arguments.to_string(), ABOUT_LIMIT),
    }
}

/// One turn at a time: announced once, ended once, its tool calls closed by its end.
#[derive(Debug, Default)]
pub(super) struct Turn {
    running: bool,
    announced: bool,
    pub interrupting: bool,
    /// The last error that the agent reported in this turn.
    pub fault: Option<Fault>,
    /// Steering messages that the agent has not taken up yet.
    undelivered: Vec<String>,
    open_tools: Vec<String>,
}

impl Turn {
    pub fn begin(&mut self) {
        *self = Self { running: true, ..Self::default() };
    }

    pub fn running(&self) -> bool {
        self.running
    }

    pub fn announce(&mut self, out: &mut Reaction) {
        if self.running && !self.announced {
            self.announced = true;
            out.tell(AgentEvent::TurnStarted);
        }
    }

    pub fn steered(&mut self, text: &str) {
        self.undelivered.push(text.to_owned());
    }

    /// Whether this text is a steering message that waits. Removes it, because the agent shows that it took it up.
    pub fn heard(&mut self, text: &str) -> bool {
        let found = self.undelivered.iter().position(|said| said == text);
        found.map(|at| self.undelivered.remove(at)).is_some()
    }

    pub fn steering_waits(&self) -> bool {
        !self.undelivered.is_empty()
    }

    pub fn tool_started(&mut self, id: &str, name: &str, about: &str, out: &mut Reaction) {
        if !self.running || id.is_empty() || self.open_tools.iter().any(|open| open == id) {
            return;
        }
        if self.open_tools.len() >= OPEN_TOOLS {
            self.tool_finished(&self.open_tools[0].clone(), false, out);
        }
        self.open_tools.push(id.to_owned());
        let about = cut(about, ABOUT_LIMIT);
        out.tell(AgentEvent::ToolStarted { id: id.to_owned(), name: name.to_owned(), about });
    }

    pub fn tool_finished(&mut self, id: &str, ok: bool, out: &mut Reaction) {
        if let Some(at) = self.open_tools.iter().position(|open| open == id) {
            self.open_tools.remove(at);
            out.tell(AgentEvent::ToolFinished { id: id.to_owned(), ok });
        }
    }

    /// Ends the turn if one is running. An end without a running turn is ignored.
    pub fn end(&mut self, end: TurnEnd, out: &mut Reaction) {
        if !self.running {
            return;
        }
        self.announce(out);
        for id in std::mem::take(&mut self.open_tools) {
            out.tell(AgentEvent::ToolFinished { id, ok: false });
        }
        for text in std::mem::take(&mut self.undelivered) {
            out.tell(AgentEvent::SteerFailed { text });
        }
        *self = Self::default();
        out.tell(AgentEvent::TurnEnded(end));
    }
}

/// Converts growing totals into increments. The highest total seen is the mark: a repeated, late or shrinking report adds nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Meter {
    mark: Usage,
}

impl Meter {
    pub fn starting_at(mark: Usage) -> Self {
        Self { mark }
    }

    pub fn mark(&self) -> Usage {
        self.mark
    }

    pub fn total(&mut self, total: Usage, out: &mut Reaction) {
        let added = minus(total, self.mark);
        self.add(added, out);
    }

    pub fn add(&mut self, added: Usage, out: &mut Reaction) {
        if added != Usage::default() {
            self.mark += added;
            out.tell(AgentEvent::Usage(added));
        }
    }
}

/// Subtracts part by part, never below zero.
pub(super) fn minus(from: Usage, what: Usage) -> Usage {
    Usage {
        fresh_input: from.fresh_input.saturating_sub(what.fresh_input),
        cached_input: from.cached_input.saturating_sub(what.cached_input),
        output: from.output.saturating_sub(what.output),
        reasoning: from.reasoning.saturating_sub(what.reasoning),
        cost_microusd: from.cost_microusd.saturating_sub(what.cost_microusd),
        turns: from.turns.saturating_sub(what.turns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(fresh_input: u64, output: u64) -> Usage {
        Usage { fresh_input, output, ..Usage::default() }
    }

    #[test]
    fn a_total_that_repeats_or_shrinks_adds_nothing() {
        let mut meter = Meter::default();
        let mut out = Reaction::default();
        for total in [usage(100, 10), usage(100, 10), usage(40, 4), usage(150, 12)] {
            meter.total(total, &mut out);
        }
        assert_eq!(out.events, [AgentEvent::Usage(usage(100, 10)), AgentEvent::Usage(usage(50, 2))]);
    }

    #[test]
    fn a_turn_ends_once_and_closes_its_tools() {
        let mut turn = Turn::default();
        let mut out = Reaction::default();
        turn.end(TurnEnd::Completed, &mut out);
        assert!(out.events.is_empty());
        turn.begin();
        turn.tool_started("a", "shell", "ls", &mut out);
        turn.tool_started("a", "shell", "ls", &mut out);
        turn.end(TurnEnd::Completed, &mut out);
        turn.end(TurnEnd::Completed, &mut out);
        let started = AgentEvent::ToolStarted { id: "a".into(), name: "shell".into(), about: "ls".into() };
        let finished = AgentEvent::ToolFinished { id: "a".into(), ok: false };
        assert_eq!(out.events, [started, AgentEvent::TurnStarted, finished, AgentEvent::TurnEnded(TurnEnd::Completed)]);
    }

    #[test]
    fn lines_that_are_no_objects_are_malformed() {
        assert!(object(b"{\"a\":1}").is_ok());
        assert_eq!(object(b"  "), Err(Reaction::default()));
        for bad in [&b"[1]"[..], b"{\"a\":", b"\xff\xfe", b"plain words"] {
            let reaction = object(bad).unwrap_err();
            assert!(matches!(reaction.events.as_slice(), [AgentEvent::Malformed { .. }]));
        }
    }
}
