//! Edits a ticket file and leaves all other bytes unchanged: unknown keys, quoting, line ends, the body.

use std::ops::Range;

use super::document::{Document, Field, line_at, word_span};
use super::notes;

impl Document {
    /// Sets a one-word field, keeping its quotes and a trailing comment. A missing field is inserted as the first one.
    pub fn set_word(&mut self, key: &str, value: &str) {
        let Some(field) = self.field(key) else {
            self.insert_first(key, value);
            return;
        };
        let span = word_span(&self.bytes, field.value.clone());
        let quote = match self.bytes[span.clone()].first() {
            Some(b'"') => "\"",
            Some(b'\'') => "'",
            _ => "",
        };
        let gap = if self.bytes[field.key.end + 1..span.start].is_empty() { " " } else { "" };
        self.splice(span, &format!("{gap}{quote}{value}{quote}"));
    }

    /// Sets a field that holds free text, replacing its whole value.
    pub fn set_text(&mut self, key: &str, value: &str) {
        match self.field(key).map(|field| (field.value.clone(), field.key.end + 1)) {
            Some((span, after_colon)) => {
                let gap = if span.start == after_colon { " " } else { "" };
                self.splice(span, &format!("{gap}{value}"));
            }
            None => self.insert_first(key, value),
        }
    }

    /// Removes a field and its continuation lines.
    pub fn remove(&mut self, key: &str) {
        while let Some(block) = self.field(key).map(|field| field.block.clone()) {
            self.splice(block, "");
        }
    }

    /// Adds a list element. `false` if the list contains it already.
    pub fn list_add(&mut self, key: &str, value: &str) -> bool {
        let items = self.items(key);
        if items.iter().any(|item| item.value == value) {
            return false;
        }
        let Some(field) = self.field(key).cloned() else {
            self.insert_first(key, &format!("[{value}]"));
            return true;
        };
        if let (true, Some(last)) = (self.is_block_list(&field), items.last()) {
            let line = self.line_around(last.span.start);
            let dash = self.bytes[line.clone()].iter().position(|byte| *byte == b'-').unwrap_or(0);
            let indent = String::from_utf8_lossy(&self.bytes[line.start..line.start + dash]).into_owned();
            let new = format!("{indent}- {value}{}", self.newline());
            self.splice(line.end..line.end, &new);
        } else {
            let raw = items.iter().map(|item| self.raw(&item.span)).chain([value.to_owned()]).collect::<Vec<_>>();
            self.write_flow(&field, &raw);
        }
        true
    }

    /// Removes a list element. `false` if the list does not contain it.
    pub fn list_remove(&mut self, key: &str, value: &str) -> bool {
        let items = self.items(key);
        let Some(found) = items.iter().find(|item| item.value == value) else { return false };
        let Some(field) = self.field(key).cloned() else { return false };
        let rest = items.iter().filter(|item| item.value != value).map(|item| self.raw(&item.span)).collect::<Vec<_>>();
        if self.is_block_list(&field) && !rest.is_empty() {
            let line = self.line_around(found.span.start);
            self.splice(line, "");
            return true;
        }
        self.write_flow(&field, &rest);
        true
    }

    /// Appends a note at the end of the file, after a `## Notes` heading if this is the first note.
    pub fn add_note(&mut self, timestamp: &str, text: &str) {
        let addition = notes::appended(self.body(), timestamp, text, self.newline());
        let end = self.bytes.len();
        self.splice(end..end, &addition);
    }

    fn insert_first(&mut self, key: &str, value: &str) {
        let line = format!("{key}: {value}{}", self.newline());
        self.splice(self.front_start..self.front_start, &line);
    }

    fn is_block_list(&self, field: &Field) -> bool {
        word_span(&self.bytes, field.value.clone()).is_empty()
    }

    /// Writes the list on the key's own line, keeping the text after the closing bracket of the old one.
    fn write_flow(&mut self, field: &Field, raw: &[String]) {
        let list = format!("[{}]", raw.join(", "));
        let tail = self.closing_bracket(field).map_or_else(String::new, |close| {
            let line = line_at(&self.bytes, close);
            let text = super::document::trim_end(&self.bytes[line]);
            String::from_utf8_lossy(&text[1..]).into_owned()
        });
        let first_line = line_at(&self.bytes, field.block.start);
        let single = first_line.end == field.block.end;
        let gap = if self.bytes[field.key.end + 1..field.value.start].contains(&b' ') { "" } else { " " };
        if single {
            self.splice(field.value.clone(), &format!("{gap}{list}{tail}"));
        } else {
            let line = format!("{gap}{list}{tail}{}", self.newline());
            let start = if gap.is_empty() { field.value.start } else { field.key.end + 1 };
            self.splice(start..field.block.end, &line);
        }
    }

    fn raw(&self, span: &Range<usize>) -> String {
        String::from_utf8_lossy(&self.bytes[span.clone()]).into_owned()
    }

    fn line_around(&self, at: usize) -> Range<usize> {
        let start = self.bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        line_at(&self.bytes, start)
    }

