//! The record of all requests.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Entry {
    /// The operation of the description, `graphql/...` with its root fields, or `transport/...` for git.
    pub route: String,
    pub method: String,
    pub path: String,
    pub query: String,
    pub body: Value,
    pub login: String,
    pub at: Timestamp,
    /// What was answered; `None` while it is, or if nothing was.
    pub status: Option<u16>,
    /// Whether it changed something, by what was meant: also if a fault hid the answer.
    pub took_effect: bool,
    pub api_version: Option<String>,
}

#[derive(Default)]
pub struct Journal {
    pub entries: Vec<Entry>,
}

impl Journal {
    pub fn count(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn of<'a>(&'a self, route: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| matches(route, &entry.route))
    }

    /// How often each route was asked.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.entries {
            *counts.entry(entry.route.clone()).or_default() += 1;
        }
        counts
    }

    /// One line per request.
    pub fn printed(&self) -> String {
        let mut text = String::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let status = entry.status.map_or("---".to_owned(), |status| status.to_string());
            let query = if entry.query.is_empty() { String::new() } else { format!("?{}", entry.query) };
            writeln!(
                text,
                "{:4} {status} {:45} {} {}{query} ({})",
                number + 1,
                entry.route,
                entry.method,
                entry.path,
                entry.login
            )
            .unwrap();
        }
        text
    }
}

/// Whether a pattern names a route: the name itself, or its beginning and a star.
pub fn matches(pattern: &str, route: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == route, |beginning| route.starts_with(beginning))
}
