//! Recorded conversations, damaged: lines cut short, lost, doubled, exchanged, with strangers between them. Nothing may panic, a
//! turn ends at most once per prompt, and no usage is counted that the whole conversation did not have.

use std::sync::OnceLock;

use dirigent::agent::AgentEvent;
use dirigent::agent::presets::OneShot;
use dirigent::agent::{Answer, Protocol};
use dirigent::domain::usage::Usage;
use proptest::prelude::*;
use serde_json::Value;

use super::clients::{Client, opening};
use super::recording::{self, Entry};
use super::replay::{Played, play};
use super::scenarios::{self, Scenario, Setup, spent};

fn recordings() -> Vec<(Scenario, Vec<Entry>)> {
    static ALL: OnceLock<Vec<(Scenario, Vec<Entry>)>> = OnceLock::new();
    ALL.get_or_init(read_recordings).clone()
}

fn read_recordings() -> Vec<(Scenario, Vec<Entry>)> {
    let load = |scenario: Scenario| {
        let entries = recording::load(&recording::file(scenario.client, scenario.name));
        (scenario, entries)
    };
    scenarios::all().into_iter().map(load).collect()
}

fn within(part: Usage, whole: Usage) -> bool {
    part.fresh_input <= whole.fresh_input
        && part.cached_input <= whole.cached_input
        && part.output <= whole.output
        && part.reasoning <= whole.reasoning
        && part.cost_microusd <= whole.cost_microusd
}

/// Ends never outrun prompts, and a turn's tools are over when it is.
fn check_order(label: &str, entries: &[Entry], played: &Played) {
    let prompts = entries.iter().filter(|entry| matches!(entry, Entry::Prompt(_))).count();
    let ends = played.events.iter().filter(|event| matches!(event, AgentEvent::TurnEnded(_))).count();
    assert!(ends <= prompts, "{label}: {ends} ends for {prompts} prompts");
    let mut open: Vec<&str> = Vec::new();
    for (at, event) in played.events.iter().enumerate() {
        if played.begins.contains(&at) {
            open.clear();
        }
        match event {
            AgentEvent::ToolStarted { id, .. } => {
                assert!(!open.contains(&id.as_str()), "{label}: {id} started twice");
                open.push(id);
            }
            AgentEvent::ToolFinished { id, .. } => {
                let at = open.iter().position(|one| one == id);
                assert!(at.is_some(), "{label}: {id} finished without a start");
                open.remove(at.unwrap());
            }
            AgentEvent::TurnEnded(_) => assert!(open.is_empty(), "{label}: {open:?} outlive their turn"),
            _ => {}
        }
    }
}

fn got_lines(entries: &[Entry]) -> Vec<usize> {
    (0..entries.len()).filter(|at| matches!(entries[*at], Entry::Got(_))).collect()
}

#[test]
fn doubled_lines_change_nothing_that_counts() {
    for (scenario, entries) in recordings() {
        let label = format!("{:?}/{} doubled", scenario.client, scenario.name);
        let whole = play(&scenario, &entries);
        let doubled: Vec<Entry> = entries
            .iter()
            .flat_map(|entry| std::iter::repeat_n(entry.clone(), if matches!(entry, Entry::Got(_)) { 2 } else { 1 }))
            .collect();
        let played = play(&scenario, &doubled);
        check_order(&label, &doubled, &played);
        assert_eq!(scenarios::ends(&played.events), scenarios::ends(&whole.events), "{label}");
        assert_eq!(spent(&played.events), spent(&whole.events), "{label}");
    }
}

#[test]
fn a_conversation_said_twice_is_counted_once() {
    for (scenario, entries) in recordings() {
        if entries.iter().filter(|entry| matches!(entry, Entry::Open { .. })).count() > 1 {
            continue;
        }
        let label = format!("{:?}/{} repeated", scenario.client, scenario.name);
        let whole = play(&scenario, &entries);
        let again = got_lines(&entries).into_iter().map(|at| entries[at].clone());
        let repeated: Vec<Entry> = entries.iter().cloned().chain(again).collect();
        let played = play(&scenario, &repeated);
        check_order(&label, &repeated, &played);
        assert_eq!(spent(&played.events), spent(&whole.events), "{label}");
    }
}

#[test]
fn strangers_between_the_lines_are_signs_of_life() {
    let strangers = [
        r#"{"type":"something_new","payload":{"deep":[1,2,3]}}"#,
        r#"{"jsonrpc":"2.0","method":"something/new","params":{"sessionId":"x"}}"#,
        r#"{"id":987654,"result":{}}"#,
        r#"{"type":"system","subtype":"something_new"}"#,
        r#"{"type":null,"method":7,"id":[],"params":"?"}"#,
    ];
    for (scenario, entries) in recordings() {
        let label = format!("{:?}/{} strangers", scenario.client, scenario.name);
        let whole = play(&scenario, &entries);
        let mut mixed = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            mixed.push(entry.clone());
            if !matches!(entry, Entry::Open { .. }) {
                mixed.push(Entry::Got(strangers[number % strangers.len()].to_owned()));
            }
        }
        let played = play(&scenario, &mixed);
        assert_eq!(scenarios::ends(&played.events), scenarios::ends(&whole.events), "{label}");
        assert_eq!(spent(&played.events), spent(&whole.events), "{label}");
        let calm = |events: &[AgentEvent]| -> Vec<String> {
            events.iter().map(scenarios::word).filter(|word| word != "alive").collect()
        };
        assert_eq!(calm(&played.events), calm(&whole.events), "{label}");
    }
}

