//! A look over an agent's shoulder: what it said and which tools it used, read back from the lines that it printed. The same code
//! understands them that understood them when they came.

use super::acp::Acp;
use super::claude::Claude;
use super::codex::{Codex, ThreadPolicy};
use super::exec::Exec;
use super::pi::Pi;
use super::{AgentEvent, Protocol, TurnEnd};
use crate::config::exec::ExecEvents;
use crate::domain::time::Timestamp;

/// Longer words are cut: the log has them in full.
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
    /// The runner's own remark.
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

/// What the lines of a transcript come to. Those that are cut off at the beginning or the end are passed over.
pub fn peek(runtime: &str, exec: ExecEvents, transcript: &str) -> Vec<PeekLine> {
    let mut protocol: Box<dyn Protocol> = match runtime {
        "codex" => Box::new(Codex::new(ThreadPolicy::default())),
        "claude" => Box::new(Claude::default()),
        "pi" => Box::new(Pi::default()),
        "acp" => Box::new(Acp::default()),
        _ => Box::new(Exec::new(exec)),
    };
    let mut seen = Vec::new();
    for line in transcript.lines() {
        let mut parts = line.splitn(3, ' ');
        let (Some(at), Some(stream)) = (parts.next().and_then(|at| at.parse().ok()), parts.next()) else { continue };
        let (at, text) = (Timestamp(at), parts.next().unwrap_or_default());
        match stream {
            "out" => {
                let events = protocol.line(text.as_bytes()).events;
                seen.extend(events.into_iter().filter_map(|event| shown(event, at)));
            }
            "note" => seen.push(PeekLine { at, kind: PeekKind::Note, text: clipped(text) }),
            _ => {}
        }
    }
    seen
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
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_tools_are_read_and_the_rest_is_passed_over() {
        let lines = "cut off\n5 in the prompt\n7 out {\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Looking.\"},\
            {\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]}}\n8 err noise\n9 note stopped\n10 out {\"ty";
        let seen = peek("claude", ExecEvents::Plain, lines);
        let told: Vec<(i64, &str)> = seen.iter().map(|line| (line.at.0, line.kind.name())).collect();
        assert_eq!(told, [(7, "message"), (7, "tool"), (9, "note")], "{seen:?}");
        assert!(seen[0].text == "Looking." && seen[1].text.starts_with("Bash"), "{seen:?}");
        let plain = peek("exec", ExecEvents::Plain, "1 out hello\n2 out \n");
        assert_eq!(plain, [PeekLine { at: Timestamp(1), kind: PeekKind::Message, text: "hello".into() }]);
    }
}
