//! The runner is killed in the middle of a turn of a real client. Its next life goes on with the same conversation and brings the ticket
//! to its end.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::json;

use super::clients::{Client, Place};
use super::live::installed;
use super::model_server::ModelServer;
use crate::support::board::{Board, MERGE, text};

/// Front matter for the client, with the scripted model behind it.
fn workflow(client: Client, prefix: &Path, place: &Place) -> String {
    let program = prefix.join("bin").join(client.program()).display().to_string();
    let limit = 60_000;
    let (runtime, section) = match client {
        Client::Codex => ("codex", json!({"command": format!("{program} app-server"), "read_timeout_ms": limit})),
        Client::Claude => ("claude", json!({"command": program, "read_timeout_ms": limit})),
        Client::Pi => {
            let model = json!({"provider": "mock", "model_id": "mock-model"});
            ("pi", json!({"command": program, "read_timeout_ms": limit, "model": model}))
        }
        Client::Opencode => ("acp", json!({"command": format!("{program} acp"), "read_timeout_ms": limit})),
    };
    let env: serde_json::Map<String, serde_json::Value> = place
        .env(client, false)
        .into_iter()
        .filter(|(name, _)| name != "PATH")
        .map(|(name, value)| (name, value.into()))
        .collect();
    let worker = json!({"runtime": runtime, "env": env});
    let gate = place.path("gate").display().to_string();
    format!(
        "---\ntracker: {{kind: tk}}\npolling: {{interval_ms: 500}}\nworker: {worker}\n{runtime}: {section}\nagent: {{stop_grace_ms: 1000, max_turns: 1}}\ngates: {{task: [\"test -f hello.txt && touch {gate}\"]}}\n{MERGE}---\n"
    )
}

/// What the runs of the board printed, oldest first.
fn transcripts(board: &Board) -> Vec<String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for repo in std::fs::read_dir(board.home().join("repos")).into_iter().flatten().flatten() {
        let runs = std::fs::read_dir(repo.path().join("runs")).into_iter().flatten().flatten();
        files.extend(runs.map(|run| run.path().join("transcript.log")));
    }
    // Run ids sort by time.
    files.sort();
    files.iter().map(|file| text(&std::fs::read(file).unwrap_or_default())).collect()
}

fn conversation(client: Client, transcript: &str) -> Option<String> {
    let key = match client {
        Client::Codex => "\"threadId\":\"",
        Client::Claude => "\"session_id\":\"",
        Client::Pi | Client::Opencode => "\"sessionId\":\"",
    };
    let rest = transcript.split(key).nth(1)?;
    Some(rest.split('"').next()?.to_owned())
}

/// Whether the agent's shell waits for the file.
fn waits_for(file: &Path) -> bool {
    let wanted = format!("while [ ! -e {} ]", file.display());
    let pids = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    pids.map(|path| std::fs::read(path.join("cmdline")).unwrap_or_default()).any(|line| text(&line).contains(&wanted))
}

fn goes_on(client: Client) {
    let Some(prefix) = installed(client) else { return };
    let logs = tempfile::tempdir().unwrap();
    let model = ModelServer::start(&logs.path().join("requests.jsonl"));
    let place = Place::new(&prefix, model.port);
    let board = Board::new("exit 1", "");
    board.scratch.write("WORKFLOW.md", &workflow(client, &prefix, &place));
    board.scratch.commit("the agent");
    let go = place.path("go");
    board.ticket("t-1", "Say hello");
    let script = format!(
        "{}MODEL:shell while [ ! -e {} ]; do sleep 0.2; done; echo hello > hello.txt && git add hello.txt && git commit -q -m 'Add hello.txt'\nMODEL:text Committed.\n",
        board.ticket_text("t-1"),
        go.display()
    );
    std::fs::write(board.ticket_path("t-1"), script).unwrap();

    let first = board.start();
    board.until("the agent's shell runs", || waits_for(&go));
    let before = transcripts(&board);
    let session = conversation(client, before.last().unwrap()).expect("the conversation has an id");
    first.signal(Signal::SIGKILL);
    drop(first);
    std::fs::write(&go, "").unwrap();

    let second = board.start();
    board.until("the ticket is done", || board.phase("t-1") == "done");
    second.end();
    assert!(place.path("gate").exists(), "the gate ran before the merge");
    assert_eq!(board.scratch.git(["show", "main:hello.txt"]), "hello");
    let after = transcripts(&board);
    assert_eq!(after.len(), before.len() + 1, "{client:?}: one more run: {after:#?}");
    let last = after.last().unwrap();
    assert_eq!(conversation(client, last).as_ref(), Some(&session), "{client:?}: another conversation: {last}");
    if client == Client::Opencode {
        // It ties a conversation to the directory that it began in; the one that takes its place is told what came before.
        let fresh = last.rsplit("session/new").next().unwrap();
        assert!(last.contains("the earlier conversation is gone"), "{last}");
        for told in ["## What happened before", "the runner stopped", "The branch is at ", "git log main..HEAD"] {
            assert!(fresh.contains(told), "no `{told}` in {fresh}");
        }
    }
    assert!(board.worker_processes().is_empty());
}

#[test]
fn codex_goes_on() {
    goes_on(Client::Codex);
}

#[test]
fn opencode_goes_on() {
    goes_on(Client::Opencode);
}

#[test]
fn claude_goes_on() {
    goes_on(Client::Claude);
}

#[test]
fn pi_goes_on() {
    goes_on(Client::Pi);
}
