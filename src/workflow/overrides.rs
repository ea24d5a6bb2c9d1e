//! `--set key.path=value`: settings of one invocation, laid over the file before it is checked. They are checked like the file's own and
//! are part of its hash. Secrets are refused, because every user of the machine can read a command line.

use super::schema;
use super::tree::{Entry, Node, Place, Value};

/// The last words of keys that hold secrets, in whatever spelling the rest is written.
const SECRETS: [&str; 5] = ["token", "tokens", "api_key", "private_key", "secret"];

/// The settings from `--set`, in the order of the command line.
#[derive(Debug, Clone, Default)]
pub struct Overrides(Vec<Override>);

#[derive(Debug, Clone)]
struct Override {
    path: String,
    text: String,
    node: Node,
}

#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    #[error("`--set {0}` names no value; write `--set key.path=value`")]
    NoValue(String),
    #[error("`--set {0}` is not a key's path; write for example `--set agent.max_turns=5` (a list is set as a whole)")]
    NotAPath(String),
    #[error("`--set {path}` has a value that cannot be read: {why}")]
    Unreadable { path: String, why: String },
    #[error(
        "`--set {0}` would put a secret on the command line, where every user of this machine can read it; write it as `$NAME` in the file"
    )]
    Secret(String),
    #[error("`--set {path}` does not fit: `{inside}` is not a map in the workflow file")]
    NotAMap { path: String, inside: String },
}

impl Overrides {
    pub fn parse(words: &[String]) -> Result<Self, OverrideError> {
        words.iter().map(|word| Override::parse(word)).collect::<Result<_, _>>().map(Self)
    }

    /// Lays the settings over the tree; the last one wins.
    pub fn lay_over(&self, root: &mut Node) -> Result<(), OverrideError> {
        self.0.iter().try_for_each(|one| {
            let keys: Vec<&str> = one.path.split('.').collect();
            put(root, &keys, one.node.clone())
                .map_err(|inside| OverrideError::NotAMap { path: one.path.clone(), inside })
        })
    }

    /// Returns what the settings add to the hash of the file; empty if there are none.
    pub fn mark(&self) -> Vec<u8> {
        // The port changes nothing about the work.
        let of_the_work = self.0.iter().filter(|one| one.path != "server.port");
        of_the_work.flat_map(|one| format!("\0--set {}={}", one.path, one.text).into_bytes()).collect()
    }
}

impl Override {
    fn parse(word: &str) -> Result<Self, OverrideError> {
        let (path, text) = word.split_once('=').ok_or_else(|| OverrideError::NoValue(word.to_owned()))?;
        let path = path.trim().to_owned();
        let is_key = |part: &str| !part.is_empty() && !part.contains(['[', ']', ' ']);
        if !path.contains('.') || !path.split('.').all(is_key) {
            return Err(OverrideError::NotAPath(path));
        }
        if is_secret(&path) {
            return Err(OverrideError::Secret(path));
        }
        let mut node: Node = match text.trim() {
            "" => Node::new(Value::Text(String::new()), Place::COMMAND_LINE),
            text => serde_saphyr::from_str(text).map_err(|error| OverrideError::Unreadable {
                path: path.clone(),
                why: error.without_snippet().to_string(),
            })?,
        };
        if let Some(secret) = take_from_command_line(&path, &mut node) {
            return Err(OverrideError::Secret(secret));
        }
        Ok(Self { path, text: text.to_owned(), node })
    }
}

fn is_secret(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    let is_environment = path == "worker.env" || path.starts_with("worker.env.");
    SECRETS.contains(&last) || is_environment || path.contains(".tokens.") || schema::holds_secret(path)
}

/// Sets the place of the value and of everything below it to the command line. Returns the first key in it that is a secret.
fn take_from_command_line(path: &str, node: &mut Node) -> Option<String> {
    node.place = Place::COMMAND_LINE;
    match &mut node.value {
        Value::Map(entries) => entries.iter_mut().find_map(|entry| {
            entry.key_place = Place::COMMAND_LINE;
            let path = format!("{path}.{}", entry.key);
            if is_secret(&path) { Some(path) } else { take_from_command_line(&path, &mut entry.node) }
        }),
        Value::List(items) => items.iter_mut().find_map(|item| take_from_command_line(path, item)),
        _ => None,
    }
}

/// Puts the value at its path. The error is a key on the way that is not a map.
fn put(root: &mut Node, keys: &[&str], value: Node) -> Result<(), String> {
    let [key, rest @ ..] = keys else { return Ok(()) };
    if root.entry(key).is_none_or(|entry| entry.node.is_null()) {
        root.remove(key);
        let node = Node::new(Value::Map(Vec::new()), Place::COMMAND_LINE);
        root.insert(Entry { key: (*key).to_owned(), key_place: Place::COMMAND_LINE, node });
    }
    let Some(node) = root.get_mut(key) else { return Err((*key).to_owned()) };
    if rest.is_empty() {
        *node = value;
        return Ok(());
    }
    match node.value {
        Value::Map(_) => put(node, rest, value).map_err(|inside| format!("{key}.{inside}")),
        _ => Err((*key).to_owned()),
    }
}
