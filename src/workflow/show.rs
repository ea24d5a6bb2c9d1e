//! Every effective value with where it came from: the data behind `dirigent config show`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::resolve::Derived;
use super::tree::Node;
use crate::config::Settings;
use crate::config::workspace::ModeReason;

/// One setting as it is in force. Secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectiveValue {
    pub path: String,
    pub value: Json,
    pub source: ValueSource,
    /// Why the setting has no effect. `None` if it has one.
    pub not_in_force: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum ValueSource {
    Default,
    /// Given on the command line.
    Set,
    File {
        line: u32,
    },
    Env {
        name: String,
        line: u32,
    },
    /// Taken over from another key, or from an environment variable that the file does not mention.
    Key {
        key: String,
    },
    /// Derived from the rest of the file.
    Because {
        why: String,
    },
}

impl fmt::Display for ValueSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(out, "default"),
            Self::Set => write!(out, "--set"),
            Self::File { line } => write!(out, "line {line}"),
            Self::Env { name, line } => write!(out, "${name}, line {line}"),
            Self::Key { key } => write!(out, "as {key}"),
            Self::Because { why } => write!(out, "because {why}"),
        }
    }
}

pub fn effective(
    settings: &Settings,
    root: &Node,
    from_env: &BTreeMap<String, String>,
    derived: &Derived,
) -> Vec<EffectiveValue> {
    let mut values = Vec::new();
    // Settings are plain data: they always serialize.
    flatten("", &serde_json::to_value(settings).unwrap_or_default(), &mut values);
    values
        .into_iter()
        .filter(|(path, _)| {
            // Keys of other trackers do not matter here.
            let provider_key = path.strip_prefix("tracker.provider.");
            let known = settings.tracker.kind.provider_keys();
            provider_key.is_none_or(|key| known.contains(&key.split('.').next().unwrap_or(key)))
        })
        .map(|(path, value)| {
            let source = source_of(&path, root, from_env, derived);
            EffectiveValue { path, value, source, not_in_force: None }
        })
        .collect()
}

fn flatten(path: &str, value: &Json, out: &mut Vec<(String, Json)>) {
    match value {
        Json::Object(entries) if !entries.is_empty() && !is_passed_on(path) => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, out);
            }
        }
        value => out.push((path.to_owned(), value.clone())),
    }
}

/// Whether a value is passed on to an agent as a whole, and so is shown as a whole.
fn is_passed_on(path: &str) -> bool {
    matches!(path, "codex.approval_policy" | "codex.thread_sandbox" | "codex.turn_sandbox_policy")
}

fn source_of(path: &str, root: &Node, from_env: &BTreeMap<String, String>, derived: &Derived) -> ValueSource {
    if path == "workspace.mode" && derived.mode_reason == ModeReason::HookClones {
        return ValueSource::Because { why: derived.mode_reason.sentence().to_owned() };
    }
    if let Some(key) = derived.taken_from.get(path) {
        return ValueSource::Key { key: key.clone() };
    }
    let Some(node) = root.at(path) else { return ValueSource::Default };
    let Some(place) = node.place.in_file() else { return ValueSource::Set };
    let line = place.line;
    match from_env.get(path) {
        Some(name) => ValueSource::Env { name: name.clone(), line },
        None => ValueSource::File { line },
    }
}

/// Returns one line per value, aligned; for terminals without tables and for logs.
pub fn plain_text(values: &[EffectiveValue]) -> String {
    let width = values.iter().map(|value| value.path.chars().count()).max().unwrap_or(0);
    let line = |value: &EffectiveValue| {
        let silent = value.not_in_force.map(|why| format!("  NOT IN FORCE: {why}")).unwrap_or_default();
        format!("{:width$}  {}  ({}){silent}\n", value.path, shown(&value.value), value.source)
    };
    values.iter().map(line).collect()
}

/// Returns a value as people write it.
pub fn shown(value: &Json) -> String {
    match value {
        Json::Null => "-".to_owned(),
        Json::String(text) => text.clone(),
        Json::Array(items) if items.iter().all(|item| !item.is_object()) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
