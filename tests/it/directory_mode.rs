//! `workspace.mode: directory`, by the built binary: one lasting directory per ticket, as Symphony has it.

use std::path::PathBuf;

use nix::sys::signal::Signal;

use crate::support::board::{Board, text};
use crate::support::{commit_in, git_in, write_in};

/// A board in directory mode. `hooks` and the agent's script are shell; `$T` in both is a folder that outlives everything.
fn board(agent: &str, hooks: &str) -> Board {
    let board = Board::new("", "");
    let place = board.scratch.dir.path().display().to_string();
    let script = board.scratch.dir.path().join("agent");
    std::fs::write(&script, agent.replace("$T", &place)).unwrap();
    let front = format!(
        "---\ntracker: {{kind: tk}}\npolling: {{interval_ms: 300}}\nworker: {{runtime: exec}}\nexec: {{command: sh {}}}\nagent: {{stop_grace_ms: 500, max_retry_backoff_ms: 200}}\nrollout: {{mode: mutate}}\nworkspace: {{mode: directory, root: {place}/tickets}}\nhooks:\n{}---\n",
        script.display(),
        hooks.replace("$T", &place).replace("$REPO", &board.repo().display().to_string()),
    );
    board.scratch.write("WORKFLOW.md", &front);
    board.scratch.commit("directory mode");
    board
}

fn at(board: &Board, name: &str) -> PathBuf {
    board.scratch.dir.path().join(name)
}

fn lines(board: &Board, name: &str) -> Vec<String> {
    std::fs::read_to_string(at(board, name)).unwrap_or_default().lines().map(|line| line.trim().to_owned()).collect()
}

fn directory(board: &Board) -> PathBuf {
    at(board, "tickets").join("t-1")
}

const CLONE: &str =
    "  after_create: git clone -q $REPO .\n  before_remove: echo \"$DIRIGENT_TICKET_KEY $PWD\" >> $T/removed\n";
const SAYS_DONE: &str = "set -e\ngit config user.email a@b.c\ngit config user.name a\necho x > made\ngit add made\ngit commit -qm work\ngit push -q origin HEAD:refs/heads/made\ntk done 'it is pushed'\n";

#[test]
fn after_create_that_failed_runs_again_in_an_empty_directory_and_no_after_run_follows_it() {
    let board = board(
        "echo run >> $T/runs\ntk blocked 'enough'\n",
        "  after_create: |\n    ls -A | wc -l >> $T/entries\n    touch half\n    test -e $T/second || { touch $T/second; exit 3; }\n  after_run: pwd >> $T/after_run\n",
    );
    board.ticket("t-1", "one");
    let runner = board.start();
    board.until("the agent has run", || board.phase("t-1") == "blocked");
    runner.end();
    assert_eq!(lines(&board, "entries"), ["0", "0"], "each time in an empty directory");
    assert_eq!(lines(&board, "after_run").len(), lines(&board, "runs").len(), "not after what was taken back");
    let told = board.ok(&["explain", "t-1"]);
    assert!(told.contains("after_create"), "{told}");
}

#[test]
fn spec_9_after_create_that_was_interrupted_runs_again_in_an_empty_directory() {
    let board = board(
        "ls -A >> $T/found\ntk blocked 'enough'\n",
        "  after_create: |\n    ls -A | wc -l >> $T/entries\n    touch half\n    test -e $T/second && exit 0\n    touch $T/second\n    sleep 600\n  timeout_ms: 700000\n",
    );
    board.ticket("t-1", "one");
    let mut runner = board.start();
    board.until("the hook is at work", || at(&board, "second").exists());
    runner.signal(Signal::SIGKILL);
    runner.child.wait().unwrap();
    assert!(directory(&board).join("half").exists());
    let runner = board.start();
    board.until("the agent has run", || board.phase("t-1") == "blocked");
    runner.end();
    assert_eq!(lines(&board, "entries"), ["0", "0"]);
    assert_eq!(lines(&board, "found"), ["half"], "what the second one made");
}

#[test]
fn a_hook_before_the_run_that_fails_leaves_the_directory_filled() {
    let board = board(
        "tk blocked 'enough'\n",
        "  after_create: echo made >> $T/created\n  before_run: test -e $T/second || { touch $T/second; exit 3; }\n",
    );
    board.ticket("t-1", "one");
    let runner = board.start();
    board.until("the agent has run", || board.phase("t-1") == "blocked");
    runner.end();
    assert_eq!(lines(&board, "created").len(), 1, "it succeeded once, and that is enough");
}

