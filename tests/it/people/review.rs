//! A person's review at the terminal.

use super::{APPROVED, ASKS, GOOD, settled, text};
use crate::support::board::Board;

fn reviewed() -> Board {
    let board = Board::new(GOOD, APPROVED);
    board.ticket("t-1", "Write something");
    board.run(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "waiting_for_human");
    board
}

#[test]
fn the_diff_of_a_ticket_is_shown_with_what_to_type_next() {
    let board = reviewed();
    let output = board.run(&["diff", "t-1"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("+++ b/t-1.txt") && out.contains("+work"), "{out}");
    let head = board.status(&["t-1"])["head"].as_str().unwrap().to_owned();
    assert!(err.contains(&format!("dirigent approve t-1 --head {head}")), "{err}");
    insta::assert_snapshot!("diff_footer", settled(&err));
    let stat = board.ok(&["diff", "t-1", "--stat"]);
    assert!(stat.contains("t-1.txt | 1 +") && !stat.contains("+work"), "{stat}");
    // The very command that was offered works.
    board.ok(&["approve", "t-1", "--head", &head]);
    board.run(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    assert!(board.ok(&["diff", "t-1"]).contains("+work"), "also after the merge");
}

#[test]
fn a_head_is_tried_out_in_a_tree_that_no_runner_takes_and_gc_removes() {
    let board = reviewed();
    let path = board.ok(&["try", "t-1"]).trim().to_owned();
    assert_eq!(std::fs::read_to_string(format!("{path}/t-1.txt")).unwrap(), "work\n");
    assert_eq!(board.ok(&["try", "t-1"]).trim(), path, "the same head is the same tree");
    std::fs::write(format!("{path}/mine.txt"), "of a person\n").unwrap();
    board.run(&["run", "--once"]);
    assert!(std::path::Path::new(&path).join("mine.txt").exists(), "a runner leaves it alone");
    let kept = board.ok(&["gc", "--dry-run"]);
    assert!(kept.contains("kept: it is not old enough"), "{kept}");
    let gone = board.ok(&["gc", "--max-age", "0s"]);
    assert!(gone.contains("removed"), "{gone}");
    assert!(!std::path::Path::new(&path).exists());
    let listed = board.ok(&["salvage", "list", "--json"]);
    let saved: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let run = saved[0]["run"].as_str().unwrap();
    assert!(run.starts_with("try-t-1-"), "{listed}");
    // By its id, and by the ticket's key.
    for name in [run, "t-1"] {
        assert!(board.ok(&["salvage", "show", name]).contains("of a person"), "{name}");
    }
    assert!(board.ok(&["salvage", "restore", run]).contains("is on branch salvage/try-t-1-"));
}

#[test]
fn what_waits_for_a_person_stands_first_and_the_footer_names_the_command() {
    let board = Board::new(&format!("if [ \"$DIRIGENT_TICKET_KEY\" = t-2 ]; then {ASKS} exit 0; fi\n{GOOD}"), APPROVED);
    for (id, title) in [("t-1", "Done by one"), ("t-2", "Asks back"), ("t-3", "Waits too")] {
        board.ticket(id, title);
    }
    board.run(&["run", "--once"]);
    let shown = board.ok(&["status"]);
    insta::assert_snapshot!("status_that_waits", settled(&shown));
    assert!(shown.contains("2 tickets wait for you: dirigent diff t-1, then dirigent approve t-1"), "{shown}");
    let (waits, blocked) = (shown.find("t-3").unwrap(), shown.find("t-2").unwrap());
    assert!(waits < blocked, "{shown}");
}

#[test]
fn a_ticket_without_a_commit_has_nothing_to_look_at() {
    let board = Board::new(ASKS, APPROVED);
    board.ticket("t-1", "One");
    for command in ["diff", "try"] {
        let said = board.fails(&[command, "t-1"], 6);
        assert!(said.contains("t-1 has no commit to look at yet"), "{said}");
    }
}

/// Both tickets write the same line, and no agent can reconcile them.
#[test]
fn a_conflict_that_a_person_solved_on_the_branch_is_judged_without_a_word() {
    let agent = "set -eu
if [ \"$DIRIGENT_PHASE\" = rework ]; then git commit -q --allow-empty -m 'no idea'
else echo \"$DIRIGENT_TICKET_KEY\" > shared.txt; git add -A; git commit -qm change; fi
tk done x
";
    let board = Board::new(agent, &format!("{APPROVED}orchestration: {{max_rework_cycles: 1}}\n"));
    board.ticket("t-1", "One");
    board.ticket("t-2", "Two");
    board.run(&["run", "--once"]);
    board.ok(&["approve", "t-1"]);
    board.run(&["run", "--once"]);
    assert_eq!((board.phase("t-1").as_str(), board.phase("t-2").as_str()), ("done", "blocked"));
    assert_eq!(board.status(&["t-2"])["reason"], "rework_limit_exceeded");

    let branch = board.status(&["t-2"])["branch"].as_str().unwrap().to_owned();
    board.scratch.git(["checkout", "-q", &branch]);
    board.scratch.git(["merge", "-q", "-s", "ours", "-m", "Both of them", "main"]);
    board.scratch.git(["checkout", "-q", "main"]);
    let attempts = board.status(&["t-2"])["attempts"].clone();
    board.run(&["run", "--once"]);
    assert_eq!(board.phase("t-2"), "waiting_for_human", "{}", board.ok(&["explain", "t-2"]));
    assert_eq!(board.status(&["t-2"])["attempts"], attempts, "no agent was paid for it");
    board.ok(&["approve", "t-2"]);
    board.run(&["run", "--once"]);
    assert_eq!(board.phase("t-2"), "done");
}