#[test]
fn unknown_fields_are_ignored() {
    for (scenario, entries) in recordings() {
        let label = format!("{:?}/{} fields", scenario.client, scenario.name);
        let whole = play(&scenario, &entries);
        let grown: Vec<Entry> = entries
            .iter()
            .map(|entry| match entry {
                Entry::Got(line) => match serde_json::from_str::<Value>(line) {
                    Ok(value) => Entry::Got(grow(value).to_string()),
                    Err(_) => entry.clone(),
                },
                other => other.clone(),
            })
            .collect();
        assert_eq!(play(&scenario, &grown).events, whole.events, "{label}");
    }
}

/// A new field in every object but those whose fields are data: models by name, tool arguments, questions and answers.
fn grow(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let keep = ["modelUsage", "input", "arguments", "args", "rawInput", "codexErrorInfo"];
            let mut grown: serde_json::Map<String, Value> = fields
                .into_iter()
                .map(|(name, value)| if keep.contains(&name.as_str()) { (name, value) } else { (name, grow(value)) })
                .collect();
            grown.insert("added_later".to_owned(), Value::from(vec![1, 2]));
            Value::Object(grown)
        }
        Value::Array(list) => list.into_iter().map(grow).collect(),
        other => other,
    }
}

#[test]
fn cut_lines_are_malformed_and_the_session_goes_on() {
    for (scenario, entries) in recordings() {
        let label = format!("{:?}/{} cut", scenario.client, scenario.name);
        let whole = play(&scenario, &entries);
        for at in got_lines(&entries) {
            let Entry::Got(line) = &entries[at] else { continue };
            let mut cut = entries.clone();
            let half = (0..=line.len() / 2).rev().find(|end| line.is_char_boundary(*end)).unwrap();
            cut[at] = Entry::Got(line[..half].to_owned());
            let played = play(&scenario, &cut);
            check_order(&label, &cut, &played);
            assert!(within(spent(&played.events), spent(&whole.events)), "{label} at {at}");
            let malformed = played.events.iter().filter(|event| matches!(event, AgentEvent::Malformed { .. })).count();
            assert_eq!(malformed, 1, "{label} at {at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn lost_and_exchanged_lines_never_add_usage_or_ends(
        which in 0..10_000_usize,
        lost in prop::collection::vec(0..10_000_usize, 0..6),
        exchanged in prop::collection::vec((0..10_000_usize, 0..10_000_usize), 0..6),
    ) {
        let all = recordings();
        let (scenario, mut entries) = all[which % all.len()].clone();
        let whole = spent(&play(&scenario, &entries).events);
        let lines = got_lines(&entries);
        for (one, other) in exchanged {
            entries.swap(lines[one % lines.len()], lines[other % lines.len()]);
        }
        for at in lost {
            entries[lines[at % lines.len()]] = Entry::Got(String::new());
        }
        let played = play(&scenario, &entries);
        let label = format!("{:?}/{} shuffled", scenario.client, scenario.name);
        check_order(&label, &entries, &played);
        // A resumed process reads the past off its first report, so its order matters there.
        if entries.iter().filter(|entry| matches!(entry, Entry::Open { .. })).count() == 1 {
            prop_assert!(within(spent(&played.events), whole), "{label}: {:?} > {whole:?}", spent(&played.events));
        }
    }

    #[test]
    fn bytes_at_random_never_panic(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..40)) {
        for mut protocol in protocols() {
            for line in &lines {
                let _ = protocol.line(line);
            }
        }
    }

    #[test]
    fn json_at_random_never_panics(values in prop::collection::vec(json(), 0..20)) {
        for mut protocol in protocols() {
            let _ = protocol.open(&opening(std::path::Path::new("/w"), Setup::default(), None));
            let _ = protocol.prompt("Do it.");
            for value in &values {
                let _ = protocol.line(value.to_string().as_bytes());
            }
            let _ = protocol.answer("0", &Answer::Allow);
            let _ = protocol.interrupt();
        }
    }
}

fn protocols() -> Vec<Box<dyn Protocol>> {
    let mut all: Vec<Box<dyn Protocol>> =
        [Client::Codex, Client::Claude, Client::Pi, Client::Opencode].map(Client::protocol).into();
    for command in [
        "codex exec --json",
        "claude -p --output-format stream-json --verbose",
        "opencode run --format json",
        "pi --mode json",
    ] {
        all.push(Box::new(OneShot::of_command(command).unwrap()));
    }
    all
}

/// Objects with the words that the protocols listen for, in the wrong places.
fn json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "type",
        "method",
        "id",
        "params",
        "result",
        "error",
        "usage",
        "turn",
        "item",
        "message",
        "content",
        "status",
        "turn/completed",
        "item/started",
        "thread/tokenUsage/updated",
        "assistant",
        "system",
        "init",
        "control_request",
        "can_use_tool",
        "agent_end",
        "agent_settled",
        "message_end",
        "response",
        "session/update",
        "tool_call",
        "update",
        "sessionUpdate",
        "tokenUsage",
        "total",
        "inputTokens",
        "text",
        "request",
        "subtype",
        "modelUsage",
        "step_finish",
        "part",
        "tokens",
        "turn.completed",
        "d1",
        "success",
        "data",
        "questions",
        "options",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
