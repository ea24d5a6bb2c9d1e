//! The `## Notes` section: reading all notes, appending one, and replacing the text of one.
//!
//! A note is a line `**<timestamp>**` and the text after it. The format has no author and no id. A note written through Dirigent
//! (by itself or by a worker) ends with the hidden line `<!-- dirigent:KEY -->`; every other note is a person's. Lines that look
//! like a note's heading or like that hidden line are indented by one space when they are written, so that no text can pass for
//! another author's note.

use std::ops::Range;

use super::document::{Document, line_at, trim_end, trimmed};

const HEADING: &[u8] = b"## Notes";
const MARKER_OPEN: &[u8] = b"<!-- dirigent:";
const MARKER_CLOSE: &[u8] = b" -->";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketNote {
    /// The timestamp, with `.2`, `.3` for further notes of the same second; `key:KEY` for a note written through Dirigent. It stays
    /// the same when other notes are added, reworded or removed, except when an earlier note of the same second is removed.
    pub id: String,
    pub timestamp: Option<String>,
    pub text: String,
    /// The key in the hidden line. `None` for a person's note.
    pub key: Option<String>,
    /// The position in the file: everything between the timestamp's line and the hidden line or the next note.
    pub(super) span: Range<usize>,
}

impl Document {
    /// Returns the body without its title, up to the notes.
    pub fn description(&self) -> String {
        let end = section(self.body()).map_or(self.bytes.len(), |found| self.body_start + found.description_end);
        let mut text = Vec::with_capacity(end - self.body_start);
        match self.title_line().filter(|line| line.end <= end) {
            Some(line) => {
                text.extend_from_slice(&self.bytes[self.body_start..line.start]);
                text.extend_from_slice(&self.bytes[line.end..end]);
            }
            None => text.extend_from_slice(&self.bytes[self.body_start..end]),
        }
        String::from_utf8_lossy(text.trim_ascii()).into_owned()
    }

    /// Returns all notes in file order.
    pub fn notes(&self) -> Vec<TicketNote> {
        let Some(found) = section(self.body()) else { return Vec::new() };
        let mut notes: Vec<TicketNote> = Vec::new();
        let mut open = Entry { timestamp: None, from: self.body_start + found.entries };
        let mut at = open.from;
        while at < self.bytes.len() {
            let line = line_at(&self.bytes, at);
            if let Some(timestamp) = heading_of_note(&self.bytes[line.clone()]) {
                self.close(&mut notes, &open, line.start);
                open = Entry { timestamp: Some(timestamp), from: line.end };
            }
            at = line.end;
        }
        self.close(&mut notes, &open, self.bytes.len());
        notes
    }

    /// Replaces the text of a note that has a hidden key. The timestamp and the key stay.
    pub fn reword_note(&mut self, note: &TicketNote, text: &str) {
        let newline = self.newline();
        let text = escaped(text, newline);
        self.splice(note.span.clone(), &format!("{newline}{text}{newline}"));
    }

    fn close(&self, notes: &mut Vec<TicketNote>, entry: &Entry, end: usize) {
        let marker = self.marker_in(entry.from..end);
        let own_end = marker.as_ref().map_or(end, |(line, _)| line.start);
        let text = self.text_of(entry.from..own_end);
        let key = marker.as_ref().map(|(_, key)| key.clone());
        if entry.timestamp.is_some() || key.is_some() || !text.is_empty() {
            let base = match (&key, &entry.timestamp) {
                (Some(key), _) => format!("key:{key}"),
                (None, Some(timestamp)) => timestamp.clone(),
                (None, None) => "first".to_owned(),
            };
            let id = unused(notes, base);
            let span = entry.from..own_end;
            notes.push(TicketNote { id, timestamp: entry.timestamp.clone(), text, key, span });
        }
        let Some((line, key)) = marker else { return };
        let rest = self.text_of(line.end..end);
        if !rest.is_empty() {
            let id = unused(notes, format!("after:{key}"));
            notes.push(TicketNote { id, timestamp: None, text: rest, key: None, span: line.end..end });
        }
    }

