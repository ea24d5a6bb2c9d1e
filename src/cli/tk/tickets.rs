//! All tickets of a store, and what their dependencies mean: which are ready and which are blocked.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::failure::Failure;
use super::session::TkCall;
use crate::tracker::tk::{Record, Store};

pub struct Tickets {
    pub records: Vec<Record>,
    pub warnings: Vec<String>,
    places: HashMap<String, usize>,
}

impl Tickets {
    pub fn load(session: &TkCall<'_>, store: &Store) -> Result<Self, Failure> {
        let listing = store.list()?;
        let warnings = session.broken_warnings(&listing.broken);
        let places = listing.records.iter().enumerate().map(|(at, record)| (record.id.clone(), at)).collect();
        Ok(Self { records: listing.records, warnings, places })
    }

    pub fn get(&self, id: &str) -> Option<&Record> {
        self.places.get(id).map(|at| &self.records[*at])
    }

    /// Returns the dependencies that still hold a ticket back: open, failed or missing ones.
    pub fn unmet<'a>(&self, record: &'a Record) -> Vec<&'a str> {
        record.deps.iter().map(String::as_str).filter(|dep| !self.get(dep).is_some_and(Record::satisfies)).collect()
    }

    pub fn is_ready(&self, record: &Record) -> bool {
        record.is_active() && self.unmet(record).is_empty()
    }

    pub fn is_blocked(&self, record: &Record) -> bool {
        record.is_active() && !self.unmet(record).is_empty()
    }

    /// Returns `id [status] title`, as the computed sections show a ticket.
    pub fn describe(&self, id: &str) -> String {
        match self.get(id) {
            Some(record) => format!("{id} [{}] {}", shown_status(record), record.title_or_empty()),
            None => format!("{id} [] "),
        }
    }
}

/// Returns the status as it is shown to people: `failed` for a failed ticket, which is `closed` in its file.
pub fn shown_status(record: &Record) -> &str {
    if record.has_failed() { "failed" } else { &record.status }
}

/// Compares by priority, then by id. Numbers come before words.
pub fn by_priority(a: &Record, b: &Record) -> Ordering {
    let number = |record: &Record| record.priority.parse::<f64>().ok().filter(|value| value.is_finite());
    let priority = match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.priority.cmp(&b.priority),
    };
    priority.then_with(|| a.id.cmp(&b.id))
}
