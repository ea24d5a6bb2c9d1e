//! A recorded conversation: what we did, what we sent, what the client printed, in order. Paths, ids and times are made the same
//! in every recording, and long texts are cut, so that a new recording differs only where the client does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dirigent::agent::Answer;
use dirigent::domain::ids::SessionId;
use serde_json::{Value, json};

use super::clients::{Client, Place};

#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Open { resume: Option<SessionId> },
    Prompt(String),
    Steer(String),
    Interrupt,
    Answer { ask: String, answer: Answer },
    Sent(String),
    Got(String),
}

pub fn file(client: Client, scenario: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents").join(client.program());
    dir.join(format!("{scenario}.jsonl"))
}

pub fn load(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| entry(&serde_json::from_str(line).unwrap())).collect()
}

fn entry(value: &Value) -> Entry {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    if let Some(line) = value.get("sent") {
        return Entry::Sent(line.to_string());
    }
    if let Some(line) = value.get("got") {
        return Entry::Got(line.as_str().map_or_else(|| line.to_string(), str::to_owned));
    }
    match value["do"].as_str().unwrap() {
        "open" => Entry::Open { resume: value["resume"].as_str().map(SessionId::new) },
        "prompt" => Entry::Prompt(text("text")),
        "steer" => Entry::Steer(text("text")),
        "interrupt" => Entry::Interrupt,
        "answer" => {
            let answer = match value["answer"].as_str().unwrap() {
                "allow" => Answer::Allow,
                "deny" => Answer::Deny { because: text("text") },
                "text" => Answer::Text(text("text")),
                "tool" => Answer::ToolResult { success: true, output: text("text") },
                other => panic!("unknown answer {other}"),
            };
            Entry::Answer { ask: text("ask"), answer }
        }
        other => panic!("unknown entry {other}"),
    }
}

fn value(entry: &Entry) -> Value {
    let parsed = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| json!(line));
    match entry {
        Entry::Open { resume } => json!({"do": "open", "resume": resume}),
        Entry::Prompt(text) => json!({"do": "prompt", "text": text}),
        Entry::Steer(text) => json!({"do": "steer", "text": text}),
        Entry::Interrupt => json!({"do": "interrupt"}),
        Entry::Answer { ask, answer } => {
            let (kind, text) = match answer {
                Answer::Allow => ("allow", ""),
                Answer::Deny { because } => ("deny", because.as_str()),
                Answer::Text(text) => ("text", text.as_str()),
                Answer::ToolResult { output, .. } => ("tool", output.as_str()),
            };
            json!({"do": "answer", "ask": ask, "answer": kind, "text": text})
        }
        Entry::Sent(line) => json!({"sent": parsed(line)}),
        Entry::Got(line) => json!({"got": trimmed(parsed(line))}),
    }
}

pub fn save(path: &Path, entries: &[Entry], place: &Place) {
    let lines: Vec<String> = entries.iter().map(|entry| value(entry).to_string()).collect();
    let text = normalised(lines.join("\n") + "\n", place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Long texts and lists carry nothing that a protocol reads.
fn trimmed(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > 400 => json!(format!("{}…", text.chars().take(200).collect::<String>())),
        Value::Array(list) => list.into_iter().take(6).map(trimmed).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| {
                ![
                    "sections",
                    "commands",
                    "availableCommands",
                    "agents",
                    "slash_commands",
                    "skills",
                    "messaging_socket_path",
                ]
                .contains(&name.as_str())
            })
            .map(|(name, value)| (name, trimmed(value)))
            .collect(),
        other => other,
    }
}

fn normalised(mut text: String, place: &Place) -> String {
    let host = nix::unistd::gethostname().unwrap().to_string_lossy().into_owned();
    let dir = place.dir.path().display().to_string();
    // Claude names a project directory after its path.
    let flat = dir.replace(['/', '_', '.'], "-");
    for (from, to) in [
        (format!("{dir}/worktree"), "/worktree".to_owned()),
        (format!("{dir}/repo"), "/repo".to_owned()),
        (format!("{dir}/home"), "/home/agent".to_owned()),
        (dir, "/place".to_owned()),
        (flat, "-place".to_owned()),
        (place.prefix.display().to_string(), "/agents".to_owned()),
        (format!("127.0.0.1:{}", place.port), "127.0.0.1:1".to_owned()),
        (format!("\"{host}\""), "\"host\"".to_owned()),
        (format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION")), "\"version\":\"0.0.0\"".to_owned()),
    ] {
        text = text.replace(&from, &to);
    }
    let text = renumbered(&text, is_uuid, |number| format!("00000000-0000-4000-8000-{number:012}"));
    renumbered(&text, is_millis, |number| format!("{}", 1_700_000_000_000_u64 + number))
}

fn is_uuid(word: &str) -> bool {
    let parts: Vec<usize> = word.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

fn is_millis(word: &str) -> bool {
    word.len() == 13 && word.starts_with("17") && word.chars().all(|c| c.is_ascii_digit())
}

/// Each distinct word of a kind becomes a number, the same one wherever it stands.
fn renumbered(text: &str, is: fn(&str) -> bool, name: impl Fn(u64) -> String) -> String {
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '-' {
            word.push(c);
            continue;
        }
        if is(&word) {
            let next = numbers.len() as u64 + 1;
            out.push_str(&name(*numbers.entry(word.clone()).or_insert(next)));
        } else {
            out.push_str(&word);
        }
        word.clear();
        out.push(c);
    }
    out.pop();
    out
}
