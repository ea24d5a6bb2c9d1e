//! Small things that a person trips over.

use std::process::Stdio;

use super::{GOOD, text};
use crate::support::board::{Board, MERGE};

#[test]
fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let board = Board::new(GOOD, MERGE);
    (0..200).for_each(|number| board.ticket(&format!("t-{number}"), &"long ".repeat(20)));
    for args in [
        &["status"][..],
        &["config", "schema"],
        &["completion", "bash"],
        &["--help"],
        &["tk", "list"],
        &["config", "show"],
    ] {
        let mut child = board.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
}

#[test]
fn resume_under_a_pause_file_says_what_still_pauses_and_fails() {
    let board = Board::new(GOOD, MERGE);
    board.ok(&["pause"]);
    board.scratch.write(".dirigent/pause", "");
    let said = board.fails(&["resume"], 1);
    assert!(said.contains(".dirigent/pause is still there and stops everything"), "{said}");
    std::fs::remove_file(board.repo().join(".dirigent/pause")).unwrap();
    board.ok(&["pause"]);
    board.ok(&["resume"]);
}

#[test]
fn doctor_finds_scripts_that_no_worktree_will_have() {
    let board = Board::new(GOOD, &format!("{MERGE}gates: {{task: [{{run: ./check.sh}}]}}\n"));
    board.scratch.write("check.sh", "#!/bin/sh\n");
    let output = board.run(&["doctor"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("`./check.sh` of gate") && said.contains("is not in the base commit (main)"), "{said}");
    board.scratch.commit("the check");
    assert!(!board.ok(&["doctor"]).contains("is not in the base commit"));
}

#[test]
fn a_module_that_python_runs_is_no_script() {
    let gates = "gates: {task: [{run: python3 -m pkg.module}, {run: bash -lc ./check.sh}]}\n";
    let board = Board::new(GOOD, &format!("{MERGE}{gates}"));
    let said = board.ok(&["doctor"]);
    assert!(!said.contains("is not in the base commit"), "{said}");
}

#[test]
fn a_command_with_a_way_of_its_own_is_carried_out_also_after_global_options() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    assert_eq!(board.ok(&["--color", "never", "tk", "ls"]), board.ok(&["tk", "ls"]));
    assert_eq!(
        board.fails(&["--color", "never", "tk", "show", "nobody"], 1),
        board.fails(&["tk", "show", "nobody"], 1)
    );
    for option in [&["--workflow", "WORKFLOW.md"][..], &["--set", "rollout.mode=merge"]] {
        let said = board.fails(&[option, &["tk", "ls"]].concat(), 2);
        assert!(said.contains(&format!("{} has no effect on `dirigent tk`", option[0])), "{said}");
    }
    let answer = board.ok(&["hook", "stop"]);
    assert!(answer.starts_with('{'), "{answer}");
    assert_eq!(board.ok(&["--workflow", "WORKFLOW.md", "hook", "stop"]), answer);
    assert_eq!(board.ok(&["--set", "nonsense", "hook", "stop"]), answer, "a hook never fails");
    let said = board.fails(&["--color", "never", "desk-mcp", "--read-only"], 1);
    assert!(said.contains("it is started by a worker's agent"), "{said}");
    board.fails(&["desk-mcp", "--read-onyl"], 2);
    assert!(board.fails(&["desk-mcp", "--api=nothing"], 2).contains("no tracker has an API tool named `nothing`"));
}

#[test]
fn without_a_runner_a_day_is_as_long_as_with_one() {
    const HOUR: i64 = 3_600_000;
    let board = Board::new(GOOD, MERGE);
    for (zone, midnight) in [("UTC0", 0), ("<+05>-5", 19 * HOUR), ("<-08>8", 8 * HOUR)] {
        let output = board.command(&["status", "--json"]).env("TZ", zone).output().unwrap();
        let picture: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let ends = picture["totals"]["day_ends_at"].as_i64().unwrap();
        assert_eq!(ends.rem_euclid(24 * HOUR), midnight, "{zone}");
    }
}

#[test]
fn status_after_a_shutdown_does_not_say_that_one_is_under_way() {
    let board = Board::new("sleep 1000\n", MERGE);
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it works", || board.phase("t-1") == "implementing");
    runner.end();
    let shown = board.ok(&["status"]);
    assert!(!shown.contains("shutting down"), "{shown}");
}

