//! What the one-shot JSON modes print, recorded from the real clients: a commit, a resumed session, a refused key.

use std::path::{Path, PathBuf};

use dirigent::agent::presets::OneShot;
use dirigent::agent::{AgentEvent, Opening, Protocol};
use dirigent::domain::ids::SessionId;
use dirigent::domain::usage::Usage;

use super::clients::opening;
use super::scenarios::{self, Setup, spent};

const COMMANDS: [(&str, &str); 4] = [
    ("codex", "codex exec --json"),
    ("claude", "claude -p --output-format stream-json --verbose"),
    ("opencode", "opencode run --format json"),
    ("pi", "pi --mode json"),
];

fn lines(name: &str) -> Vec<String> {
    let file: PathBuf = ["tests/fixtures/agents/one_shot", name].iter().collect();
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn play(command: &str, lines: &[String], resume: Option<SessionId>) -> Vec<AgentEvent> {
    play_after(command, lines, resume, None)
}

fn play_after(
    command: &str,
    lines: &[String],
    resume: Option<SessionId>,
    used_before: Option<Usage>,
) -> Vec<AgentEvent> {
    let mut protocol = OneShot::of_command(command).unwrap();
    assert!(protocol.one_shot());
    let opening = Opening { used_before, ..opening(Path::new("/worktree"), Setup::default(), resume) };
    let mut events = protocol.open(&opening).events;
    assert_eq!(protocol.prompt("Do\nit.").send, ["Do\nit."]);
    for line in lines {
        let reaction = protocol.line(line.as_bytes());
        assert!(reaction.send.is_empty(), "{command}: nobody reads what is written");
        events.extend(reaction.events);
    }
    events
}

#[test]
fn a_commit_has_a_session_a_tool_usage_and_an_end() {
    for (name, command) in COMMANDS {
        let recorded = lines(&format!("{name}_commit.jsonl"));
        let events = play(command, &recorded, None);
        assert_eq!(scenarios::ends(&events), ["completed"], "{name}: {events:?}");
        let words: Vec<String> = events.iter().map(scenarios::word).filter(|word| word != "alive").collect();
        for wanted in ["ready", "session", "turn", "tool", "tool ok", "message(Committed hello.txt.)"] {
            assert!(words.iter().any(|word| word == wanted), "{name}: no {wanted} in {words:?}");
        }
        let sum = spent(&events);
        let fresh = if name == "claude" { 2100 } else { 1300 };
        assert_eq!((sum.fresh_input, sum.cached_input, sum.output), (fresh, 800, 41), "{name}");
        let twice: Vec<String> = recorded.iter().flat_map(|line| [line.clone(), line.clone()]).collect();
        let events = play(command, &twice, None);
        assert_eq!((scenarios::ends(&events), spent(&events)), (vec!["completed".to_owned()], sum), "{name} doubled");
    }
}

#[test]
fn a_resumed_session_does_not_count_its_past() {
    for (name, command) in COMMANDS {
        let recorded = lines(&format!("{name}_resumed.jsonl"));
        let before = spent(&play(command, &lines(&format!("{name}_commit.jsonl")), None));
        let events = play_after(command, &recorded, Some(SessionId::new("earlier")), Some(before));
        assert_eq!(scenarios::ends(&events), ["completed"], "{name}: {events:?}");
        let sum = spent(&events);
        let wanted = if name == "claude" { (1000, 400, 20) } else { (600, 400, 20) };
        assert_eq!((sum.fresh_input, sum.cached_input, sum.output), wanted, "{name}");
    }
}

#[test]
fn a_past_that_nobody_recorded_is_counted_rather_than_nothing() {
    let events = play("codex exec --json", &lines("codex_resumed.jsonl"), Some(SessionId::new("earlier")));
    let sum = spent(&events);
    assert_eq!((sum.fresh_input, sum.cached_input, sum.output), (1900, 1200, 61));
}

#[test]
fn a_refused_key_is_an_auth_failure() {
    for (name, command) in COMMANDS {
        let events = play(command, &lines(&format!("{name}_unauthorized.jsonl")), None);
        assert_eq!(scenarios::ends(&events), ["failed Auth"], "{name}: {events:?}");
    }
}
