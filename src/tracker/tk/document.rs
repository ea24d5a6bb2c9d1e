//! One ticket file: its bytes, and the positions of its front matter fields.
//!
//! The first two `---` lines delimit the front matter; nothing in the body is ever read as a field. Values are read leniently (flow
//! and block lists, quotes, CRLF, a BOM). Edits are in `edit`, and change only the lines that they must.

use std::borrow::Cow;
use std::ops::Range;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The bytes of a ticket file and the positions of its parts.
#[derive(Debug, Clone)]
pub struct Document {
    pub(super) bytes: Vec<u8>,
    pub(super) fields: Vec<Field>,
    /// The start of the line after the opening `---`.
    pub(super) front_start: usize,
    /// The start of the line after the closing `---`.
    pub(super) body_start: usize,
}

/// The position of one `key: value`.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub key: Range<usize>,
    /// The value on the key's own line, trimmed.
    pub value: Range<usize>,
    /// The key's line and its continuation lines, with line ends.
    pub block: Range<usize>,
}

/// One element of a list: its position and its value without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub span: Range<usize>,
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    Empty,
    NoFrontMatter,
    Unterminated,
}

impl Malformed {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Empty => "the file is empty",
            Self::NoFrontMatter => "it does not begin with a `---` line",
            Self::Unterminated => "its front matter has no closing `---` line",
        }
    }
}