#[test]
fn what_lies_in_dirigents_own_folders_is_not_seen_by_git() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    board.run(&["run", "--once"]);
    board.scratch.write(".dirigent/pause", "");
    board.scratch.write(".dirigent/templates/prompt.md", "ours\n");
    let seen = board.scratch.git(["status", "--porcelain", "--untracked-files=all"]);
    assert!(!seen.contains(".bkit") && !seen.contains("pause"), "{seen}");
    assert!(seen.contains(".dirigent/templates/prompt.md"), "templates are the team's own: {seen}");
}

#[test]
fn a_ticket_without_title_and_text_is_warned_about_and_left_alone() {
    let board = Board::new(GOOD, MERGE);
    let output = board.run(&["tk", "create"]);
    let (id, said) = (text(&output.stdout).trim().to_owned(), text(&output.stderr));
    assert!(output.status.success() && said.contains(&format!("warning: {id} has no title")), "{said}");
    board.run(&["run", "--once"]);
    assert_eq!(board.status(&[&id])["attempts"], 0);
    assert!(board.ok(&["explain", &id]).contains("neither a title nor a description"));
    board.ok(&["tk", "create", "-d", "Paint the door"]);
    board.run(&["run", "--once"]);
    assert_eq!(board.status(&[])["counts"]["done"], 1);
}

#[test]
fn a_priority_that_does_not_exist_and_a_misspelt_command_are_told() {
    let board = Board::new(GOOD, MERGE);
    assert!(board.fails(&["tk", "create", "x", "-p", "9"], 1).contains("the priority is 0 to 4, not '9'"));
    let said = board.fails(&["tk", "crate", "x"], 1);
    assert!(said.starts_with("Unknown command: crate\nDid you mean 'create'?\n"), "{said}");
    assert!(!board.fails(&["tk", "frobnicate"], 1).contains("Did you mean"));
}

#[test]
fn what_is_stale_is_collected_at_the_start_and_told_in_one_line() {
    let board = Board::new(GOOD, &format!("{MERGE}workspace: {{keep: always}}\n"));
    board.ticket("t-1", "One");
    board.run(&["run", "--once"]);
    assert_eq!(board.worktrees().len(), 1, "it was kept");
    let young = board.run(&["run", "--once", "--plain"]);
    assert!(!text(&young.stderr).contains("collected from before"));
    let root = std::fs::read_dir(board.home().join("workspaces")).unwrap().next().unwrap().unwrap().path();
    for record in std::fs::read_dir(root.join(".records")).unwrap().flatten() {
        let mut facts: serde_json::Value = serde_json::from_slice(&std::fs::read(record.path()).unwrap()).unwrap();
        facts["made_at"] = 0.into();
        std::fs::write(record.path(), facts.to_string()).unwrap();
    }
    let old = text(&board.run(&["run", "--once", "--plain"]).stderr);
    assert_eq!(old.matches("collected from before: 1 worktree").count(), 1, "{old}");
    assert!(board.worktrees().is_empty());
}

#[test]
fn a_repository_that_moved_keeps_its_state_and_a_copy_has_none() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    board.run(&["run", "--once"]);
    let (here, there) = (board.repo(), board.scratch.dir.path().join("elsewhere"));
    let attempts = |folder: &std::path::Path| {
        let output = board.command(&["status", "t-1", "--field", "attempts"]).current_dir(folder).output().unwrap();
        text(&output.stdout).trim().to_owned()
    };
    assert_eq!(attempts(&here), "1");
    let copied = std::process::Command::new("cp").arg("-r").arg(&here).arg(&there).status().unwrap();
    assert!(copied.success());
    assert_eq!((attempts(&here).as_str(), attempts(&there).as_str()), ("1", ""), "a closed ticket without a past");
    std::fs::remove_dir_all(&there).unwrap();
    std::fs::rename(&here, &there).unwrap();
    assert_eq!(attempts(&there), "1");
    board.command(&["run", "--once"]).current_dir(&there).output().unwrap();
    assert_eq!(attempts(&there), "1");
}

#[test]
fn an_agent_that_removes_its_own_worktree_is_told_as_that() {
    let board = Board::new("here=$PWD\ncd /\nrm -rf \"$here\"\n", MERGE);
    board.ticket("t-1", "One");
    board.run(&["run", "--once"]);
    let story = board.ok(&["explain", "t-1"]);
    assert!(story.contains("the agent removed its own worktree"), "{story}");
}

#[test]
fn an_undone_merge_shows_in_status() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    board.run(&["run", "--once"]);
    assert!(!board.ok(&["status", "t-1"]).contains("taken back"));
    board.ok(&["undo", "t-1"]);
    let shown = board.ok(&["status", "t-1"]);
    assert!(shown.contains("taken back    on branch dirigent/undo-t-1"), "{shown}");
}