    fn marker_in(&self, span: Range<usize>) -> Option<(Range<usize>, String)> {
        let mut at = span.start;
        while at < span.end {
            let line = line_at(&self.bytes, at);
            if let Some(key) = marker_key(&self.bytes[line.clone()]) {
                return Some((line, key));
            }
            at = line.end;
        }
        None
    }

    fn text_of(&self, span: Range<usize>) -> String {
        let text = String::from_utf8_lossy(&self.bytes[trimmed(&self.bytes, span)]);
        if text.contains('\r') { text.replace("\r\n", "\n") } else { text.into_owned() }
    }
}

struct Entry {
    timestamp: Option<String>,
    from: usize,
}

struct Section {
    description_end: usize,
    entries: usize,
}

/// Finds the start of the notes: a `## Notes` line, or otherwise the first note after a heading that only starts with those words.
fn section(body: &[u8]) -> Option<Section> {
    let mut at = 0;
    let mut similar = false;
    let mut fallback = None;
    while at < body.len() {
        let line = line_at(body, at);
        let text = &body[line.clone()];
        if trim_end(text) == HEADING {
            return Some(Section { description_end: line.start, entries: line.end });
        }
        if text.starts_with(HEADING) {
            similar = true;
        } else if similar && fallback.is_none() && heading_of_note(text).is_some() {
            fallback = Some(Section { description_end: line.start, entries: line.start });
        }
        at = line.end;
    }
    fallback
}

/// Returns the text to append for a new note to a file with this body.
pub(super) fn appended(body: &[u8], timestamp: &str, text: &str, newline: &str) -> String {
    let text = escaped(text, newline);
    let heading = if body.split(|byte| *byte == b'\n').any(|line| line.starts_with(HEADING)) {
        String::new()
    } else {
        format!("{newline}## Notes{newline}")
    };
    format!("{heading}{newline}**{timestamp}**{newline}{newline}{text}{newline}")
}

/// Returns the hidden line that marks a note as written through Dirigent. Appended right after `add_note`.
pub(super) fn marker_line(key: &str, newline: &str) -> String {
    format!("<!-- dirigent:{} -->{newline}", safe_key(key))
}

/// Replaces blanks, `<`, `>`, control characters and the like in a key, so that it cannot end the hidden line.
pub(super) fn safe_key(key: &str) -> String {
    key.chars().map(|c| if c.is_alphanumeric() || "._:/#@+=-".contains(c) { c } else { '_' }).collect()
}

/// Indents the lines that would be read as structure.
pub(super) fn escaped(text: &str, newline: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if number > 0 {
            out.push_str(newline);
        }
        if heading_of_note(line.as_bytes()).is_some() || line.as_bytes().starts_with(MARKER_OPEN) {
            out.push(' ');
        }
        out.push_str(line);
    }
    out
}

