//! A transcript as people read it: the time of day, who spoke, and no more of the prompt than its beginning.

use serde_json::json;

use crate::domain::time::Timestamp;

use super::output;

/// What is shown of a line that was sent to the agent.
const LONGEST_SENT: usize = 200;

/// Takes the file in pieces and gives whole lines.
pub struct TranscriptView {
    verbose: bool,
    json: bool,
    half: Vec<u8>,
    /// Lines in a row that were sent to the agent, and are not shown.
    folded: usize,
    sent: bool,
}

impl TranscriptView {
    pub fn new(verbose: bool, json: bool) -> Self {
        Self { verbose, json, half: Vec::new(), folded: 0, sent: false }
    }

    pub fn take(&mut self, piece: &[u8]) -> String {
        self.half.extend_from_slice(piece);
        let Some(last) = self.half.iter().rposition(|byte| *byte == b'\n') else { return String::new() };
        let rest = self.half.split_off(last + 1);
        let whole = std::mem::replace(&mut self.half, rest);
        let mut out = String::new();
        for line in String::from_utf8_lossy(&whole).lines() {
            self.line(line, &mut out);
        }
        out
    }

    pub fn end(&mut self) -> String {
        let mut out = String::new();
        let half = std::mem::take(&mut self.half);
        if !half.is_empty() {
            self.line(&String::from_utf8_lossy(&half), &mut out);
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
        let time = if at == 0 { String::new() } else { output::time_of_day(Timestamp(at)) };
        out.push_str(&format!("{time:<8} {stream:<4} {text}\n"));
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

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "1000 in Do it.\n1000 in Really.\n1000 in Now.\n2000 out yes\n0 note left out\n3000 in again\n";

    fn read(mut page: TranscriptView) -> String {
        // In pieces that end anywhere.
        let shown: String = WORDS.as_bytes().chunks(7).map(|piece| page.take(piece)).collect();
        shown + &page.end()
    }

    #[test]
    fn the_prompt_is_folded_and_times_can_be_read() {
        let shown = read(TranscriptView::new(false, false));
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
        assert!(read(TranscriptView::new(true, false)).contains("in   Really."));
        let json = read(TranscriptView::new(false, true));
        assert_eq!(json.lines().count(), 6);
        assert_eq!(json.lines().next(), Some(r#"{"at":1000,"stream":"in","text":"Do it."}"#));
    }
}
