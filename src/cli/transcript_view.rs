//! Formats a run's transcript for people: the time of day, who spoke, and only the beginning of the prompt. For an agent with a protocol it
//! shows what the agent said and which tools it used. Secrets of the workflow file are removed.

use serde_json::json;

use crate::agent::peek::{PeekLine, PeekReader};
use crate::config::exec::ExecEvents;
use crate::domain::time::Timestamp;
use crate::launcher::environment::Secrets;

use super::output;

/// How many characters are shown of a line that was sent to the agent.
const LONGEST_SENT: usize = 200;

/// Takes the transcript in pieces and returns whole formatted lines.
pub struct TranscriptView {
    verbose: bool,
    json: bool,
    secrets: Secrets,
    /// Reads the agent's protocol. `None` if lines are shown as they were printed.
    reader: Option<PeekReader>,
    half: Vec<u8>,
    /// How many lines in a row were sent to the agent and are not shown.
    folded: usize,
    sent: bool,
}

impl TranscriptView {
    pub fn new(verbose: bool, json: bool, secrets: Secrets) -> Self {
        Self { verbose, json, secrets, reader: None, half: Vec::new(), folded: 0, sent: false }
    }

    /// Sets up the view for the protocol of this agent. With `verbose` or `json`, lines are shown as they were printed.
    pub fn of_agent(self, runtime: &str, exec: ExecEvents) -> Self {
        let is_plain = self.verbose || self.json || runtime.is_empty();
        let is_plain = is_plain || (runtime == "exec" && matches!(exec, ExecEvents::Plain));
        let reader = (!is_plain).then(|| PeekReader::new(runtime, exec));
        Self { reader, ..self }
    }

    pub fn take(&mut self, piece: &[u8]) -> String {
        self.half.extend_from_slice(piece);
        let Some(last) = self.half.iter().rposition(|byte| *byte == b'\n') else { return String::new() };
        let rest = self.half.split_off(last + 1);
        let whole = std::mem::replace(&mut self.half, rest);
        let mut out = String::new();
        for line in self.secrets.cut_from(&String::from_utf8_lossy(&whole)).lines() {
            self.line(line, &mut out);
        }
        out
    }

    pub fn end(&mut self) -> String {
        let mut out = String::new();
        let half = std::mem::take(&mut self.half);
        if !half.is_empty() {
            let half = self.secrets.cut_from(&String::from_utf8_lossy(&half));
            self.line(&half, &mut out);
        }
        self.unfold(&mut out);
        out
    }

    fn line(&mut self, line: &str, out: &mut String) {
        let mut parts = line.splitn(3, ' ');
        let at = parts.next().and_then(|at| at.parse::<i64>().ok());
        let (Some(at), Some(stream)) = (at, parts.next()) else {
            out.push_str(&format!("{line}\n"));
            return;
        };
        let text = parts.next().unwrap_or_default();
        if let Some(reader) = &mut self.reader {
            let seen = reader.line(line);
            if matches!(stream, "in" | "out" | "note") {
                seen.iter().for_each(|seen| tell(seen, out));
                return;
            }
        }
        if self.json {
            out.push_str(&format!("{}\n", json!({ "at": at, "stream": stream, "text": text })));
            return;
        }
        if stream == "in" && !self.verbose && std::mem::replace(&mut self.sent, true) {
            self.folded += 1;
            return;
        }
        if stream != "in" {
            self.unfold(out);
            self.sent = false;
        }
        let text = if stream == "in" && !self.verbose { output::clip(text, LONGEST_SENT) } else { text.to_owned() };
        out.push_str(&format!("{:<8} {stream:<4} {text}\n", time_of(Timestamp(at))));
    }

    fn unfold(&mut self, out: &mut String) {
        if self.folded > 0 {
            out.push_str(&format!(
                "{:8} in   … {} of the prompt (--verbose shows them)\n",
                "",
                output::count(self.folded, "more line", "more lines")
            ));
            self.folded = 0;
        }
    }
}

fn time_of(at: Timestamp) -> String {
    if at.0 == 0 { String::new() } else { output::time_of_day(at) }
}

/// Appends a message to `out`; only its first line gets the time and kind.
fn tell(seen: &PeekLine, out: &mut String) {
    for (number, line) in seen.text.trim_end().lines().enumerate() {
        let (time, kind) = if number == 0 { (time_of(seen.at), seen.kind.name()) } else { (String::new(), "") };
        out.push_str(&format!("{time:<8} {kind:<7} {line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "1000 in Do it.\n1000 in Really.\n1000 in Now.\n2000 out yes\n0 note left out\n3000 in again\n";

    fn read(mut page: TranscriptView) -> String {
        // The pieces end anywhere in a line.
        let shown: String = WORDS.as_bytes().chunks(7).map(|piece| page.take(piece)).collect();
        shown + &page.end()
    }

    #[test]
    fn the_prompt_is_folded_and_times_can_be_read() {
        let shown = read(TranscriptView::new(false, false, Secrets::default()));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 5, "{shown}");
        assert!(lines[0].ends_with(" in   Do it.") && lines[0].as_bytes()[2] == b':', "{shown}");
        assert!(lines[1].contains("2 more lines of the prompt"), "{shown}");
        assert!(lines[2].ends_with(" out  yes"), "{shown}");
        assert_eq!(lines[3], "         note left out");
        assert!(lines[4].ends_with(" in   again"), "{shown}");
    }

    #[test]
    fn verbose_shows_all_and_json_keeps_the_times() {
        assert!(read(TranscriptView::new(true, false, Secrets::default())).contains("in   Really."));
        let json = read(TranscriptView::new(false, true, Secrets::default()));
        assert_eq!(json.lines().count(), 6);
        assert_eq!(json.lines().next(), Some(r#"{"at":1000,"stream":"in","text":"Do it."}"#));
    }

    #[test]
    fn of_an_agent_with_a_protocol_its_words_and_tools_are_shown_and_no_secret() {
        let words = "5000 in {\"type\":\"user\"}\n7000 out {\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Looking.\\nWith ghp_0123456789abcdef\"},\
            {\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]}}\n8000 err a warning\n";
        let secrets = Secrets { names: Vec::new(), values: vec!["ghp_0123456789abcdef".into()] };
        let view = |verbose| TranscriptView::new(verbose, false, secrets.clone()).of_agent("claude", ExecEvents::Plain);
        let read = |mut page: TranscriptView| page.take(words.as_bytes()) + &page.end();
        let shown = read(view(false));
        let told: Vec<&str> = shown.lines().map(|line| line[8..].trim()).collect();
        assert_eq!(told, ["message Looking.", "With ***", "tool    Bash ls", "err  a warning"], "{shown}");
        let all = read(view(true));
        assert!(all.contains("tool_use") && !all.contains("ghp_"), "{all}");
    }
}
