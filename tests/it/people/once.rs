//! A script tells by exit code what `run --once` and `run --until-idle` came to.

use std::time::{Duration, Instant};

use super::{APPROVED, ASKS, GOOD, text};
use crate::support::board::{Board, MERGE, MUTATE};

fn code(board: &Board, args: &[&str]) -> (Option<i32>, String) {
    let output = board.run(args);
    (output.status.code(), text(&output.stderr))
}

#[test]
fn zero_is_for_tickets_that_got_as_far_as_they_can_by_themselves() {
    let merged = Board::new(GOOD, MERGE);
    merged.ticket("t-1", "One");
    assert_eq!(code(&merged, &["run", "--once"]).0, Some(0));
    let waiting = Board::new(GOOD, APPROVED);
    waiting.ticket("t-1", "One");
    assert_eq!(code(&waiting, &["run", "--once"]).0, Some(0));
    assert_eq!(waiting.phase("t-1"), "waiting_for_human");
    let empty = Board::new(GOOD, MERGE);
    assert_eq!(code(&empty, &["run", "--once"]).0, Some(0));
}

#[test]
fn ten_is_for_blocked_and_failed_tickets() {
    let board = Board::new(ASKS, MERGE);
    board.ticket("t-1", "One");
    let (code, said) = code(&board, &["run", "--once"]);
    assert_eq!(code, Some(10), "{said}");
    assert!(said.contains("1 ticket is blocked or failed") && said.contains("dirigent explain t-1"), "{said}");
}

#[test]
fn eleven_is_for_a_switch_and_twelve_for_observing() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    board.scratch.write(".dirigent/pause", "");
    let (stopped, said) = code(&board, &["run", "--once"]);
    assert_eq!(stopped, Some(11), "{said}");
    assert!(said.contains("everything is stopped"), "{said}");
    std::fs::remove_file(board.repo().join(".dirigent/pause")).unwrap();
    board.workflow("rollout: {mode: observe}\npr: {forge: local}\n");
    let (observed, said) = code(&board, &["run", "--once"]);
    assert_eq!(observed, Some(12), "{said}");
    assert!(said.contains("1 ticket would start"), "{said}");
}

#[test]
fn once_does_not_sit_through_back_off_and_until_idle_does() {
    // Fails the first time, works the second time.
    let agent = format!("if [ ! -e ../../../failed ]; then touch ../../../failed; exit 3; fi\n{GOOD}");
    let board = Board::new(&agent, MERGE);
    board.ticket("t-1", "One");
    let began = Instant::now();
    let (first, said) =
        code(&board, &["run", "--until-idle", "--no-retry", "--set", "agent.max_retry_backoff_ms=20000"]);
    assert_eq!(first, Some(10), "{said}");
    assert_eq!(board.status(&["t-1"])["reason"], "retry");
    assert!(began.elapsed() < Duration::from_secs(60));
    let (second, said) = code(&board, &["run", "--until-idle", "--set", "agent.max_retry_backoff_ms=20000"]);
    assert_eq!((second, board.phase("t-1").as_str()), (Some(0), "done"), "{said}");
}

#[test]
fn thirteen_is_for_a_time_that_is_over_and_the_work_is_saved() {
    let board = Board::new("echo unsaved > file.txt\ntk comment 'I am at it'\nwhile :; do sleep 1; done\n", MUTATE);
    board.ticket("t-1", "One");
    let (code, said) = code(&board, &["run", "--until-idle", "--timeout", "4s"]);
    assert_eq!(code, Some(13), "{said}");
    assert!(said.contains("the time of --timeout is over; 1 ticket is not finished"), "{said}");
    if board.ticket_text("t-1").contains("I am at it") {
        assert!(board.ok(&["salvage", "list"]).contains("t-1"));
    }
    assert!(board.worker_processes().is_empty());
}

#[test]
fn options_that_mean_nothing_together_are_refused() {
    let board = Board::new(GOOD, MERGE);
    for args in [&["run", "--no-retry"][..], &["run", "--once", "--until-idle"], &["run", "-q", "-v"]] {
        board.fails(args, 2);
    }
}
