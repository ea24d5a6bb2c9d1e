//! `tk` inside a worker: what it says to the runner's socket, and what it does without one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use dirigent::worker::desk_protocol::DeskResponse;
use serde_json::{Value, json};

use super::harness::Project;

/// A worker's project: the worktree has a copy of the store, which must not be looked at.
fn worker() -> Project {
    let mut project = Project::with(&[("app-x3f9", "open", "")]);
    for (name, value) in [
        ("DIRIGENT_SOCKET", project.root.join("desk.sock").display().to_string()),
        ("DIRIGENT_TOKEN", "t0ken".to_owned()),
        ("DIRIGENT_RUN_ID", "run-1".to_owned()),
        ("DIRIGENT_TICKET_ID", "app-x3f9".to_owned()),
        ("DIRIGENT_TICKET_KEY", "app-x3f9".to_owned()),
    ] {
        project.variables.insert(name.to_owned(), value);
    }
    project
}

/// Answers one request, and gives it back. Ends after ten seconds without one.
fn desk(project: &Project, answer: DeskResponse) -> JoinHandle<Value> {
    let socket = project.root.join("desk.sock");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    let mut line = String::new();
                    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
                    writeln!(stream, "{}", serde_json::to_string(&answer).unwrap()).unwrap();
                    return serde_json::from_str(&line).unwrap();
                }
                Err(_) if std::time::Instant::now() < deadline => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                Err(error) => panic!("no request came: {error}"),
            }
        }
    })
}

fn asked(project: &Project, arguments: &[&str]) -> Value {
    let desk = desk(project, DeskResponse::done("Noted."));
    assert_eq!(project.ok(arguments), "Noted.\n", "{arguments:?}");
    desk.join().unwrap()
}

