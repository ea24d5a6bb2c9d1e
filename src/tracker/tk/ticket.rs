//! Turns a ticket file into the engine's `Ticket`.

use std::path::Path;

use serde_json::json;

use super::document::Document;
use super::notes::TicketNote;
use super::record::Record;
use crate::domain::comment::{Author, Comment, TrustLevel};
use crate::domain::ids::{CommentId, TicketId, TicketKey};
use crate::domain::ticket::{Blocker, Dispatchable, Ticket, normalise_labels};
use crate::domain::time::Timestamp;

/// The parts of a ticket that only the body of its file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub description: Option<String>,
    pub comments: Vec<Comment>,
    pub updated_at: Timestamp,
}

impl Body {
    pub fn read(doc: &Document, modified_ms: i64) -> Self {
        Self {
            description: Some(doc.description()).filter(|text| !text.is_empty()),
            comments: doc.notes().into_iter().map(comment).collect(),
            updated_at: Timestamp(modified_ms),
        }
    }
}

/// The title of a ticket that was created without one.
pub const NAMELESS: &str = "Untitled";

impl Record {
    /// Returns why a readable file cannot be a ticket. `None` if it can.
    pub fn malformed(&self) -> Option<&'static str> {
        if self.declared_id.is_none() {
            Some("it has no `id:` line")
        } else if self.status.is_empty() {
            Some("it has no `status:`")
        } else if self.title_or_empty().trim().is_empty() {
            Some("it has no `# title` line")
        } else {
            None
        }
    }
}

/// Builds the engine's ticket. `look_up` finds the ticket with the id of a dependency.
pub(super) fn ticket(record: &Record, body: &Body, path: &Path, look_up: impl Fn(&str) -> Option<Record>) -> Ticket {
    let blocked_by = record.deps.iter().map(|dep| {
        let found = look_up(dep);
        Blocker {
            id: TicketId::new(dep.as_str()),
            key: TicketKey::new(dep.as_str()),
            failed: found.as_ref().is_some_and(Record::has_failed),
            state: found.map(|other| other.status),
        }
    });
    Ticket {
        id: TicketId::new(record.id.as_str()),
        key: TicketKey::new(record.id.as_str()),
        title: record.title_or_empty().trim().to_owned(),
        description: body.description.clone(),
        priority: priority_from_file(&record.priority),
        state: record.status.clone(),
        branch_name: None,
        url: None,
        assignee: record.assignee.clone(),
        author: Some(if record.dirigent_key.is_some() { Author::ourselves() } else { owner() }),
        labels: normalise_labels(&record.tags),
        blocked_by: blocked_by.collect(),
        parent: record.parent.as_deref().map(TicketId::new),
        dispatchable: match &body.description {
            None if record.title_or_empty().trim() == NAMELESS => {
                Dispatchable::No("it has neither a title nor a description: there is nothing to work on".into())
            }
            _ => Dispatchable::Yes,
        },
        created_at: record.created.as_deref().and_then(instant),
        updated_at: Some(body.updated_at),
        native_ref: Some(json!({ "file": path.display().to_string() })),
        comments: Some(body.comments.clone()),
        state_changed: None,
        history: Default::default(),
    }
}

/// Converts a priority. The format counts from 0, the engine from 1.
fn priority_from_file(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|priority| *priority >= 0).map(|priority| priority.saturating_add(1))
}

pub(super) fn priority_for_file(priority: Option<i64>) -> String {
    priority.map_or(2, |priority| priority.saturating_sub(1).clamp(0, 4)).to_string()
}

pub(super) fn comment(note: TicketNote) -> Comment {
    // A second note with the same key is a person's copy of the runner's note.
    let is_original = |note: &TicketNote| note.key.as_ref().is_some_and(|key| note.id == format!("key:{key}"));
    Comment {
        author: if is_original(&note) { Author::ourselves() } else { owner() },
        id: CommentId::new(note.id),
        body: note.text,
        created_at: note.timestamp.as_deref().and_then(instant),
        updated_at: None,
    }
}

/// The author of a person's text. The format has no authors, and every person who can write into the store owns it.
fn owner() -> Author {
    Author::new("tk", TrustLevel::Admin)
}

fn instant(text: &str) -> Option<Timestamp> {
    let parsed: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(parsed.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_map_both_ways() {
        for file in 0..=4 {
            let ours = priority_from_file(&file.to_string());
            assert_eq!(ours, Some(file + 1));
            assert_eq!(priority_for_file(ours), file.to_string());
        }
        assert_eq!(priority_from_file("high"), None);
        assert_eq!(priority_from_file("-1"), None);
        assert_eq!(priority_for_file(None), "2");
        assert_eq!(priority_for_file(Some(99)), "4");
    }

    #[test]
    fn times_are_read_in_the_formats_spelling_and_with_offsets() {
        assert_eq!(instant("1970-01-01T00:00:01Z"), Some(Timestamp(1000)));
        assert_eq!(instant("1970-01-01T01:00:01.5+01:00"), Some(Timestamp(1500)));
        assert_eq!(instant("yesterday"), None);
    }
}