impl Document {
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let mut at = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let front_start = loop {
            if at >= bytes.len() {
                return Err(if bytes.iter().all(u8::is_ascii_whitespace) {
                    Malformed::Empty
                } else {
                    Malformed::NoFrontMatter
                });
            }
            let line = line_at(&bytes, at);
            let text = trim_end(&bytes[line.clone()]);
            at = line.end;
            match text {
                b"---" => break at,
                b"" => {}
                _ => return Err(Malformed::NoFrontMatter),
            }
        };
        let mut fields: Vec<Field> = Vec::new();
        loop {
            if at >= bytes.len() {
                return Err(Malformed::Unterminated);
            }
            let line = line_at(&bytes, at);
            let text = &bytes[line.clone()];
            if trim_end(text) == b"---" {
                return Ok(Self { front_start, body_start: line.end, bytes, fields });
            }
            match key_length(text) {
                Some(length) => {
                    let value = trimmed(&bytes, at + length + 1..line.end);
                    fields.push(Field { key: at..at + length, value, block: line.clone() });
                }
                None => {
                    if let Some(last) = fields.last_mut().filter(|_| continues(text)) {
                        last.block.end = line.end;
                    }
                }
            }
            at = line.end;
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_start..]
    }

    /// Returns the file up to and including its title line.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.title_line().map_or(self.body_start, |line| line.end)]
    }

    /// Returns the title: the first body line that starts with `# `.
    pub fn title(&self) -> Option<Cow<'_, str>> {
        let line = self.title_line()?;
        Some(String::from_utf8_lossy(trim_end(&self.bytes[line.start + 2..line.end])))
    }

    pub(super) fn title_line(&self) -> Option<Range<usize>> {
        let mut at = self.body_start;
        while at < self.bytes.len() {
            let line = line_at(&self.bytes, at);
            if self.bytes[line.clone()].starts_with(b"# ") {
                return Some(line);
            }
            at = line.end;
        }
        None
    }

    /// Returns the keys in file order, as written.
    pub fn keys(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.fields.iter().map(|field| String::from_utf8_lossy(&self.bytes[field.key.clone()]))
    }

    /// Returns the last field of that name, as every reader of the format does.
    pub(super) fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().rev().find(|field| &self.bytes[field.key.clone()] == key.as_bytes())
    }

    pub fn has(&self, key: &str) -> bool {
        self.field(key).is_some()
    }

    /// Returns the value as text: without its quotes, otherwise unchanged (a `#` is part of it).
    pub fn text(&self, key: &str) -> Option<String> {
        let field = self.field(key)?;
        Some(unquote(&self.bytes[field.value.clone()]))
    }

    /// Returns the position where a field's value ends on the key's own line.
    pub fn value_end(&self, key: &str) -> Option<usize> {
        self.field(key).map(|field| field.value.end)
    }

    /// Returns the value of a field that holds one word or number, without a trailing ` # comment`.
    pub fn word(&self, key: &str) -> Option<String> {
        let field = self.field(key)?;
        Some(unquote(&self.bytes[word_span(&self.bytes, field.value.clone())]))
    }

    /// Whether the value is written as a list, in brackets or as `- x` lines.
    pub fn is_list(&self, key: &str) -> bool {
        self.field(key).is_some_and(|field| match self.bytes[field.value.clone()].first() {
            Some(byte) => *byte == b'[',
            None => !self.block_items(field).is_empty(),
        })
    }

    pub fn list(&self, key: &str) -> Vec<String> {
        self.items(key).into_iter().map(|item| item.value).collect()
    }

    pub(super) fn items(&self, key: &str) -> Vec<Item> {
        let Some(field) = self.field(key) else { return Vec::new() };
        let value = &self.bytes[field.value.clone()];
        match value.first() {
            Some(b'[') => self.flow_items(field.value.start + 1, field.block.end).0,
            None | Some(b'#') => self.block_items(field),
            Some(_) => {
                let span = word_span(&self.bytes, field.value.clone());
                self.flow_items(span.start, span.end).0
            }
        }
    }

    /// Returns the position of the bracket that closes a list in brackets. `None` if the field is not such a list or has no end.
    pub(super) fn closing_bracket(&self, field: &Field) -> Option<usize> {
        let start = field.value.start;
        let in_brackets = self.bytes[field.value.clone()].first() == Some(&b'[');
        let end = in_brackets.then(|| self.flow_items(start + 1, field.block.end).1)?;
        (end < field.block.end).then_some(end)
    }

    /// Returns the elements of `a, "b", 'c']`, up to the closing bracket or `end`, and the position where they end.
    fn flow_items(&self, start: usize, end: usize) -> (Vec<Item>, usize) {
        let mut items = Vec::new();
        let mut from = start;
        let mut quote: Option<u8> = None;
        for at in start..=end {
            let byte = if at == end { b']' } else { self.bytes[at] };
            match (quote, byte) {
                (Some(open), close) if open == close && at != end => quote = None,
                (Some(_), _) if at != end => {}
                (None, b'"' | b'\'') if self.bytes[from..at].iter().all(u8::is_ascii_whitespace) => quote = Some(byte),
                (_, b',' | b']') => {
                    let span = trimmed(&self.bytes, from..at);
                    let value = unquote(&self.bytes[span.clone()]);
                    if !value.is_empty() {
                        items.push(Item { span, value });
                    }
                    from = at + 1;
                    if byte == b']' {
                        return (items, at);
                    }
                }
                _ => {}
            }
        }
        (items, end)
    }

    /// Returns the elements of a block list: the `- x` lines after the key.
    fn block_items(&self, field: &Field) -> Vec<Item> {
        let mut items = Vec::new();
        let mut at = line_at(&self.bytes, field.block.start).end;
        while at < field.block.end {
            let line = line_at(&self.bytes, at);
            let span = trimmed(&self.bytes, line.clone());
            let text = &self.bytes[span.clone()];
            if text.first() == Some(&b'-') && text.get(1).is_none_or(u8::is_ascii_whitespace) {
                let span = word_span(&self.bytes, trimmed(&self.bytes, span.start + 1..span.end));
                let value = unquote(&self.bytes[span.clone()]);
                if !value.is_empty() {
                    items.push(Item { span, value });
                }
            }
            at = line.end;
        }
        items
    }

    /// Returns the line end that this file uses.
    pub(super) fn newline(&self) -> &'static str {
        let first = line_at(&self.bytes, 0);
        if self.bytes[first].ends_with(b"\r\n") { "\r\n" } else { "\n" }
    }
}

/// Returns the line that starts at `start`, with its line end.
pub(super) fn line_at(bytes: &[u8], start: usize) -> Range<usize> {
    let end = bytes[start..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |offset| start + offset + 1);
    start..end
}

/// Returns the length of the key in a `key:` line. `None` if the line has no key.
fn key_length(line: &[u8]) -> Option<usize> {
    let first = line.first()?;
    if first.is_ascii_whitespace() || matches!(first, b'-' | b'#' | b']' | b'[') {
        return None;
    }
    let colon = line.iter().position(|byte| *byte == b':')?;
    let after = line.get(colon + 1).copied().unwrap_or(b'\n');
    (colon > 0 && after.is_ascii_whitespace()).then_some(colon)
}

/// Whether a line continues the value above it. Blank lines and comments do so only if another continuation line follows.
fn continues(line: &[u8]) -> bool {
    let indented = line.first().is_some_and(|first| first.is_ascii_whitespace() || matches!(first, b'-' | b']'));
    indented && !matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    text.trim_ascii_end()
}

