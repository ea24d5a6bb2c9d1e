//! The built binary does what its users were promised, seen from outside: git, tickets, processes, worktrees.

use nix::sys::signal::Signal;

use super::support::board::{Board, MERGE, MUTATE, exists};

/// Commits a file named after the ticket and says done.
const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

/// Dirties its tree, leaves a detached grandchild, says that it is there, and then works for ever.
const ENDLESS: &str = "set -u
echo unsaved > \"$DIRIGENT_TICKET_KEY.txt\"
(setsid sh -c 'sleep 100000' >/dev/null 2>&1 &)
tk comment 'I am at it'
while :; do echo alive; sleep 1; done
";

fn at_it(board: &Board, id: &str) -> bool {
    board.ticket_text(id).contains("I am at it")
}

#[test]
fn a_ticket_becomes_a_branch_a_note_and_no_worktree() {
    let board = Board::new(GOOD, MUTATE);
    std::fs::remove_file(board.repo().join("WORKFLOW.md")).unwrap();
    board.ok(&["init", "--agent", "sh ./agent.sh"]);
    let again = board.fails(&["init"], 1);
    assert!(again.contains("is there already and stays as it is"), "{again}");
    let doctor = board.ok(&["doctor"]);
    assert!(doctor.contains("ready, with 2 warnings: start with"), "{doctor}");
    let id = board.ok(&["tk", "create", "Write something"]).trim().to_owned();
    board.ok(&["run", "--once"]);

    let branches = board.scratch.git(["branch", "--list", "dirigent/*", "--format=%(refname:short)"]);
    assert_eq!(branches.lines().count(), 1, "{branches}");
    assert!(board.ticket_text(&id).contains("Pull request #1 is open"), "{}", board.ticket_text(&id));
    assert!(board.worktrees().is_empty());
    let story = board.ok(&["explain", &id]);
    for part in ["came onto the board", "implementing", "waits for approval", "Runs:", &format!("approve {id}")] {
        assert!(story.contains(part), "{part} is not in\n{story}");
    }
    // What `init` wrote merges nothing by itself, and all of it after a word.
    board.ok(&["approve", &id]);
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase(&id), "done");
}

/// What a person sees when nobody runs: the switch that is pulled, a run that was cut off, a ticket that cannot be read.
#[test]
fn without_a_runner_status_and_doctor_still_tell_what_is_so() {
    let board = Board::new(ENDLESS, MUTATE);
    board.ticket("t-1", "One");
    std::fs::write(board.ticket_path("t-2"), "---\nid: [\n").unwrap();
    let runner = board.start();
    board.until("it works", || at_it(&board, "t-1"));
    board.until("the broken file is named", || board.ok(&["status"]).contains("left out: "));
    runner.signal(Signal::SIGKILL);
    drop(runner);
    let pause = board.repo().join(".dirigent/pause");
    std::fs::create_dir_all(pause.parent().unwrap()).unwrap();
    std::fs::write(&pause, "").unwrap();
    // Also from a folder below.
    let below = board.repo().join("deep/down");
    std::fs::create_dir_all(&below).unwrap();
    let status = board.command(&["status"]).current_dir(&below).output().unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    for part in ["no runner up", "1 cut off", "STOPPED: kill-switch file", "cut off when the runner ended"] {
        assert!(status.contains(part), "{part} is not in\n{status}");
    }
    let doctor = board.ok(&["doctor"]);
    assert!(doctor.contains("t-2.md") && doctor.contains("mend or remove the file"), "{doctor}");
    assert!(board.fails(&["approve", "t-1"], 1).contains("no finished work to approve"));
}

