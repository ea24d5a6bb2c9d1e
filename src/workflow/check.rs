//! Walks the front matter along the schema: checks every value, reports all errors at once, and returns plain data that the settings
//! deserialize from without errors.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::duration;
use super::error::{Finding, Source};
use super::resolve::{Expanded, Expander};
use super::schema::LENIENT_MAPS;
use super::shape::{Kind, branches, expected, fits, in_range, kind, one_of, types, words};
use super::tree::{Entry, Node, Place, Value};
use crate::config::foreign::{self, Becomes};
use crate::config::tracker::TrackerKind;
use crate::config::wire::{FORMAT_DURATION, FORMAT_PATH, FORMAT_SECRET};

/// The result of a walk.
#[derive(Debug)]
pub struct Checked {
    /// The data without nulls and without invalid values; variables, paths and durations are resolved.
    pub data: Json,
    pub errors: Vec<Finding>,
    pub warnings: Vec<Finding>,
    /// The variable that a key's value came from, by key.
    pub from_env: BTreeMap<String, String>,
}

pub fn check(root: &Node, schema: &Json, source: &Source, expander: &Expander) -> Checked {
    let mut walk = Walk {
        source,
        expander,
        tracker: root.at("tracker.kind").and_then(Node::text).and_then(TrackerKind::named),
        errors: Vec::new(),
        warnings: Vec::new(),
        from_env: BTreeMap::new(),
        lenient: false,
    };
    let data = walk.value(root, schema, "").unwrap_or_else(|| Json::Object(Map::new()));
    Checked { data, errors: walk.errors, warnings: walk.warnings, from_env: walk.from_env }
}

struct Walk<'a> {
    source: &'a Source,
    expander: &'a Expander<'a>,
    /// The tracker in use, which decides the valid keys of `tracker.provider`. `None` if `tracker.kind` is missing or unknown.
    tracker: Option<TrackerKind>,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
    from_env: BTreeMap<String, String>,
    /// Whether the walk is inside a map whose invalid entries are left out with a warning.
    lenient: bool,
}