pub(super) fn trimmed(bytes: &[u8], span: Range<usize>) -> Range<usize> {
    let text = &bytes[span.clone()];
    let length = text.trim_ascii().len();
    let lead = if length == 0 { 0 } else { text.len() - text.trim_ascii_start().len() };
    span.start + lead..span.start + lead + length
}

/// Returns the part of a value before a ` # comment`. A quoted value ends with its closing quote.
pub(super) fn word_span(bytes: &[u8], value: Range<usize>) -> Range<usize> {
    let text = &bytes[value.clone()];
    if let Some(quote @ (b'"' | b'\'')) = text.first().copied()
        && let Some(close) = text[1..].iter().position(|byte| *byte == quote)
    {
        return value.start..value.start + close + 2;
    }
    if text.first() == Some(&b'#') {
        return value.start..value.start;
    }
    match text.windows(2).position(|pair| pair[0].is_ascii_whitespace() && pair[1] == b'#') {
        Some(at) => trimmed(bytes, value.start..value.start + at),
        None => value,
    }
}

fn unquote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return match quote {
                '"' => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
                _ => inner.replace("''", "'"),
            };
        }
    }
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Document {
        Document::parse(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn reads_what_create_writes() {
        let doc = parse("---\nid: a-1\nstatus: open\ndeps: [x-1, x-2]\nlinks: []\n---\n# Title: a | b\n\nbody\n");
        assert_eq!(doc.word("status").as_deref(), Some("open"));
        assert_eq!(doc.list("deps"), ["x-1", "x-2"]);
        assert!(doc.list("links").is_empty());
        assert_eq!(doc.title().as_deref(), Some("Title: a | b"));
        assert_eq!(doc.keys().collect::<Vec<_>>(), ["id", "status", "deps", "links"]);
    }

    #[test]
    fn reads_block_lists_quotes_comments_crlf_and_a_bom() {
        let doc = parse(
            "\u{feff}---\r\nid: \"a-1\"\r\nstatus: 'open' # now\r\ndeps:\r\n  - x-1\r\n  - \"x-2\" # why\r\ntags: [\"a, b\", 'it''s', c]\r\nassignee: A: B #1\r\n---\r\n# T\r\n",
        );
        assert_eq!(doc.word("id").as_deref(), Some("a-1"));
        assert_eq!(doc.word("status").as_deref(), Some("open"));
        assert_eq!(doc.list("deps"), ["x-1", "x-2"]);
        assert_eq!(doc.list("tags"), ["a, b", "it's", "c"]);
        assert_eq!(doc.text("assignee").as_deref(), Some("A: B #1"));
        assert_eq!(doc.title().as_deref(), Some("T"));
    }

    #[test]
    fn reads_lists_over_several_lines_and_bare_words() {
        let doc = parse("---\ndeps: [a-1,\n  a-2,\n]\ntags: x, y # z\nlinks:\n- l-1\n---\n");
        assert_eq!(doc.list("deps"), ["a-1", "a-2"]);
        assert_eq!(doc.list("tags"), ["x", "y"]);
        assert_eq!(doc.list("links"), ["l-1"]);
    }

    #[test]
    fn the_body_never_holds_a_field() {
        let doc = parse("---\nid: a\nstatus: open\n---\n# T\n\nstatus: closed\n---\ndeps: [fake]\n---\n");
        assert_eq!(doc.word("status").as_deref(), Some("open"));
        assert!(doc.list("deps").is_empty());
    }

    #[test]
    fn broken_files_say_how() {
        assert_eq!(Document::parse(b" \n".to_vec()).unwrap_err(), Malformed::Empty);
        assert_eq!(Document::parse(b"# Hello\n---\n".to_vec()).unwrap_err(), Malformed::NoFrontMatter);
        assert_eq!(Document::parse(b"---\nid: a\n".to_vec()).unwrap_err(), Malformed::Unterminated);
    }

    #[test]
    fn an_unclosed_list_or_quote_ends_with_its_block() {
        let doc = parse("---\ndeps: [a-1, \"b-2\nstatus: open\n---\n");
        assert_eq!(doc.list("deps"), ["a-1", "\"b-2"]);
        assert_eq!(doc.word("status").as_deref(), Some("open"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "(---\n)?([a-z]{1,4}: ?[\\[\\]\"', #a-z]{0,8}\r?\n|  - ?[a\"#]{0,3}\n|---\n){0,8}") {
            if let Ok(doc) = Document::parse(text.into_bytes()) {
                for key in doc.keys().map(|key| key.into_owned()).collect::<Vec<_>>() {
                    doc.list(&key);
                    doc.word(&key);
                    doc.text(&key);
                }
                doc.title();
            }
        }
    }
}
