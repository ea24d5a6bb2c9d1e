//! Cases 11 to 18 and 20 to 22 of the contract: the hook commands in a repository without a runner.

use std::io::Write;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::checked;
use crate::support::board::{Board, MUTATE};

fn board() -> Board {
    Board::new("exit 0\n", MUTATE)
}

/// The command as an agent calls it, with this on its stdin.
fn hook(board: &Board, event: &str, input: &str) -> (Value, Output) {
    let mut child = board
        .command(&["hook", event])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer = serde_json::from_slice(&output.stdout).unwrap();
    (answer, output)
}

fn said(board: &Board, event: &str, input: Value) -> Value {
    hook(board, event, &input.to_string()).0
}

fn file(board: &Board) -> Value {
    checked(&std::fs::read_to_string(board.repo().join(".bkit/agent-state.json")).unwrap())
}

fn start(board: &Board, name: &str) -> Value {
    said(
        board,
        "subagent-start",
        json!({"agent_id": name, "agent_type": "subagent", "team_name": "red", "session_id": "s-1"}),
    )
}

#[test]
fn case_11_the_first_start_makes_the_file_with_one_teammate() {
    let board = board();
    let answer = start(&board, "one");
    let wanted = json!({"systemMessage": "Subagent one spawned", "hookSpecificOutput":
        {"hookEventName": "SubagentStart", "agentName": "one", "agentType": "subagent", "teamName": "red"}});
    assert_eq!(answer, wanted);
    let state = file(&board);
    assert_eq!(
        (&state["enabled"], &state["teamName"], &state["sessionId"]),
        (&true.into(), &"red".into(), &"s-1".into())
    );
    assert_eq!(state["ctoAgent"], "opus");
    let mates = state["teammates"].as_array().unwrap();
    assert_eq!((mates.len(), &mates[0]["status"], &mates[0]["role"]), (1, &"spawning".into(), &"subagent".into()));
}

#[test]
fn case_12_a_second_start_adds_to_what_is_there() {
    let board = board();
    start(&board, "one");
    let begun = file(&board)["startedAt"].clone();
    start(&board, "two");
    let state = file(&board);
    assert_eq!(state["teammates"].as_array().unwrap().len(), 2);
    assert_eq!(state["startedAt"], begun);
}

#[test]
fn case_13_an_idle_teammate_is_idle() {
    let board = board();
    said(&board, "subagent-start", json!({"agent_id": "one", "tool_input": {"prompt": "look around"}}));
    assert_eq!(file(&board)["teammates"][0]["currentTask"], "look around");
    said(&board, "teammate-idle", json!({"teammate_name": "one"}));
    let mate = &file(&board)["teammates"][0];
    assert_eq!((&mate["status"], &mate["currentTask"]), (&"idle".into(), &Value::Null));
}

#[test]
fn case_14_a_completed_task_is_told() {
    let board = board();
    start(&board, "one");
    said(&board, "task-completed", json!({"agent_id": "one", "task_id": "7", "task_subject": "Paint the door"}));
    let state = file(&board);
    assert_eq!(
        (&state["teammates"][0]["status"], &state["teammates"][0]["taskId"]),
        (&"completed".into(), &"7".into())
    );
    assert_eq!(state["recentMessages"][0]["content"], "completed: Paint the door");
    assert_eq!(state["progress"]["completedTasks"], 1);
}

#[test]
fn case_15_a_stop_completes_or_fails_the_teammate() {
    let board = board();
    start(&board, "one");
    start(&board, "two");
    said(&board, "subagent-stop", json!({"agent_id": "one", "transcript_path": "/t"}));
    said(&board, "subagent-stop", json!({"agent_id": "two", "exit_code": 3}));
    let state = file(&board);
    assert_eq!(
        (&state["teammates"][0]["status"], &state["teammates"][1]["status"]),
        (&"completed".into(), &"failed".into())
    );
    assert_eq!((&state["progress"]["completedTasks"], &state["progress"]["failedTasks"]), (&1.into(), &1.into()));
}