#[test]
fn every_verb_has_its_request() {
    let mut project = worker();
    fs::write(project.root.join("plan.md"), "1. do it\n").unwrap();
    project.stdin = b"from stdin\n".to_vec();
    let request = |verb: &str, args: Value| json!({"v": 1, "token": "t0ken", "verb": verb, "args": args});
    let cases = [
        (&["show"][..], request("show", json!({"new": false}))),
        (&["show", "--new"], request("show", json!({"new": true}))),
        (&["show", "app-x3f9"], request("show", json!({"new": false, "ticket": "app-x3f9"}))),
        (&["comment", "half", "way"], request("comment", json!({"text": "half way"}))),
        (&["comment", "utf-8 support is in"], request("comment", json!({"text": "utf-8 support is in"}))),
        (&["comment", "utf-8", "support", "is", "in"], request("comment", json!({"text": "utf-8 support is in"}))),
        (&["add-note", "app-x3f9", "hi"], request("comment", json!({"text": "hi", "ticket": "app-x3f9"}))),
        (&["add-note"], request("comment", json!({"text": "from stdin"}))),
        (&["comment", "app-77aa", "hi"], request("comment", json!({"text": "hi", "ticket": "app-77aa"}))),
        (&["done", "all", "green"], request("done", json!({"summary": "all green"}))),
        (&["done", "app-x3f9"], request("done", json!({"summary": "", "ticket": "app-x3f9"}))),
        (&["done"], request("done", json!({"summary": ""}))),
        (&["blocked", "no", "key"], request("blocked", json!({"reason": "no key"}))),
        (&["blocked", "-"], request("blocked", json!({"reason": "from stdin"}))),
        (&["plan", "plan.md"], request("plan", json!({"text": "1. do it\n"}))),
        (
            &["create", "Later", "-d", "text", "--tags", "a, b", "-p", "0", "--acceptance", "works"],
            request(
                "create",
                json!({"title": "Later", "description": "text\n\n## Acceptance Criteria\n\nworks", "labels": ["a", "b"], "priority": 1}),
            ),
        ),
        (
            &["add", "Later", "-t", "a"],
            request("create", json!({"title": "Later", "description": "", "labels": ["a"], "priority": null})),
        ),
        (
            &["evidence", "--type", "command", "--command", "cargo test", "--exit-code", "0", "--output", "ok"],
            request(
                "evidence",
                json!({"evidence": {"type": "command", "command": "cargo test", "output": "ok", "exit_code": 0}}),
            ),
        ),
        (
            &["evidence", "--type=command", "--exit-code=101", "--output=-", "cargo", "test"],
            request(
                "evidence",
                json!({"evidence": {"type": "command", "command": "cargo test", "output": "from stdin", "exit_code": 101}}),
            ),
        ),
        (
            &["evidence", "--type", "test", "--passed", "12", "--failed", "1"],
            request("evidence", json!({"evidence": {"type": "test", "passed": 12, "failed": 1}})),
        ),
        (
            &["evidence", "--type", "file", "src/x.rs", "--action", "created"],
            request("evidence", json!({"evidence": {"type": "file", "action": "created", "path": "src/x.rs"}})),
        ),
        (
            &["answer", "r1a2b3c", "declined", "not", "here"],
            request("answer", json!({"remark": "r1a2b3c", "answer": "declined", "text": "not here"})),
        ),
        (&["failed", "no", "compiler"], request("failed", json!({"why": "no compiler"}))),
        (
            &["evidence", "--type", "note", "looked", "at", "it"],
            request("evidence", json!({"evidence": {"type": "note", "text": "looked at it"}})),
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(asked(&project, arguments), expected, "{arguments:?}");
    }
    assert_eq!(
        project.read("app-x3f9"),
        "---\nid: app-x3f9\nstatus: open\n---\n# Title of app-x3f9\n\n",
        "the copy is untouched"
    );
}

#[test]
fn a_refusal_is_shown_as_it_was_worded() {
    let project = worker();
    let desk = desk(&project, DeskResponse::refused("other_ticket", "this run works on app-x3f9 only"));
    assert_eq!(project.fails(&["show", "app-77aa"]), "Error: this run works on app-x3f9 only\n");
    desk.join().unwrap();
}

#[test]
fn show_can_answer_as_json() {
    let project = worker();
    let desk = desk(&project, DeskResponse::with_data("text", json!({"key": "app-x3f9"})));
    let shown: Value = serde_json::from_str(&project.ok(&["show", "--json"])).unwrap();
    assert_eq!(shown, json!({"key": "app-x3f9"}));
    desk.join().unwrap();
}

#[test]
fn without_the_runner_nothing_falls_back_on_the_copy_in_the_worktree() {
    let mut project = worker();
    for command in [&["show"][..], &["comment", "x"], &["done", "x"], &["super", "show"]] {
        let said = project.fails(command);
        assert!(said.contains("the runner cannot be reached at") && said.contains("nothing was recorded"), "{said}");
    }
    project.variables.remove("DIRIGENT_SOCKET");
    assert!(project.fails(&["show"]).contains("DIRIGENT_SOCKET is not set"));
    assert_eq!(project.read("app-x3f9"), "---\nid: app-x3f9\nstatus: open\n---\n# Title of app-x3f9\n\n");
}

#[test]
fn a_runner_that_hangs_up_is_an_error() {
    let project = worker();
    let listener = UnixListener::bind(project.root.join("desk.sock")).unwrap();
    let hangs_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let said = project.fails(&["comment", "x"]);
    assert!(said.contains("may not have been recorded"), "{said}");
    hangs_up.join().unwrap();
}

#[test]
fn what_a_worker_cannot_do_is_said_without_asking() {
    let project = worker();
    for (command, hint) in [
        (&["close", "app-x3f9"][..], "Use 'done SUMMARY'"),
        (&["start", "app-x3f9"], "The runner moves your ticket itself"),
        (&["ls"], "only reach your own ticket"),
        (&["blocked"], "Usage: tk blocked REASON"),
        (&["failed"], "Usage: tk failed WHY"),
        (&["answer", "r1"], "Usage: tk answer REMARK fixed|explained|declined TEXT"),
        (&["answer", "r1", "ignored", "x"], "an answer is fixed, explained or declined, not 'ignored'"),
        (&["answer", "r1", "fixed"], "say in a sentence"),
        (&["plan", "missing.md"], "could not read missing.md"),
        (&["plan"], "Usage: tk plan FILE"),
        (&["evidence"], "Usage: tk evidence --type"),
        (&["evidence", "--type", "odd"], "Must be one of: command file test note"),
        (&["evidence", "--type", "command", "--command", "x"], "needs --exit-code"),
        (&["evidence", "--type", "test", "--passed", "many"], "--passed takes a whole number"),
        (&["evidence", "--type", "file", "--path", "x", "--action", "moved"], "created, modified or deleted"),
        (&["create", "x", "-p", "9"], "the priority is 0 to 4"),
        (&["show", "--old"], "Unknown option: --old"),
    ] {
        let said = project.fails(command);
        assert!(said.contains(hint), "{command:?}: {said}");
    }
    assert!(project.ok(&["help"]).contains("tk done SUMMARY"));
    assert!(project.ok(&[]).contains("tk done SUMMARY"));
}