impl Walk<'_> {
    fn value(&mut self, node: &Node, schema: &Json, path: &str) -> Option<Json> {
        if node.is_null() {
            return None;
        }
        let branches = branches(schema);
        if branches.is_empty() {
            return Some(plain(node));
        }
        let branch = branches.iter().copied().find(|branch| fits(node, branch)).or(branches.first().copied())?;
        match kind(branch) {
            Kind::Object => self.map(node, branch, path),
            Kind::Array => self.list(node, branch, path),
            Kind::Scalar => self.scalar(node, branch, path),
        }
    }

    fn map(&mut self, node: &Node, schema: &Json, path: &str) -> Option<Json> {
        let Value::Map(entries) = &node.value else {
            self.wrong(node, path, "a map of settings");
            return None;
        };
        let known = schema.get("properties").and_then(Json::as_object);
        let others = schema.get("additionalProperties").filter(|schema| schema.is_object());
        let mut object = Map::new();
        for entry in entries {
            let child_path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            if path == "tracker.provider" && self.is_another_trackers(entry) {
                continue;
            }
            let child = known.and_then(|known| known.get(&entry.key)).or(others);
            let Some(child) = child else {
                let names: Vec<&str> = known.into_iter().flat_map(|known| known.keys().map(String::as_str)).collect();
                self.unknown_key(entry, path, &names);
                continue;
            };
            let was_lenient = self.lenient;
            self.lenient |= LENIENT_MAPS.contains(&path);
            if let Some(value) = self.value(&entry.node, child, &child_path) {
                object.insert(entry.key.clone(), value);
            }
            self.lenient = was_lenient;
        }
        Some(Json::Object(object))
    }

    fn list(&mut self, node: &Node, schema: &Json, path: &str) -> Option<Json> {
        let Value::List(items) = &node.value else {
            self.wrong(node, path, "a list");
            return None;
        };
        let anything = Json::Bool(true);
        let item_schema = schema.get("items").unwrap_or(&anything);
        let mut list = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let item_path = format!("{path}[{index}]");
            if item.is_null() {
                self.wrong(item, &item_path, &expected(item_schema));
            }
            list.extend(self.value(item, item_schema, &item_path));
        }
        Some(Json::Array(list))
    }

    fn scalar(&mut self, node: &Node, schema: &Json, path: &str) -> Option<Json> {
        let words = words(schema);
        if !words.is_empty() {
            return self.word(node, &words, path);
        }
        match schema.get("format").and_then(Json::as_str) {
            Some(FORMAT_DURATION) => return self.duration(node, schema, path),
            Some(FORMAT_SECRET) => return self.secret(node, path),
            Some(FORMAT_PATH) => return self.path(node, path),
            _ => {}
        }
        let types = types(schema);
        let value = match &node.value {
            Value::Bool(flag) if types.contains(&"boolean") => Some(Json::Bool(*flag)),
            Value::Int(number) if types.contains(&"integer") || types.contains(&"number") => Some((*number).into()),
            Value::Float(number) if types.contains(&"number") => {
                serde_json::Number::from_f64(*number).map(Json::Number)
            }
            Value::Text(text) if types.contains(&"string") => Some(Json::String(text.clone())),
            Value::Text(text) if types.contains(&"integer") => text.trim().parse::<i64>().ok().map(Json::from),
            Value::Int(number) if types.contains(&"string") => Some(Json::String(number.to_string())),
            Value::Float(number) if types.contains(&"string") => Some(Json::String(number.to_string())),
            _ => None,
        };
        let Some(value) = value.filter(|value| in_range(value, schema)) else {
            self.wrong(node, path, &expected(schema));
            return None;
        };
        Some(value)
    }

    fn word(&mut self, node: &Node, words: &[&str], path: &str) -> Option<Json> {
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            // `off` is one of the allowed words, but YAML reads it as false.
            Value::Bool(false) if words.contains(&"off") => "off".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            _ => {
                self.wrong(node, path, &one_of(words));
                return None;
            }
        };
        if words.contains(&text.as_str()) {
            return Some(Json::String(text));
        }
        let hint = nearest(&text, words).map(|word| format!("did you mean `{word}`?"));
        self.wrong_with_hint(node, path, &one_of(words), hint);
        None
    }

    fn duration(&mut self, node: &Node, schema: &Json, path: &str) -> Option<Json> {
        let millis = match &node.value {
            Value::Int(millis) => Some(*millis),
            Value::Text(text) => duration::parse_millis(text),
            _ => None,
        };
        match millis.map(Json::from).filter(|millis| in_range(millis, schema)) {
            Some(millis) => Some(millis),
            None => {
                self.wrong(node, path, &expected(schema));
                None
            }
        }
    }

    fn secret(&mut self, node: &Node, path: &str) -> Option<Json> {
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            _ => {
                let message =
                    format!("`{}` is {}; it must be text, usually `$NAME`", shown(node, path), node.found_kind());
                self.error(path, node.place, message, None);
                return None;
            }
        };
        match self.expander.secret(&text) {
            // `gh` is no secret: it says that the `gh` program keeps the token.
            Expanded::Plain(value) if value == "gh" && path.ends_with(".token") => Some(Json::String(value)),
            Expanded::Plain(value) => {
                // What is meant for the worker may be anything, and most of it is no secret.
                if !path.starts_with("worker.env.") {
                    let message = format!("the secret `{}` is written in the file itself", shown(node, path));
                    self.warn(path, node.place, message, Some("keep it in a variable and write `$NAME`".to_owned()));
                }
                Some(Json::String(value))
            }
            other => self.expanded(other, node, path),
        }
    }

    fn path(&mut self, node: &Node, path: &str) -> Option<Json> {
        let Some(text) = node.text() else {
            self.wrong(node, path, "a path");
            return None;
        };
        if text.trim().is_empty() {
            self.wrong(node, path, "a path");
            return None;
        }
        let expanded = self.expander.path(text);
        self.expanded(expanded, node, path)
    }

    fn expanded(&mut self, expanded: Expanded, node: &Node, path: &str) -> Option<Json> {
        match expanded {
            Expanded::Plain(value) => Some(Json::String(value)),
            Expanded::FromEnv { name, value } => {
                self.from_env.insert(path.to_owned(), name);
                Some(Json::String(value))
            }
            Expanded::Missing { name } => {
                let message = format!("`{}` reads `${name}`, which is not set or empty", shown(node, path));
                self.warn(path, node.place, message, Some("it counts as missing".to_owned()));
                None
            }
            Expanded::Empty => None,
            Expanded::NoHome => {
                let message = format!("`{}` starts with `~`, but there is no home directory", shown(node, path));
                self.error(path, node.place, message, Some("set HOME, or write the path in full".to_owned()));
                None
            }
        }
    }

    fn wrong(&mut self, node: &Node, path: &str, allowed: &str) {
        self.wrong_with_hint(node, path, allowed, None);
    }

    fn wrong_with_hint(&mut self, node: &Node, path: &str, allowed: &str, hint: Option<String>) {
        let message = format!("`{}` is {}; it must be {allowed}", shown(node, path), node.found());
        if self.lenient {
            self.warn(path, node.place, format!("{message}; the entry is ignored"), hint);
        } else {
            self.error(path, node.place, message, hint);
        }
    }

    /// Reports a key that is not in the schema. If it may be a misspelt key of Dirigent's, it is an error, because the limit or prohibition
    /// that it should have set would be missing.
    fn unknown_key(&mut self, entry: &Entry, parent: &str, known: &[&str]) {
        let key = shortened(&entry.key);
        let path = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
        if let Some(foreign) = foreign::find(&path) {
            let tool = foreign.tool;
            let message = match foreign.becomes {
                Becomes::Ours(ours) => {
                    format!("`{path}` is not in force: it is {tool}'s name for `{ours}`, which is written as well")
                }
                Becomes::Nothing(why) => format!("`{path}` is not in force: it is a key of {tool}; {why}"),
            };
            self.warn(&path, entry.key_place, message, None);
            return;
        }
        if parent == "tracker" && known_to_a_tracker(&key) {
            let message = format!("`{path}` is not in force: `tracker.provider.{key}` is written as well");
            self.warn(&path, entry.key_place, message, None);
            return;
        }
        let near = nearest(&key, known);
        let hint = match near {
            Some(near) if parent.is_empty() => format!("did you mean `{near}`?"),
            Some(near) => format!("did you mean `{parent}.{near}`?"),
            None => format!("known are {}", known.join(", ")),
        };
        if !parent.is_empty() {
            self.error(&path, entry.key_place, format!("`{path}` is not a key of `{parent}`"), Some(hint));
            return;
        }
        let message = format!("`{key}` is not a section of the workflow file");
        if is_a_slip(&key, known) {
            self.error(&path, entry.key_place, message, Some(hint));
        } else {
            let message = format!("{message}; it is ignored");
            self.warn(&path, entry.key_place, message, Some(format!("ours are {}", known.join(", "))));
        }
    }

    /// Whether a key under `tracker.provider` does not belong to the tracker in use. Reports such a key as a warning, or as an error if it
    /// looks misspelt.
    fn is_another_trackers(&mut self, entry: &Entry) -> bool {
        let Some(kind) = self.tracker else { return false };
        let (key, known) = (shortened(&entry.key), kind.provider_keys());
        if known.contains(&key.as_str()) {
            return false;
        }
        let (path, name) = (format!("tracker.provider.{key}"), kind.name());
        let owner = TrackerKind::ALL.into_iter().find(|other| other.provider_keys().contains(&key.as_str()));
        let message = match owner {
            Some(owner) => {
                format!("`{path}` is not in force: it is a key of the {} tracker, not of {name}", owner.name())
            }
            None => format!("`{path}` is not a key of the {name} tracker"),
        };
        match nearest(&key, known) {
            Some(near) if owner.is_none() => {
                let hint = Some(format!("did you mean `tracker.provider.{near}`?"));
                self.error(&path, entry.key_place, message, hint);
            }
            _ => {
                let hint = match known {
                    [] => format!("the {name} tracker has no keys of its own"),
                    known => format!("the {name} tracker knows {}", known.join(", ")),
                };
                let message = if owner.is_some() { message } else { format!("{message}; it is not in force") };
                self.warn(&path, entry.key_place, message, Some(hint));
            }
        }
        true
    }

    fn error(&mut self, key: &str, place: Place, message: String, hint: Option<String>) {
        let finding = self.finding(key, place, message, hint);
        self.errors.push(finding);
    }

    fn warn(&mut self, key: &str, place: Place, message: String, hint: Option<String>) {
        let finding = self.finding(key, place, message, hint);
        self.warnings.push(finding);
    }

    fn finding(&self, key: &str, place: Place, message: String, hint: Option<String>) -> Finding {
        Finding::at(key, place, message, hint, self.source)
    }
}

