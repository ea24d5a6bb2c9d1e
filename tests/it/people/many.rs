//! One command for several tickets.

use super::{APPROVED, ASKS, GOOD, text};
use crate::support::board::{Board, MERGE};

fn three(agent: &str, more: &str) -> Board {
    let board = Board::new(agent, more);
    for id in ["t-1", "t-2", "t-3"] {
        board.ticket(id, "Work");
    }
    board.run(&["run", "--once"]);
    board
}

#[test]
fn several_tickets_are_approved_and_each_is_told() {
    let board = three(GOOD, APPROVED);
    let said = board.ok(&["approve", "t-1", "t-2"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.contains("t-1") && said.contains("t-2"), "{said}");
    let said = board.ok(&["approve", "--all"]);
    assert!(said.contains("t-3"), "{said}");
    board.run(&["run", "--once"]);
    for id in ["t-1", "t-2", "t-3"] {
        assert_eq!(board.phase(id), "done", "{id}");
    }
    assert!(board.ok(&["approve", "--all"]).contains("no ticket is like that"));
}

#[test]
fn blocked_tickets_are_retried_by_phase_and_by_cause() {
    let board = three(ASKS, MERGE);
    let reason = board.status(&["t-1"])["reason"].as_str().unwrap().to_owned();
    let none = board.ok(&["retry", "--cause", "something_else"]);
    assert!(none.contains("no ticket is like that"), "{none}");
    let said = board.ok(&["retry", "--phase", "blocked", "--cause", &reason]);
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(board.status(&[])["jobs"].as_array().unwrap().iter().all(|job| job["phase"] == "queued"));
    let wrong = board.fails(&["retry", "--phase", "blokked"], 2);
    assert!(wrong.contains("there is no phase `blokked`; there is queued, "), "{wrong}");
    assert!(board.fails(&["retry"], 2).contains("name a ticket, or say --all"));
    for command in ["retry", "approve", "pause", "resume", "stop"] {
        for mixed in [&["--all"][..], &["--phase", "blocked"], &["--cause", "x"]] {
            let said = board.fails(&[&[command, "t-1"], mixed].concat(), 2);
            assert!(said.contains("not both"), "{command}: {said}");
        }
    }
}

#[test]
fn what_was_not_done_is_told_and_the_rest_is_done() {
    let board = three(ASKS, MERGE);
    let output = board.run(&["pause", "t-1", "nobody", "t-3"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(err.contains("nobody: no ticket `nobody` is known here") && err.contains("not done for 1 of 3"), "{err}");
    let switches = board.status(&[])["switches"].as_array().unwrap().len();
    assert_eq!(switches, 2);
    board.ok(&["resume", "--all"]);
    assert_eq!(board.status(&[])["switches"], serde_json::json!([]));
}

#[test]
fn several_are_rejected_with_the_same_words() {
    let board = three(GOOD, APPROVED);
    board.ok(&["reject", "t-1", "t-2", "-m", "use another name"]);
    board.ok(&["reject", "--all", "this", "too"]);
    for (id, words) in [("t-1", "use another name"), ("t-2", "use another name"), ("t-3", "this too")] {
        let story = board.ok(&["explain", id]);
        assert!(story.contains(words), "{id}: {words} is not in\n{story}");
    }
    assert!(board.fails(&["reject", "t-1"], 2).contains("say what has to change"));
    assert!(board.fails(&["approve", "t-1", "t-2", "--head", "abc"], 2).contains("--head names one commit"));
}