#[test]
fn kill_nine_leaves_nothing_that_the_next_start_does_not_settle() {
    let board = Board::new(ENDLESS, MUTATE);
    for id in ["t-1", "t-2", "t-3"] {
        board.ticket(id, &format!("Ticket {id}"));
    }
    let runner = board.start();
    board.until("three workers are at it", || ["t-1", "t-2", "t-3"].iter().all(|id| at_it(&board, id)));
    assert_eq!(board.worktrees().len(), 3);
    runner.signal(Signal::SIGKILL);
    drop(runner);
    board.until("no worker of the old life is left", || board.worker_processes().is_empty());

    // The next life is told to stop at once, so that only the settling of the past is seen.
    std::fs::create_dir_all(board.repo().join(".dirigent")).unwrap();
    std::fs::write(board.repo().join(".dirigent/pause"), "").unwrap();
    board.ok(&["run", "--once"]);
    assert!(board.worktrees().is_empty(), "{:?}", board.worktrees());
    let saved: serde_json::Value = serde_json::from_str(&board.ok(&["salvage", "list", "--json"])).unwrap();
    assert_eq!(saved.as_array().unwrap().len(), 3, "{saved}");
    for entry in saved.as_array().unwrap() {
        let shown = board.ok(&["salvage", "show", entry["run"].as_str().unwrap()]);
        assert!(shown.contains("+unsaved"), "{shown}");
    }
    for id in ["t-1", "t-2", "t-3"] {
        let runs = &board.status(&[id])["attempts"];
        assert_eq!(*runs, 1, "{id} ran again although the switch is on");
        let job: serde_json::Value = serde_json::from_str(&board.ok(&["explain", id, "--json"])).unwrap();
        assert_eq!(job["runs"][0]["report"]["outcome"]["failure"]["kind"], "lost");
    }
    let worktrees = board.scratch.git(["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
}

#[test]
fn the_kill_switch_file_stops_everything_and_its_removal_goes_on() {
    // One worker is at it, one finished ticket waits to be merged behind a dirty file of the user's.
    let agent = format!(
        "if [ \"$DIRIGENT_TICKET_KEY\" = t-merge ]; then\necho theirs > README\ngit add -A\ngit commit -qm change\ntk done x\nexit 0\nfi\n{ENDLESS}"
    );
    let board = Board::new(&agent, MERGE);
    board.scratch.write("README", "the user is writing here\n");
    board.ticket("t-merge", "Change the readme");
    board.ticket("t-long", "Work for long");
    let runner = board.start();
    board.until("the merge waits and the worker works", || {
        board.phase("t-merge") == "ready_to_merge" && at_it(&board, "t-long")
    });
    let why = board.ok(&["status", "t-merge", "--field", "sentence"]);
    assert!(why.contains("README"), "the file in the way is not named: {why}");

    let pause = board.repo().join(".dirigent/pause");
    std::fs::create_dir_all(pause.parent().unwrap()).unwrap();
    std::fs::write(&pause, "").unwrap();
    board.until("no worker lives", || board.worker_processes().is_empty() && board.phase("t-long") == "queued");
    // What was in the way of the merge goes; the merge must not come.
    board.scratch.git(["checkout", "-q", "README"]);
    let before =
        (board.ticket_text("t-merge"), board.ticket_text("t-long"), board.scratch.git(["for-each-ref", "refs/heads"]));
    // Several ticks and retries of the merge later (the runner proves that it is alive by answering).
    for _ in 0..6 {
        board.ok(&["status", "--field", "at"]);
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    let after =
        (board.ticket_text("t-merge"), board.ticket_text("t-long"), board.scratch.git(["for-each-ref", "refs/heads"]));
    assert_eq!(before, after, "something was written under the switch");
    assert!(board.ok(&["status"]).contains("STOPPED: kill-switch file"));
    assert!(board.ok(&["salvage", "list"]).contains("RUN"), "the worker's work was not saved");

    std::fs::remove_file(&pause).unwrap();
    board.until("the merge is done and the work goes on", || {
        board.phase("t-merge") == "done" && board.status(&["t-long"])["attempts"] == 2
    });
    assert_eq!(board.scratch.read("README"), "theirs\n");
    runner.end();
    assert!(board.worker_processes().is_empty());
    assert!(board.worktrees().is_empty());
}

#[test]
fn a_second_runner_leaves_at_once_and_names_the_first() {
    let board = Board::new(ENDLESS, MUTATE);
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("the first works", || at_it(&board, "t-1"));
    let refused = board.fails(&["run", "--plain"], 4);
    assert!(refused.contains(&format!("pid {}", runner.child.id())), "{refused}");
    assert!(refused.contains("started 20"), "{refused}");
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
    runner.end();
}

#[test]
fn pause_resume_stop_and_retry_reach_the_running_instance() {
    let board = Board::new(ENDLESS, MUTATE);
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("it works", || at_it(&board, "t-1"));
    board.ok(&["pause", "t-1"]);
    board.until("it is stopped", || board.phase("t-1") == "queued" && board.worker_processes().is_empty());
    board.ok(&["resume", "t-1"]);
    board.until("it goes on", || board.status(&["t-1"])["run"]["pid"].is_number());
    board.ok(&["stop", "t-1"]);
    board.until("it is set aside", || board.phase("t-1") == "blocked");
    board.ok(&["retry", "t-1"]);
    board.until("it goes on again", || board.status(&["t-1"])["run"]["pid"].is_number());
    let unknown = board.fails(&["pause", "nosuch"], 6);
    assert!(unknown.contains("no ticket `nosuch`"), "{unknown}");
    board.ok(&["stop"]);
    board.until("the runner is gone", || board.run(&["stop"]).status.code() == Some(5));
    drop(runner);
    // Without a runner the ledger is changed, and says so.
    assert!(board.ok(&["pause"]).contains("no runner is up"));
    assert!(board.ok(&["status"]).contains("STOPPED: dirigent pause"));
    assert!(!exists(&board.home().join("repos/x")));
}

#[test]
fn undo_takes_back_what_was_done_without_losing_it() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    let said = board.ok(&["undo", "t-1"]);
    assert!(said.contains("git merge dirigent/undo-t-1"), "{said}");
    assert!(exists(&board.repo().join("t-1.txt")), "the user's tree was touched");
    let again = board.ok(&["undo", "t-1"]);
    assert!(again.contains("already") && again.contains("git merge dirigent/undo-t-1"), "{again}");
    board.scratch.git(["stash", "-q", "-u"]);
    board.scratch.git(["merge", "-q", "dirigent/undo-t-1"]);
    assert!(!exists(&board.repo().join("t-1.txt")));
}