#[test]
fn spec_9_the_directory_of_a_closed_ticket_goes_with_before_remove() {
    let board = board(SAYS_DONE, CLONE);
    board.ticket("t-1", "one");
    let runner = board.start();
    board.until("it waits for a person", || board.phase("t-1") == "waiting_for_human");
    assert!(directory(&board).join("made").exists(), "it lasts longer than its run");
    assert!(board.ticket_text("t-1").contains("The worker says that the work is done"), "{}", board.ticket_text("t-1"));
    board.ok(&["tk", "close", "t-1"]);
    board.until("the directory is gone", || !directory(&board).exists());
    board.until("it is over", || board.phase("t-1") == "released");
    runner.end();
    assert_eq!(lines(&board, "removed"), [format!("t-1 {}", directory(&board).display())]);
}

#[test]
fn spec_9_a_ticket_that_closed_while_nobody_ran_loses_its_directory_at_the_start() {
    let board = board(SAYS_DONE, CLONE);
    board.ticket("t-1", "one");
    let runner = board.start();
    board.until("it waits for a person", || board.phase("t-1") == "waiting_for_human");
    runner.end();
    board.ok(&["tk", "close", "t-1"]);
    assert!(directory(&board).exists());
    board.ok(&["run", "--once", "--plain"]);
    assert!(!directory(&board).exists());
    assert_eq!(lines(&board, "removed").len(), 1);
}

#[test]
fn a_directory_with_unsaved_work_is_kept_and_said_until_it_is_saved() {
    let board = board(SAYS_DONE, CLONE);
    board.ticket("t-1", "one");
    let runner = board.start();
    board.until("it waits for a person", || board.phase("t-1") == "waiting_for_human");
    write_in(&directory(&board), "note", "not committed");
    board.ok(&["tk", "close", "t-1"]);
    board.until("it is said on the ticket", || board.ticket_text("t-1").contains("its directory is kept"));
    assert!(directory(&board).join("note").exists() && lines(&board, "removed").is_empty());
    let told = board.ok(&["explain", "t-1"]);
    assert!(told.contains("uncommitted work (note)"), "{told}");
    runner.end();
    // Committed and not pushed: another reason, said as well.
    commit_in(&directory(&board), "the note");
    board.ok(&["run", "--once", "--plain"]);
    assert!(board.ticket_text("t-1").contains("not pushed"), "{}", board.ticket_text("t-1"));
    git_in(&directory(&board), ["push", "-q", "origin", "HEAD:refs/heads/saved"]);
    board.ok(&["run", "--once", "--plain"]);
    assert!(!directory(&board).exists());
    let comments = board.ticket_text("t-1").matches("its directory is kept").count();
    assert_eq!(comments, 2, "once per reason");
}

#[test]
fn nothing_is_claimed_about_commits_that_are_not_there() {
    let board = board("echo nothing > left\n", "  after_create: git clone -q $REPO .\n");
    board.ticket("t-1", "one");
    let runner = board.start();
    board.until("it is over", || board.phase("t-1") == "blocked");
    runner.end();
    let told = board.ok(&["explain", "t-1"]);
    assert!(told.contains("(0 ahead)") && !told.contains("(1 ahead)"), "{told}");
}

#[test]
fn whoever_says_done_and_has_committed_nothing_is_contradicted() {
    let board = board("tk done 'all fine'\n", "  after_create: git clone -q $REPO .\n");
    board.ticket("t-1", "one");
    let runner = board.start();
    board.until("it is sent back", || board.ticket_text("t-1").contains("no commit beyond the base"));
    runner.end();
}

#[test]
fn what_needs_a_worktree_is_said_to_be_without_effect() {
    let board = board("true\n", "  after_create: git clone -q $REPO .\n");
    let file = std::fs::read_to_string(board.repo().join("WORKFLOW.md")).unwrap();
    let more = "gates: {task: [make]}\npr: {forge: local, auto_create: true}\nmerge: {mode: auto, method: squash}\n";
    let file = file.replace("mode: directory,", "mode: directory, keep: always, base: main, branch_prefix: x/,");
    board.scratch.write("WORKFLOW.md", &file.replacen("---\ntracker", &format!("---\n{more}tracker"), 1));
    let output = board.run(&["doctor"]);
    let said = text(&output.stdout) + &text(&output.stderr);
    for key in [
        "gates.task",
        "pr.forge",
        "pr.auto_create",
        "merge.mode",
        "merge.method",
        "workspace.keep",
        "workspace.base",
        "workspace.branch_prefix",
    ] {
        assert!(said.contains(&format!("`{key}` is not in force")), "{key}: {said}");
    }
}
