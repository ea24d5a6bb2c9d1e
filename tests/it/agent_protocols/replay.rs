//! Recorded conversations through the protocols: what we send is what was sent, and the events are what the scenario asks for.

use std::path::Path;

use dirigent::agent::peek::{PeekKind, peek};
use dirigent::agent::{AgentEvent, Protocol, Reaction};
use dirigent::config::exec::ExecEvents;
use serde_json::Value;

use super::clients::opening;
use super::recording::{self, Entry};
use super::scenarios::{self, Scenario};

/// What came out of a conversation, in order.
#[derive(Default)]
pub struct Played {
    pub events: Vec<AgentEvent>,
    pub sent: Vec<String>,
    /// Where in the events each process begins.
    pub begins: Vec<usize>,
}

impl Played {
    fn take(&mut self, reaction: Reaction) {
        self.events.extend(reaction.events);
        self.sent.extend(reaction.send);
    }
}

/// Plays the recorded side of the client against fresh protocols, one per process.
pub fn play(scenario: &Scenario, entries: &[Entry]) -> Played {
    let mut played = Played::default();
    let mut protocol: Box<dyn Protocol> = scenario.client.protocol();
    for entry in entries {
        let reaction = match entry {
            Entry::Open { resume } => {
                protocol = scenario.client.protocol();
                played.begins.push(played.events.len());
                protocol.open(&opening(Path::new("/worktree"), scenario.setup, resume.clone()))
            }
            Entry::Prompt(text) => protocol.prompt(text),
            Entry::Steer(text) => protocol.steer(text).unwrap_or_default(),
            Entry::Interrupt => protocol.interrupt().unwrap_or_default(),
            Entry::Answer { ask, answer } => protocol.answer(ask, answer),
            Entry::Got(line) => protocol.line(line.as_bytes()),
            Entry::Sent(_) => Reaction::default(),
        };
        played.take(reaction);
    }
    played
}

fn comparable(line: &str) -> Value {
    let mut value: Value = serde_json::from_str(line).unwrap();
    if let Some(version) = value.pointer_mut("/params/clientInfo/version") {
        *version = Value::from("0.0.0");
    }
    // Where the sandbox stands is the launch's business; the replayed protocol has no policy.
    if let Some(params) = value.get_mut("params").and_then(Value::as_object_mut) {
        for name in ["approvalPolicy", "sandbox", "config"] {
            params.remove(name);
        }
    }
    value
}

#[test]
fn every_recorded_conversation_is_understood() {
    for scenario in scenarios::all() {
        let entries = recording::load(&recording::file(scenario.client, scenario.name));
        let played = play(&scenario, &entries);
        scenarios::check(&scenario, &played.events);
        let recorded: Vec<Value> = entries
            .iter()
            .filter_map(|entry| if let Entry::Sent(line) = entry { Some(comparable(line)) } else { None })
            .collect();
        let sent: Vec<Value> = played.sent.iter().map(|line| comparable(line)).collect();
        assert_eq!(sent, recorded, "{:?}/{}", scenario.client, scenario.name);
        assert!(
            !played.events.iter().any(|event| matches!(event, AgentEvent::Malformed { .. })),
            "{:?}/{}",
            scenario.client,
            scenario.name
        );
    }
}

/// Each process of a recorded conversation as a transcript has it, and the words and tools that came out while it was live.
fn transcripts(scenario: &Scenario, entries: &[Entry]) -> Vec<(String, Vec<String>)> {
    let starts: Vec<usize> =
        entries.iter().enumerate().filter(|(_, entry)| matches!(entry, Entry::Open { .. })).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let lives = starts.iter().copied().zip(ends).map(|(from, to)| &entries[from..to]);
    let transcript = |life: &[Entry]| -> String {
        life.iter()
            .filter_map(|entry| match entry {
                Entry::Sent(line) => Some(format!("1 in {line}\n")),
                Entry::Got(line) => Some(format!("2 out {line}\n")),
                _ => None,
            })
            .collect()
    };
    let live = |life: &[Entry]| -> Vec<String> {
        let shown = |event| match event {
            AgentEvent::Message { text } if !text.trim().is_empty() => Some(text),
            AgentEvent::ToolStarted { name, about, .. } => Some(format!("{name} {about}").trim().to_owned()),
            _ => None,
        };
        play(scenario, life).events.into_iter().filter_map(shown).collect()
    };
    lives.map(|life| (transcript(life), live(life))).collect()
}

#[test]
fn a_look_back_shows_the_words_and_tools_that_were_seen_live() {
    let mut tools = 0;
    for scenario in scenarios::all() {
        let entries = recording::load(&recording::file(scenario.client, scenario.name));
        for (transcript, live) in transcripts(&scenario, &entries) {
            let seen = peek(scenario.client.runtime(), ExecEvents::Plain, &transcript);
            tools += seen.iter().filter(|line| line.kind == PeekKind::Tool).count();
            let said = seen.into_iter().filter(|line| matches!(line.kind, PeekKind::Message | PeekKind::Tool));
            let said: Vec<String> = said.map(|line| line.text).collect();
            assert_eq!(said, live, "{:?}/{}", scenario.client, scenario.name);
        }
    }
    assert!(tools > 10, "{tools} tool calls in all recordings");
}

#[test]
fn no_recording_is_forgotten_or_tells_of_the_machine() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents");
    let wanted: Vec<_> = scenarios::all().iter().map(|one| recording::file(one.client, one.name)).collect();
    for client in std::fs::read_dir(dir).unwrap() {
        let client = client.unwrap().path();
        if client.ends_with("one_shot") {
            continue;
        }
        for file in std::fs::read_dir(client).unwrap() {
            let file = file.unwrap().path();
            assert!(wanted.contains(&file), "no scenario reads {}", file.display());
            let text = std::fs::read_to_string(&file).unwrap();
            for trace in ["/root/", "/var/tmp/", "/tmp/", "/work/", "/Users/"] {
                assert!(!text.contains(trace), "{} names {trace}", file.display());
            }
        }
    }
}
