//! Recorded conversations through the protocols: what we send is what was sent, and the events are what the scenario asks for.

use std::path::Path;

use dirigent::agent::{AgentEvent, Protocol, Reaction};
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