/// Returns the path as its author wrote it.
fn shown<'a>(node: &'a Node, path: &'a str) -> &'a str {
    node.written_as.as_deref().unwrap_or(path)
}

/// Returns the known word that is closest to what was written. `None` if none is close.
pub fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = written.to_lowercase().replace('-', "_");
    known
        .iter()
        .map(|word| (word.to_lowercase(), *word))
        .filter(|(lower, _)| {
            strsim::jaro_winkler(&written, lower) >= 0.82 || strsim::damerau_levenshtein(&written, lower) <= 1
        })
        .map(|(lower, word)| (strsim::jaro_winkler(&written, &lower), word))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, word)| word)
}

/// Whether the key looks like a misspelt known word: one or two wrong keystrokes away, or a longer or shorter form of it.
fn is_a_slip(written: &str, known: &[&str]) -> bool {
    let allowed = if written.len() < 5 { 1 } else { 2 };
    let written = written.to_lowercase().replace('-', "_");
    known.iter().any(|word| {
        strsim::damerau_levenshtein(&written, word) <= allowed
            || (word.len() > 3 && written.len() > 3 && (written.starts_with(word) || word.starts_with(&written)))
    })
}

/// Truncates a very long key, which nobody would read and which takes long to compare.
fn shortened(key: &str) -> String {
    const LONGEST: usize = 80;
    match key.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &key[..end]),
        None => key.to_owned(),
    }
}

fn known_to_a_tracker(key: &str) -> bool {
    TrackerKind::ALL.into_iter().any(|kind| kind.provider_keys().contains(&key))
}

/// Converts a value without checking it.
fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => (*number).into(),
        Value::Float(number) => serde_json::Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.clone()),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.clone(), plain(&entry.node))).collect())
        }
    }
}