    /// Replaces a part of the file and locates the fields again.
    pub(super) fn splice(&mut self, span: Range<usize>, with: &str) {
        let in_body = span.start >= self.body_start;
        self.bytes.splice(span, with.bytes());
        if in_body {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        match Document::parse(bytes.clone()) {
            Ok(parsed) => *self = parsed,
            Err(_) => self.bytes = bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Document {
        Document::parse(text.as_bytes().to_vec()).unwrap()
    }

    fn text(doc: &Document) -> &str {
        std::str::from_utf8(doc.bytes()).unwrap()
    }

    #[test]
    fn a_status_change_touches_one_value_in_the_front_matter() {
        let before = "---\r\nid: a\r\nx-unknown: {a: 1}  \r\nstatus: \"open\"  # mine\r\n---\r\n# T\r\nstatus: open\r\n---\r\nno newline at end";
        let mut doc = parse(before);
        doc.set_word("status", "closed");
        assert_eq!(text(&doc), before.replacen("\"open\"", "\"closed\"", 1));
    }

    #[test]
    fn a_missing_or_empty_field_is_filled_in() {
        let mut doc = parse("---\nid: a\n---\nstatus: x\n");
        doc.set_word("status", "open");
        assert_eq!(text(&doc), "---\nstatus: open\nid: a\n---\nstatus: x\n");
        let mut doc = parse("---\nstatus:\nid: a\n---\n");
        doc.set_word("status", "open");
        assert_eq!(text(&doc), "---\nstatus: open\nid: a\n---\n");
    }

    #[test]
    fn flow_lists_keep_the_spelling_of_what_stays() {
        let mut doc = parse("---\ndeps: [\"ab-12\", 'c'] # why\n---\n");
        assert!(doc.list_add("deps", "ab-1"));
        assert_eq!(text(&doc), "---\ndeps: [\"ab-12\", 'c', ab-1] # why\n---\n");
        assert!(!doc.list_add("deps", "ab-1"));
        assert!(doc.list_remove("deps", "c"));
        assert!(!doc.list_remove("deps", "ab"));
        assert_eq!(text(&doc), "---\ndeps: [\"ab-12\", ab-1] # why\n---\n");
    }

    #[test]
    fn a_comment_after_a_list_stays() {
        for (before, after) in [
            ("deps: [a] # see [1]", "deps: [a, b] # see [1]"),
            ("deps: [a]  # see ]", "deps: [a, b]  # see ]"),
            ("deps: ['x]y'] # quoted", "deps: ['x]y', b] # quoted"),
            ("deps: [a,\n  c] # two [lines]", "deps: [a, c, b] # two [lines]"),
            ("deps: [\n  a,\n] # at the end", "deps: [a, b] # at the end"),
        ] {
            for newline in ["\n", "\r\n"] {
                let whole = |list: &str| format!("---\n{list}\nid: z\n---\n").replace('\n', newline);
                let mut doc = parse(&whole(before));
                assert!(doc.list_add("deps", "b"));
                assert_eq!(text(&doc), whole(after));
            }
        }
    }

    #[test]
    fn block_lists_stay_block_lists() {
        let mut doc = parse("---\ndeps:\n    - a\n    - b # x\nid: z\n---\n");
        assert!(doc.list_add("deps", "c"));
        assert_eq!(text(&doc), "---\ndeps:\n    - a\n    - b # x\n    - c\nid: z\n---\n");
        assert!(doc.list_remove("deps", "b"));
        assert!(doc.list_remove("deps", "a"));
        assert_eq!(text(&doc), "---\ndeps:\n    - c\nid: z\n---\n");
        assert!(doc.list_remove("deps", "c"));
        assert_eq!(text(&doc), "---\ndeps: []\nid: z\n---\n");
    }

    #[test]
    fn empty_and_missing_lists_become_flow_lists() {
        for before in ["---\ndeps:\nid: z\n---\n", "---\ndeps: []\nid: z\n---\n", "---\nid: z\n---\n"] {
            let mut doc = parse(before);
            assert!(doc.list_add("deps", "a"));
            assert_eq!(text(&doc), "---\ndeps: [a]\nid: z\n---\n");
        }
    }

    #[test]
    fn a_field_goes_with_its_continuation() {
        let mut doc = parse("---\nresolution: failed\nx:\n  - 1\nstatus: open\n---\n");
        doc.remove("x");
        doc.remove("resolution");
        doc.remove("nothing");
        assert_eq!(text(&doc), "---\nstatus: open\n---\n");
    }

    proptest::proptest! {
        #[test]
        fn an_edit_changes_no_line_but_its_own(
            fields in proptest::collection::vec("[a-z]{1,6}: ?[a-z\\[\\]\"', #]{0,10}", 0..6),
            body in "([a-z#:\\-]{0,8}\n){0,6}[a-z]{0,4}",
            crlf in proptest::bool::ANY,
        ) {
            let fields: Vec<String> = fields.into_iter().filter(|line| !line.starts_with("status:")).collect();
            let mut text = format!("---\n{}\nstatus: open\n---\n{body}", fields.join("\n"));
            if crlf {
                text = text.replace('\n', "\r\n");
            }
            let mut doc = parse(&text);
            doc.set_word("status", "closed");
            let expected = text.replacen("status: open", "status: closed", 1);
            proptest::prop_assert_eq!(super::tests::text(&doc), expected.as_str());
            let before = doc.bytes().to_vec();
            doc.list_add("zdeps", "x");
            doc.remove("zdeps");
            proptest::prop_assert_eq!(doc.bytes(), &before[..]);
            doc.add_note("2026-01-02T03:04:05Z", "hi");
            proptest::prop_assert!(doc.bytes().starts_with(&before));
        }
    }
}
