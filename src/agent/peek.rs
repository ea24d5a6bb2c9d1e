//! Reads from a transcript what an agent said and which tools it used. The same protocol code reads the lines as during the run.

use serde_json::Value;

use super::acp::Acp;
use super::claude::Claude;
use super::codex::{Codex, ThreadPolicy};
use super::exec::Exec;
use super::pi::Pi;
use super::{AgentEvent, Opening, Protocol, TurnEnd};
use crate::config::exec::ExecEvents;
use crate::domain::time::Timestamp;

/// The longest text in characters. Longer ones are truncated; the transcript has them in full.
const LONGEST: usize = 4000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeekLine {
    pub at: Timestamp,
    pub kind: PeekKind,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeekKind {
    Message,
    Tool,
    Trouble,
    /// A note of the runner.
    Note,
    Turn,
}

impl PeekKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Tool => "tool",
            Self::Trouble => "trouble",
            Self::Note => "note",
            Self::Turn => "turn",
        }
    }
}

/// Returns what the lines of a transcript show. Lines that are incomplete at the beginning or the end are skipped.
pub fn peek(runtime: &str, exec: ExecEvents, transcript: &str) -> Vec<PeekLine> {
    let mut reader = PeekReader::new(runtime, exec);
    transcript.lines().flat_map(|line| reader.line(line)).collect()
}

/// Follows a recorded conversation. A protocol reports tools only during a turn, and a turn begins with a prompt.
pub struct PeekReader {
    protocol: Box<dyn Protocol>,
    /// Whether the transcript shows the runner's side. If its beginning is missing, a turn is assumed to be under way.
    shows_our_side: bool,
}

impl PeekReader {
    pub fn new(runtime: &str, exec: ExecEvents) -> Self {
        let mut protocol: Box<dyn Protocol> = match runtime {
            "codex" => Box::new(Codex::new(ThreadPolicy::default())),
            "claude" => Box::new(Claude::default()),
            "pi" => Box::new(Pi::default()),
            "acp" => Box::new(Acp::default()),
            _ => Box::new(Exec::new(exec)),
        };
        // The protocol numbers its requests from here on, so that the recorded responses match.
        let _ = protocol.open(&Opening::default());
        Self { protocol, shows_our_side: false }
    }

    /// Reads the next line of the transcript, which begins with its time and its stream.
    pub fn line(&mut self, line: &str) -> Vec<PeekLine> {
        let mut parts = line.splitn(3, ' ');
        let (Some(at), Some(stream)) = (parts.next().and_then(|at| at.parse().ok()), parts.next()) else {
            return Vec::new();
        };
        let (at, text) = (Timestamp(at), parts.next().unwrap_or_default());
        match stream {
            "in" => self.said(text),
            "out" => return self.heard(text).into_iter().filter_map(|event| shown(event, at)).collect(),
            "note" => return vec![PeekLine { at, kind: PeekKind::Note, text: clipped(text) }],
            _ => {}
        }
        Vec::new()
    }

    fn said(&mut self, line: &str) {
        self.shows_our_side = true;
        if let Some(words) = prompt_of(line) {
            let _ = self.protocol.prompt(&words);
        }
    }

    fn heard(&mut self, line: &str) -> Vec<AgentEvent> {
        if !self.shows_our_side {
            self.shows_our_side = true;
            let _ = self.protocol.prompt("");
        }
        self.protocol.line(line.as_bytes()).events
    }
}

/// Returns the text of a recorded line that begins a turn or steers the running one. `None` for other lines.
fn prompt_of(line: &str) -> Option<String> {
    let message: Value = serde_json::from_str(line).ok()?;
    let at = |path: &str| message.pointer(path).and_then(Value::as_str).map(str::to_owned);
    match (at("/method").as_deref(), at("/type").as_deref()) {
        (Some("turn/start" | "session/prompt"), _) => Some(String::new()),
        (_, Some("user")) => Some(at("/message/content/0/text").unwrap_or_default()),
        (_, Some("prompt")) => Some(at("/message").unwrap_or_default()),
        _ => None,
    }
}

fn shown(event: AgentEvent, at: Timestamp) -> Option<PeekLine> {
    let (kind, text) = match event {
        AgentEvent::Message { text } if !text.trim().is_empty() => (PeekKind::Message, text),
        AgentEvent::ToolStarted { name, about, .. } => (PeekKind::Tool, format!("{name} {about}").trim().to_owned()),
        AgentEvent::ToolFinished { ok: false, .. } => (PeekKind::Trouble, "the tool failed".to_owned()),
        AgentEvent::Error { detail, .. } => (PeekKind::Trouble, detail),
        AgentEvent::TurnEnded(TurnEnd::Completed) => (PeekKind::Turn, "the turn is over".to_owned()),
        AgentEvent::TurnEnded(TurnEnd::Interrupted) => (PeekKind::Turn, "the turn was interrupted".to_owned()),
        AgentEvent::TurnEnded(TurnEnd::Failed { detail, .. }) => (PeekKind::Trouble, detail),
        _ => return None,
    };
    Some(PeekLine { at, kind, text: clipped(&text) })
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_tools_are_read_and_the_rest_is_passed_over() {
        let lines = "cut off\n5 in {\"type\":\"user\"}\n7 out {\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Looking.\"},\
            {\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]}}\n8 err noise\n9 note stopped\n10 out {\"ty";
        let seen = peek("claude", ExecEvents::Plain, lines);
        let told: Vec<(i64, &str)> = seen.iter().map(|line| (line.at.0, line.kind.name())).collect();
        assert_eq!(told, [(7, "message"), (7, "tool"), (9, "note")], "{seen:?}");
        assert!(seen[0].text == "Looking." && seen[1].text.starts_with("Bash"), "{seen:?}");
        let plain = peek("exec", ExecEvents::Plain, "1 out hello\n2 out \n");
        assert_eq!(plain, [PeekLine { at: Timestamp(1), kind: PeekKind::Message, text: "hello".into() }]);
    }
}
