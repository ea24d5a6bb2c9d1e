//! A ticket is known as soon as it is on the board, whether or not a run has seen it.

use super::GOOD;
use crate::support::board::{Board, MERGE};

#[test]
fn a_ticket_is_shown_and_paused_before_any_run_saw_it() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Not yet");
    board.ticket("t-2", "Go on");
    assert!(board.ok(&["status"]).contains("Not yet"));
    assert_eq!(board.phase("t-1"), "queued");
    assert!(board.ok(&["explain", "t-1"]).contains("Not yet"));
    board.ok(&["pause", "t-1"]);
    board.run(&["run", "--once"]);
    assert_eq!((board.phase("t-1").as_str(), board.phase("t-2").as_str()), ("queued", "done"));
    assert_eq!(board.status(&["t-1"])["attempts"], 0);
    board.ok(&["resume", "t-1"]);
    board.run(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
}

#[test]
fn looking_writes_nothing_down() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    board.ok(&["status"]);
    std::fs::remove_file(board.ticket_path("t-1")).unwrap();
    assert!(!board.ok(&["status"]).contains("t-1"));
}

#[test]
fn a_message_to_nobody_is_told_as_that() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    assert!(board.fails(&["message", "nobody", "hello"], 6).contains("no ticket `nobody`"));
    assert!(board.fails(&["message", "t-1", "hello"], 5).contains("no runner is up"));
}

#[test]
fn a_running_instance_knows_a_ticket_that_was_made_a_moment_ago() {
    let board = Board::new("sleep 1000\n", "rollout: {mode: observe}\n");
    let runner = board.start();
    board.until("it is up", || board.ok(&["status"]).starts_with("runner up"));
    board.ticket("t-9", "Fresh");
    let said = board.ok(&["pause", "t-9"]);
    assert!(said.contains("t-9"), "{said}");
    runner.end();
}
