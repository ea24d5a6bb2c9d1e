//! The front matter and the title of a ticket file as values, for lists, the dependency logic and the adapter.

use super::document::Document;

/// One ticket without its body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The file name without `.md`: the id by which the ticket is read and written.
    pub id: String,
    /// The value of the `id:` line. `None` if there is no such line.
    pub declared_id: Option<String>,
    pub status: String,
    pub deps: Vec<String>,
    pub links: Vec<String>,
    pub created: Option<String>,
    pub kind: Option<String>,
    /// As written in the file; "2" if missing.
    pub priority: String,
    pub assignee: Option<String>,
    pub external_ref: Option<String>,
    pub parent: Option<String>,
    pub tags: Vec<String>,
    pub resolution: Option<String>,
    /// The key under which Dirigent created the ticket. `None` for other tickets.
    pub dirigent_key: Option<String>,
    pub title: Option<String>,
}

pub const RESOLUTION: &str = "resolution";
pub const FAILED: &str = "failed";
pub const DIRIGENT_KEY: &str = "dirigent-key";

impl Record {
    pub fn read(id: &str, doc: &Document) -> Self {
        let some = |value: Option<String>| value.filter(|text| !text.is_empty());
        Self {
            id: id.to_owned(),
            declared_id: some(doc.word("id")),
            status: doc.word("status").unwrap_or_default(),
            deps: doc.list("deps"),
            links: doc.list("links"),
            created: some(doc.word("created")),
            kind: some(doc.word("type")),
            priority: some(doc.word("priority")).unwrap_or_else(|| "2".to_owned()),
            assignee: some(doc.text("assignee")),
            external_ref: some(doc.text("external-ref")),
            parent: some(doc.word("parent")),
            tags: doc.list("tags"),
            resolution: some(doc.word(RESOLUTION)),
            dirigent_key: some(doc.word(DIRIGENT_KEY)),
            title: doc.title().map(|title| title.into_owned()),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.status == "closed"
    }

    /// Whether the ticket was closed without success. Tickets that depend on it keep waiting.
    pub fn has_failed(&self) -> bool {
        self.resolution.as_deref() == Some(FAILED) || self.status == FAILED
    }

    /// Whether the ticket was finished successfully. Only then may a dependent ticket start.
    pub fn satisfies(&self) -> bool {
        self.is_closed() && !self.has_failed()
    }

    pub fn is_active(&self) -> bool {
        self.status == "open" || self.status == "in_progress"
    }

    pub fn title_or_empty(&self) -> &str {
        self.title.as_deref().unwrap_or_default()
    }
}
