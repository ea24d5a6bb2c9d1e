//! What people read: the answers of the commands over one board, the ticket as it ends up, help, and what is said to a mistake.
//! Kept as snapshots, so that a change of words is seen in review.

use super::{APPROVED, settled, text};
use crate::support::board::Board;

/// Does t-1, asks about t-2, leaves t-3 half done.
const AGENT: &str = "set -eu
case \"$DIRIGENT_TICKET_KEY\" in
t-2) tk blocked 'Which colour?' ;;
t-3) echo half > half.txt; tk failed 'the tool is not there' ;;
*) echo work > \"$DIRIGENT_TICKET_KEY.txt\"; git add -A; git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
   tk comment 'I looked at the door first'; tk done 'The door is painted' ;;
esac
";

fn played() -> Board {
    let board = Board::new(AGENT, &format!("{APPROVED}gates: {{task: [{{name: check, run: 'true'}}]}}\n"));
    for (id, title) in [("t-1", "Paint the door"), ("t-2", "Paint the wall"), ("t-3", "Paint the fence")] {
        board.ticket(id, title);
    }
    board.run(&["run", "--once", "--plain", "-q", "--no-retry"]);
    board
}

/// What the command says on both streams, and its exit code unless all went well.
fn said(board: &Board, args: &[&str]) -> String {
    let output = board.run(args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code().unwrap_or(-1);
    let code = if code == 0 { String::new() } else { format!("(exit code {code})\n") };
    let place = board.scratch.dir.path().display().to_string();
    settled(&format!("$ dirigent {}\n{out}{err}{code}", args.join(" ")).replace(&place, "PLACE"))
}

fn all_said(board: &Board, commands: &[&[&str]]) -> String {
    commands.iter().map(|args| said(board, args)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_board_and_its_tickets_in_words() {
    let board = played();
    insta::assert_snapshot!("story_status", all_said(&board, &[&["status"], &["status", "t-1"], &["status", "t-2"]]));
    insta::assert_snapshot!("story_explain", all_said(&board, &[&["explain", "t-1"], &["explain", "t-3"]]));
    insta::assert_snapshot!(
        "story_answers",
        all_said(
            &board,
            &[
                &["diff", "t-1", "--stat"],
                &["pause", "t-1"],
                &["status"],
                &["resume", "t-1"],
                &["reject", "t-2", "-m", "blue"],
                &["approve", "t-1"],
                &["approve", "t-1"],
                &["retry", "t-3"],
                &["pause"],
                &["run", "--once", "-q"],
                &["resume"],
                &["salvage", "list"],
                &["gc", "--dry-run"],
                &["stop"],
            ],
        )
    );
    board.run(&["run", "--once", "--plain", "-q"]);
    insta::assert_snapshot!("story_ticket", settled(&board.ticket_text("t-1")));
    insta::assert_snapshot!(
        "story_end",
        all_said(&board, &[&["receipt", "verify", "main"], &["undo", "t-1"], &["tk", "list"], &["tk", "show", "t-2"]])
    );
}

/// Whether our comment on the ticket may be written again is a matter of time, and does not change the answer.
#[test]
fn an_answer_does_not_depend_on_when_the_ticket_was_written_to_last() {
    for interval in [1, 3_600_000] {
        let board = Board::new(AGENT, &format!("{APPROVED}orchestration: {{comment_min_interval_ms: {interval}}}\n"));
        board.ticket("t-2", "Paint the wall");
        board.run(&["run", "--once", "--plain", "-q", "--no-retry"]);
        let answer = board.ok(&["retry", "t-2"]);
        assert_eq!(answer, "starts again; written down (no runner is up)\n", "every {interval} ms");
    }
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let board = played();
    let mut told = all_said(
        &board,
        &[
            &["statsu"],
            &["status", "nobody"],
            &["status", "t"],
            &["status", "--field", "counts.runing"],
            &["message", "t-1", "hello"],
            &["approve"],
            &["approve", "t-1", "--head", "0000000"],
            &["retry", "--phase", "blokked"],
            &["reject", "t-1"],
            &["logs", "nobody"],
            &["diff", "t-2"],
            &["salvage", "show", "nothing"],
            &["run", "--no-retry"],
            &["top"],
            &["tk", "crate", "x"],
            &["tk", "show", "nobody"],
            &["tk", "create", "x", "-p", "9"],
            &["--set", "rollout.mod=merge", "status"],
        ],
    );
    board.workflow("rolout: {mode: merge}\nrollout: {mode: mutat}\n");
    told.push_str(&all_said(&board, &[&["status"], &["run"]]));
    std::fs::remove_file(board.repo().join("WORKFLOW.md")).unwrap();
    told.push_str(&all_said(&board, &[&["run"], &["status"]]));
    insta::assert_snapshot!("mistakes", told);
}

#[test]
fn the_help_of_every_command() {
    let board = Board::new("", APPROVED);
    let whole = text(&board.run(&["--help"]).stdout);
    let commands = whole.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<String> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| !["help", "tk"].contains(&name.as_str()))
        .collect();
    assert!(names.len() > 25, "{names:?}");
    let mut told = format!("{whole}\n");
    for name in &names {
        told.push_str(&format!("==== {name}\n{}\n", text(&board.run(&[name, "--help"]).stdout)));
    }
    told.push_str(&format!("==== tk\n{}", text(&board.run(&["tk", "help"]).stdout)));
    insta::assert_snapshot!("help", told);
}
