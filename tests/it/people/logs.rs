//! What a run says: one short line per event for people, fields for programs, everything in a file.

use super::{ASKS, GOOD, settled, text};
use crate::support::board::{Board, MERGE};

fn said(args: &[&str]) -> (String, Board) {
    let board = Board::new(&format!("if [ \"$DIRIGENT_TICKET_KEY\" = t-2 ]; then {ASKS} exit 0; fi\n{GOOD}"), MERGE);
    board.ticket("t-1", "One");
    board.ticket_with("t-2", "Two", "");
    let mut all = vec!["run", "--once", "--plain"];
    all.extend(args);
    (text(&board.run(&all).stderr), board)
}

fn log_file(board: &Board) -> String {
    let folder = std::fs::read_dir(board.home().join("repos")).unwrap().next().unwrap().unwrap().path();
    std::fs::read_to_string(folder.join("dirigent.log")).unwrap()
}

#[test]
fn lines_are_short_and_without_fields_and_the_file_has_them() {
    let (log, board) = said(&[]);
    assert!(!log.contains("issue_id") && !log.contains("INFO") && !log.contains("\u{1b}["), "{log}");
    let moved = log.lines().find(|line| line.ends_with("t-1  queued → implementing"));
    assert!(moved.is_some(), "{log}");
    let mut of_one: Vec<&str> = log.lines().filter(|line| line.contains(" t-2  ")).collect();
    of_one.retain(|line| line.contains(" → "));
    insta::assert_snapshot!("log_of_a_blocked_ticket", settled(&of_one.join("\n")));
    let file = log_file(&board);
    for field in ["issue_id=\"t-1\"", "issue_identifier=\"t-1\"", "run_id=", "session_id="] {
        assert!(file.contains(field), "{field} is not in\n{file}");
    }
}

#[test]
fn the_end_of_a_long_transcript_is_shown_also_after_a_crash() {
    let (_, board) = said(&[]);
    let folder = std::fs::read_dir(board.home().join("repos")).unwrap().next().unwrap().unwrap().path();
    let run = std::fs::read_dir(folder.join("runs")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    for (which, line) in [(".end-a", "1000 out in the middle\n"), (".end-b", "2000 out at the very end\n")] {
        std::fs::write(run.join(format!("transcript.log{which}")), line).unwrap();
    }
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    for args in [&["logs", &name][..], &["logs", "-f", &name]] {
        let shown = board.ok(args);
        let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words} is not in\n{shown}"));
        assert!(place("left out here") < place("in the middle") && place("in the middle") < place("at the very end"));
    }
}

#[test]
fn quiet_says_what_is_wrong_and_verbose_says_more() {
    let (quiet, board) = said(&["-q"]);
    assert!(!quiet.contains("queued → implementing"), "{quiet}");
    assert!(log_file(&board).contains("queued → implementing"), "the file has it all the same");
    let (verbose, _) = said(&["-v"]);
    assert!(verbose.contains("queued → implementing"));
}

#[test]
fn the_command_line_chooses_the_format_over_the_file() {
    let (json, _) = said(&["--log", "json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(first["fields"]["message"].is_string(), "{json}");
    let (full, _) = said(&["--log", "full"]);
    assert!(full.contains("issue_identifier=\"t-1\""), "{full}");
}

#[test]
fn colour_comes_when_asked_for_and_goes_when_not_wanted() {
    let (always, _) = said(&["--color", "always"]);
    assert!(always.contains("\u{1b}["), "{always}");
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    let output = board.command(&["run", "--once", "--plain"]).env("NO_COLOR", "1").output().unwrap();
    assert!(!text(&output.stderr).contains("\u{1b}["));
}