#[test]
fn case_16_the_end_of_a_team_session_switches_it_off() {
    let board = board();
    start(&board, "one");
    let before = file(&board);
    assert_eq!(said(&board, "stop", json!({"session_id": "s-1"})), json!({}));
    let state = file(&board);
    assert_eq!((&state["enabled"], &state["teammates"]), (&false.into(), &json!([])));
    assert_eq!(state["progress"], before["progress"], "what it came to stays");
}

#[test]
fn case_17_the_end_of_a_leader_session_switches_it_off_and_the_next_start_begins_anew() {
    let board = board();
    start(&board, "one");
    said(&board, "stop", json!({"session_id": "s-1", "hook_event_name": "Stop"}));
    said(&board, "stop", json!({}));
    assert_eq!(file(&board)["enabled"], false);
    start(&board, "two");
    let state = file(&board);
    assert_eq!((&state["enabled"], state["teammates"].as_array().unwrap().len()), (&true.into(), 1));
}

#[test]
fn case_18_the_answer_on_stdout_is_the_same_whether_or_not_the_file_can_be_written() {
    let board = board();
    let answers = |board: &Board| -> Vec<Value> {
        let input = json!({"agent_id": "one", "exit_code": 0, "task_id": "7"});
        let events = ["subagent-start", "teammate-idle", "task-completed", "subagent-stop", "stop", "something-new"];
        events.map(|event| said(board, event, input.clone())).to_vec()
    };
    let well = answers(&board);
    assert!(board.repo().join(".bkit/agent-state.json").exists());
    std::fs::remove_dir_all(board.repo().join(".bkit")).unwrap();
    std::fs::write(board.repo().join(".bkit"), "in the way").unwrap();
    assert_eq!(answers(&board), well);
    assert_eq!(board.scratch.read(".bkit"), "in the way");
}

#[test]
fn case_20_an_empty_object_and_no_json_at_all_fall_back() {
    for input in ["{}", "", "not json", "[1, 2]", "\u{0}"] {
        let board = board();
        let (answer, _) = hook(&board, "subagent-start", input);
        assert_eq!(answer["hookSpecificOutput"]["agentName"], "unknown", "{input:?}");
        let mate = &file(&board)["teammates"][0];
        let shown = (&mate["name"], &mate["model"], &mate["role"], &mate["currentTask"]);
        assert_eq!(shown, (&"unknown".into(), &"sonnet".into(), &"agent".into(), &Value::Null), "{input:?}");
    }
}

/// A whole session, with nobody who reads the file; also outside of any repository, and quick enough for a hook.
#[test]
fn case_21_a_whole_session_works_without_a_reader() {
    let board = board();
    let plain = board.scratch.dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    for event in ["subagent-start", "teammate-idle", "task-completed", "subagent-stop", "stop"] {
        let mut child = board
            .command(&["hook", event])
            .current_dir(&plain)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"{\"agent_id\": \"one\"}").unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let state = checked(&std::fs::read_to_string(plain.join(".bkit/agent-state.json")).unwrap());
    assert_eq!(state["enabled"], false);

    let quickest = (0..5)
        .map(|number| {
            let began = Instant::now();
            start(&board, &format!("mate-{number}"));
            began.elapsed()
        })
        .min()
        .unwrap();
    assert!(quickest < Duration::from_secs(2), "{quickest:?}");
}

/// Whoever died without a last word leaves an old `lastUpdated` and `enabled: true`, which is what readers look for.
#[test]
fn case_22_a_writer_that_died_is_known_by_an_old_date() {
    let board = board();
    start(&board, "one");
    let state = file(&board);
    let updated: jiff::Timestamp = state["lastUpdated"].as_str().unwrap().parse().unwrap();
    assert_eq!(state["enabled"], true);
    let stale = |at: jiff::Timestamp| at.duration_since(updated) > jiff::SignedDuration::from_mins(5);
    assert!(
        !stale(updated + jiff::SignedDuration::from_mins(4)) && stale(updated + jiff::SignedDuration::from_mins(6))
    );
}

#[test]
fn what_hooks_write_is_kept_out_of_git_without_touching_a_tracked_file() {
    let board = board();
    let before = board.scratch.git(["status", "--porcelain"]);
    start(&board, "one");
    assert_eq!(board.scratch.git(["status", "--porcelain"]), before);
    assert_eq!(board.scratch.read(".gitignore"), "*.log\ntarget/\n");
}
