//! Reads a workflow file and splits it: the front matter becomes a tree, the body stays text. Only this module knows YAML.

use std::io::ErrorKind;
use std::path::Path;

use super::error::{Finding, Source, WorkflowError};
use super::tree::{Node, Place, Value};

/// A workflow file, split into front matter and body.
#[derive(Debug, Clone)]
pub struct WorkflowDocument {
    pub front_matter: Node,
    /// The text after the front matter, trimmed.
    pub body: String,
    /// The line of the file that the body starts on, counted from 1.
    pub body_line: usize,
    pub source: Source,
    text: String,
}

impl WorkflowDocument {
    /// Returns the place of a whole line, counted from 1.
    pub fn line(&self, line: usize) -> Place {
        let before: usize = self.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let len = self.text[before..].lines().next().map_or(0, str::len);
        Place { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1, offset: before, len }
    }
}

/// Returns the bytes of the workflow file, for parsing, hashing and comparing.
pub fn read(path: &Path) -> Result<Vec<u8>, WorkflowError> {
    if path.is_dir() {
        return Err(WorkflowError::Directory { path: path.to_owned() });
    }
    std::fs::read(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => WorkflowError::Missing { path: path.to_owned() },
        _ => WorkflowError::Unreadable { path: path.to_owned(), source },
    })
}

pub fn parse(path: &Path, bytes: &[u8]) -> Result<WorkflowDocument, WorkflowError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        WorkflowError::NotUtf8 { path: path.to_owned(), line }
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source::new(path, text);

    let Some(first) = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---") else {
        return Ok(without_front_matter(text, source));
    };
    let mut end = first.len();
    for line in text[first.len()..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            let front_matter = parse_yaml(&text[..end], &source)?;
            let body_start = end + line.len();
            let (body, body_line) = trimmed(text, body_start);
            return Ok(WorkflowDocument { front_matter, body, body_line, source, text: text.to_owned() });
        }
        end += line.len();
    }
    Err(WorkflowError::Parse(Finding {
        key: String::new(),
        message: "the front matter that starts here is never closed".to_owned(),
        hint: Some("end it with a line that is just `---`".to_owned()),
        place: Some(Place { line: 1, column: 1, offset: 0, len: 3 }),
        source,
    }))
}

fn without_front_matter(text: &str, source: Source) -> WorkflowDocument {
    let (body, body_line) = trimmed(text, 0);
    WorkflowDocument { front_matter: Node::empty_map(), body, body_line, source, text: text.to_owned() }
}

/// Returns the text from `start`, trimmed, and the line it begins on.
fn trimmed(text: &str, start: usize) -> (String, usize) {
    let rest = &text[start..];
    let body_start = start + (rest.len() - rest.trim_start().len());
    (rest.trim().to_owned(), text[..body_start].matches('\n').count() + 1)
}

/// Parses the front matter. `text` includes the opening `---`, so that positions are those of the file.
fn parse_yaml(text: &str, source: &Source) -> Result<Node, WorkflowError> {
    let node: Node =
        serde_saphyr::from_str(text).map_err(|error| WorkflowError::Parse(yaml_finding(&error, text, source)))?;
    match node.value {
        Value::Map(_) => Ok(node),
        Value::Null => Ok(Node::empty_map()),
        _ => Err(WorkflowError::NotAMap(Finding {
            key: String::new(),
            message: format!("the front matter is {}, not a map of settings", node.found_kind()),
            hint: Some("write `key: value` lines between the two `---` lines".to_owned()),
            place: Some(node.place),
            source: source.clone(),
        })),
    }
}

fn yaml_finding(error: &serde_saphyr::Error, text: &str, source: &Source) -> Finding {
    let plain = error.without_snippet();
    let rendered = plain.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let message = rendered.split(" at line ").next().unwrap_or(&rendered).to_owned();
    let place = plain.location().map(|location| {
        let place = Place::of(&location);
        if place.offset > 0 { place } else { Place { offset: offset_of(text, place.line, place.column), ..place } }
    });
    Finding {
        key: String::new(),
        message: format!("the front matter is not valid YAML: {message}"),
        hint: None,
        place,
        source: source.clone(),
    }
}

fn offset_of(text: &str, line: u32, column: u32) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum();
    let inside: usize = text[before..].chars().take(column.saturating_sub(1) as usize).map(char::len_utf8).sum();
    (before + inside).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<WorkflowDocument, WorkflowError> {
        parse(Path::new("WORKFLOW.md"), text.as_bytes())
    }

    #[test]
    fn spec_5_no_front_matter_means_the_whole_file_is_the_prompt() {
        let document = parsed("\n\nDo the work.\n").unwrap();
        assert!(document.front_matter.entries().is_empty());
        assert_eq!((document.body.as_str(), document.body_line), ("Do the work.", 3));
    }

    #[test]
    fn spec_5_body_is_trimmed_and_keeps_its_line() {
        let document = parsed("---\na: 1\n---\n\n\n  Hello\nworld\n\n").unwrap();
        assert_eq!((document.body.as_str(), document.body_line), ("Hello\nworld", 6));
        assert_eq!(document.front_matter.at("a").unwrap().place.line, 2);
    }

    #[test]
    fn spec_5_non_map_front_matter_is_an_error() {
        for text in ["---\n- a\n---\n", "---\nhello\n---\n", "---\n5\n---\n"] {
            let error = parsed(text).unwrap_err();
            assert_eq!(error.class(), "workflow_front_matter_not_a_map", "{text:?}");
            assert!(error.to_string().starts_with("WORKFLOW.md:2:1: "), "{error}");
        }
    }

    #[test]
    fn spec_5_unclosed_front_matter_is_an_error() {
        let error = parsed("---\na: 1\n\nbody\n").unwrap_err();
        assert_eq!(error.class(), "workflow_parse_error");
        assert!(error.to_string().contains("never closed"), "{error}");
    }

    #[test]
    fn spec_5_broken_yaml_has_a_position() {
        for (text, at) in [
            ("---\na: [1\nb: 2\n---\n", "WORKFLOW.md:3:2:"),
            ("---\na: 1\na: 2\n---\n", "WORKFLOW.md:3:1:"),
            ("---\na: b\n  c: d\n---\n", "WORKFLOW.md:3:4:"),
        ] {
            let error = parsed(text).unwrap_err();
            assert_eq!(error.class(), "workflow_parse_error", "{text:?}");
            assert!(error.to_string().starts_with(at), "{error}");
            assert!(!error.to_string().contains("DuplicateKeyPolicy"), "{error}");
        }
    }

    #[test]
    fn carriage_returns_and_byte_order_marks_are_fine() {
        let document = parsed("\u{feff}---\r\na: 5\r\nb: [x]\r\n---\r\nHi\r\nthere\r\n").unwrap();
        assert_eq!(document.front_matter.at("b[0]").unwrap().text(), Some("x"));
        assert_eq!(document.body, "Hi\r\nthere");
        assert_eq!(document.body_line, 5);
    }

    #[test]
    fn empty_front_matter_is_an_empty_map() {
        for text in ["---\n---\nx", "---\n# nothing yet\n---\nx", "---\n\n---"] {
            assert!(parsed(text).unwrap().front_matter.entries().is_empty(), "{text:?}");
        }
    }

    #[test]
    fn text_that_is_not_utf_8_is_named_with_its_line() {
        let error = parse(Path::new("W.md"), b"---\na: 1\nb: \xff\n---\n").unwrap_err();
        assert_eq!(error.to_string(), "W.md:3: the file is not UTF-8 text");
    }
}