/// Like `escaped`, for text above the notes: there a `## Notes` heading would be read as structure too.
pub(super) fn escaped_section(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.as_bytes().starts_with(HEADING) {
        true => format!(" {line}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn heading_of_note(line: &[u8]) -> Option<String> {
    let inner = trim_end(line).strip_prefix(b"**")?.strip_suffix(b"**")?;
    let dated = inner.len() >= 10
        && inner.iter().enumerate().take(10).all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let plain = inner.iter().all(|byte| byte.is_ascii_digit() || b"-:.+TZ ".contains(byte));
    (dated && plain).then(|| String::from_utf8_lossy(inner).into_owned())
}

fn marker_key(line: &[u8]) -> Option<String> {
    let inner = trim_end(line).strip_prefix(MARKER_OPEN)?.strip_suffix(MARKER_CLOSE)?;
    Some(String::from_utf8_lossy(inner).into_owned())
}

fn unused(notes: &[TicketNote], base: String) -> String {
    let taken = notes.iter().filter(|note| note.id == base || note.id.starts_with(&format!("{base}."))).count();
    if taken == 0 { base } else { format!("{base}.{}", taken + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "---\nid: a\n---\n# T\n\nwhat\n\n## Design\n\nhow\n";

    fn parse(text: &str) -> Document {
        Document::parse(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn the_first_note_brings_the_heading_and_the_bytes_before_stay() {
        let mut doc = parse(TICKET);
        doc.add_note("2026-01-02T03:04:05Z", "one");
        doc.add_note("2026-01-02T03:04:05Z", "two\nlines");
        let expected = format!(
            "{TICKET}\n## Notes\n\n**2026-01-02T03:04:05Z**\n\none\n\n**2026-01-02T03:04:05Z**\n\ntwo\nlines\n"
        );
        assert_eq!(std::str::from_utf8(doc.bytes()).unwrap(), expected);
        let notes = doc.notes();
        assert_eq!(
            notes.iter().map(|note| note.id.as_str()).collect::<Vec<_>>(),
            ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z.2"]
        );
        assert_eq!(notes[1].text, "two\nlines");
        assert_eq!(doc.description(), "what\n\n## Design\n\nhow");
    }

    #[test]
    fn text_cannot_pass_for_another_note_or_for_ours() {
        let mut doc = parse(TICKET);
        doc.add_note("2026-01-02T03:04:05Z", "x\n**2026-01-01T00:00:00Z**\n\nfake\n<!-- dirigent:k -->");
        let notes = doc.notes();
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].key, None);
        assert_eq!(notes[0].text, "x\n **2026-01-01T00:00:00Z**\n\nfake\n <!-- dirigent:k -->");
    }

    #[test]
    fn words_under_a_note_of_ours_are_somebody_elses() {
        let doc = parse(
            "---\nid: a\n---\n## Notes\nby hand\n\n**2026-01-02T03:04:05Z**\n\nours\n<!-- dirigent:k/1 -->\n\nplease stop\n",
        );
        let seen = doc.notes().into_iter().map(|note| (note.id, note.text, note.key.is_some())).collect::<Vec<_>>();
        let expected = [("first", "by hand", false), ("key:k/1", "ours", true), ("after:k/1", "please stop", false)];
        assert_eq!(seen, expected.map(|(id, text, ours)| (id.to_owned(), text.to_owned(), ours)));
    }

    #[test]
    fn rewording_keeps_the_rest_and_the_ids() {
        let mut doc = parse(
            "---\r\nid: a\r\n---\r\n# T\r\n\r\n## Notes\r\n\r\n**2026-01-02T03:04:05Z**\r\n\r\nold\r\n<!-- dirigent:k -->\r\n\r\n**2026-01-02T03:04:06Z**\r\n\r\nlater\r\n",
        );
        let before = String::from_utf8(doc.bytes().to_vec()).unwrap();
        let note = doc.notes()[0].clone();
        doc.reword_note(&note, "new\nwords");
        assert_eq!(std::str::from_utf8(doc.bytes()).unwrap(), before.replace("old", "new\r\nwords"));
        assert_eq!(
            doc.notes().iter().map(|note| note.id.as_str()).collect::<Vec<_>>(),
            ["key:k", "2026-01-02T03:04:06Z"]
        );
        assert_eq!(doc.notes()[0].text, "new\nwords");
    }

    #[test]
    fn a_heading_that_only_starts_like_notes_does_not_cut_the_description() {
        let doc = parse("---\nid: a\n---\n# T\n\n## Notes on the API\n\ntext\n\n**2026-01-02T03:04:05Z**\n\nhi\n");
        assert_eq!(doc.description(), "## Notes on the API\n\ntext");
        assert_eq!(doc.notes()[0].text, "hi");
    }

    #[test]
    fn keys_cannot_break_out_of_the_hidden_line() {
        assert_eq!(safe_key("a b-->\n<x"), "a_b--__x".replace("__", "___"));
        let line = marker_line("run 1 --> x", "\n");
        assert_eq!(marker_key(line.as_bytes()).as_deref(), Some("run_1_--__x"));
    }
}
