//! People who close, delete, label, edit, commit and pull switches at the worst moment.

use std::time::{Duration, Instant};

use super::{Board, ENDLESS, GOOD, MERGE, at_it, merges, salvaged, sentence};
use crate::support::try_git_in;

/// The gate waits until the file is there.
const SLOW_GATE: &str = "gates: {task: ['(setsid sleep 76543 &); while [ ! -e \"$HOME/go\" ]; do sleep 0.1; done']}\n";

fn gate_processes() -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(b"sleep\x0076543"))
        .count()
}

#[test]
fn a_closed_ticket_ends_its_worker_with_everything_below_it() {
    let board = Board::new(ENDLESS, MERGE);
    for id in ["t-close", "t-delete", "t-stay"] {
        board.ticket(id, id);
    }
    let runner = board.start();
    board.until("all work", || ["t-close", "t-delete", "t-stay"].iter().all(|id| at_it(&board, id)));
    board.ok(&["tk", "close", "t-close"]);
    std::fs::remove_file(board.ticket_path("t-delete")).unwrap();
    board.until("both are given up", || {
        board.phase("t-close") == "released" && board.phase("t-delete") == "released" && board.worktrees().len() == 1
    });
    let stay = board.status(&["t-stay"])["run"]["pid"].as_i64().unwrap();
    let environs = board
        .worker_processes()
        .into_iter()
        .filter_map(|pid| std::fs::read(format!("/proc/{pid}/environ")).ok().map(|environ| super::text(&environ)));
    for environ in environs {
        assert!(environ.contains("DIRIGENT_TICKET_KEY=t-stay"), "left over beside {stay}: {environ}");
    }
    assert_eq!(salvaged(&board), 2);
    runner.end();
    assert!(board.worker_processes().is_empty());
}

/// As `git checkout` and some editors do it: the old file is removed, then the new one is put there.
#[test]
fn a_ticket_file_that_is_replaced_is_no_deleted_ticket() {
    let board = Board::new(ENDLESS, MERGE);
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("it works", || at_it(&board, "t-1"));
    let (path, text) = (board.ticket_path("t-1"), board.ticket_text("t-1"));
    for round in 0..5 {
        let new = board.repo().join(".tickets/.new");
        std::fs::write(&new, format!("{text}\n<!-- {round} -->\n")).unwrap();
        let gone = Instant::now();
        std::fs::remove_file(&path).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        std::fs::rename(new, &path).unwrap();
        if gone.elapsed() > Duration::from_millis(300) {
            println!("skipped: on a machine this slow the file was away for long");
            return;
        }
        // Somebody who looks twice must not come upon the next time.
        std::thread::sleep(Duration::from_millis(900));
    }
    std::fs::write(board.ticket_path("mark"), "no ticket\n").unwrap();
    board.until("the board is read", || board.ok(&["status"]).contains("mark.md"));
    let job = board.status(&["t-1"]);
    assert_eq!((&job["phase"], &job["attempts"]), (&"implementing".into(), &1.into()), "{job}\n{}", runner.log());
    runner.end();
}

#[test]
fn the_label_stops_one_ticket_and_its_removal_lets_it_go_on() {
    let board = Board::new(ENDLESS, &MERGE.replace("mode: merge}", "mode: merge, kill_switch_label: stopit}"));
    board.ticket("t-1", "One");
    board.ticket("t-2", "Two");
    let runner = board.start();
    board.until("both work", || at_it(&board, "t-1") && at_it(&board, "t-2"));
    let plain = board.ticket_text("t-1");
    std::fs::write(board.ticket_path("t-1"), plain.replace("priority: 2\n", "priority: 2\ntags: [stopit]\n")).unwrap();
    board.until("one is stopped", || board.phase("t-1") == "queued" && board.worktrees().len() == 1);
    let frozen = board.ticket_text("t-1");
    assert!(board.ok(&["status"]).contains("only t-1 is held (label on the ticket)"));
    let why = board.ok(&["explain", "t-1"]);
    assert!(why.contains("remove the kill-switch label"), "{why}");
    assert_eq!(board.phase("t-2"), "implementing");
    assert_eq!(board.ticket_text("t-1"), frozen, "something was written under the switch");
    std::fs::write(board.ticket_path("t-1"), frozen.replace("tags: [stopit]\n", "")).unwrap();
    board.until("it goes on", || board.status(&["t-1"])["attempts"] == 2);
    runner.end();
}

#[test]
fn a_switch_stops_gates_too_and_they_run_again_afterwards() {
    let agent = "echo $DIRIGENT_ATTEMPT > work.txt; git add -A; git commit -qm work; tk done x";
    let board = Board::new(agent, &format!("{MERGE}{SLOW_GATE}"));
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("the gate runs", || board.phase("t-1") == "waiting_for_checks" && gate_processes() > 0);
    let pause = board.repo().join(".dirigent/pause");
    std::fs::create_dir_all(pause.parent().unwrap()).unwrap();
    std::fs::write(&pause, "").unwrap();
    board.until("the gate is stopped", || gate_processes() == 0 && board.worktrees().is_empty());
    assert_eq!(board.phase("t-1"), "waiting_for_checks");
    std::fs::remove_file(&pause).unwrap();
    board.until("it runs again", || gate_processes() > 0);
    board.ok(&["stop", "t-1"]);
    board.until("a stopped ticket has no gate", || gate_processes() == 0 && board.phase("t-1") == "blocked");
    board.ok(&["retry", "t-1"]);
    board.until("it runs once more", || gate_processes() > 0);
    // The end of the runner does not wait for a gate.
    runner.end();
    assert_eq!(gate_processes(), 0);
    assert!(board.worktrees().is_empty(), "{:?}", board.worktrees());
    std::fs::write(board.scratch.dir.path().join("go"), "").unwrap();
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    assert_eq!(merges(&board, "t-1"), 1);
}

#[test]
fn a_good_edit_of_the_workflow_applies_and_a_bad_one_is_shown_and_left_aside() {
    let board = Board::new(GOOD, "rollout: {mode: observe}\npr: {forge: local}\n");
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("it is only looked at", || {
        board.ok(&["status"]).starts_with("runner up") && sentence(&board, "t-1").contains("observe")
    });
    board.scratch.write("WORKFLOW.md", "---\ntracker: {kind: tk\n");
    board.until("the bad edit is shown", || board.ok(&["status"]).contains("WORKFLOW.md as it is now is not in force"));
    let shown = board.status(&[]);
    assert!(shown["workflow"]["reload_error"].is_string(), "{shown}");
    assert_eq!(board.phase("t-1"), "queued", "the last good one stays in force");
    // Nobody is kept from stopping what runs by a file that cannot be read.
    board.ok(&["pause"]);
    assert!(board.ok(&["status"]).contains("STOPPED: dirigent pause"));
    board.ok(&["resume"]);
    board.workflow(MERGE);
    board.until("the good edit applies", || board.phase("t-1") == "done");
    assert!(board.status(&[])["workflow"]["reload_error"].is_null());
    runner.end();
}

#[test]
fn commits_of_the_user_on_the_base_and_merges_do_not_hurt_each_other() {
    let agent = "set -eu
if [ $DIRIGENT_PHASE = rework ]; then cp \"$DIRIGENT_PROMPT_FILE\" prompt.txt; git merge -q main || true; fi
echo \"$DIRIGENT_TICKET_KEY\" > \"$DIRIGENT_TICKET_KEY.txt\"
if [ $DIRIGENT_TICKET_KEY = t-c ]; then echo theirs > README; fi
git add -A
git commit -qm work
tk done x
";
    // The user commits seven times within a second: whoever cannot keep up with that lets others go first, and comes again.
    let board =
        Board::new(agent, &format!("{MERGE}gates: {{task: ['while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done']}}\n"));
    for id in ["t-a", "t-b", "t-c"] {
        board.ticket(id, id);
    }
    let runner = board.start();
    board.until("all are checked", || ["t-a", "t-b", "t-c"].iter().all(|id| board.phase(id) == "waiting_for_checks"));
    board.scratch.write("README", "the user's\n");
    board.scratch.git(["commit", "-qam", "user 0"]);
    std::fs::write(board.scratch.dir.path().join("go"), "").unwrap();
    for round in 1..8 {
        board.scratch.write("user.txt", &format!("{round}\n"));
        // A merge may hold the index or the branch at this very moment; a user would try again as well.
        board.until("the user's commit goes through", || {
            try_git_in(&board.repo(), ["add", "user.txt"]).0
                && try_git_in(&board.repo(), ["commit", "-qm", &format!("user {round}"), "--", "user.txt"]).0
        });
    }
    board.until("all are done", || ["t-a", "t-b", "t-c"].iter().all(|id| board.phase(id) == "done"));
    runner.end();
    let log = board.scratch.git(["log", "--format=%s", "main"]);
    for round in 0..8 {
        assert_eq!(log.lines().filter(|line| *line == format!("user {round}")).count(), 1, "{log}");
    }
    for id in ["t-a", "t-b", "t-c"] {
        assert_eq!(merges(&board, id), 1, "{log}");
    }
    assert!(board.scratch.read("prompt.txt").contains("README"), "the conflict is not in the prompt");
    assert_eq!(board.scratch.git(["status", "--porcelain", "--untracked-files=no"]), "");
}

#[test]
fn a_dirty_tree_of_the_user_is_left_alone_and_the_end_says_what_is_in_the_way() {
    let board = Board::new(GOOD, MERGE);
    board.scratch.write("t-1.txt", "mine\n");
    board.scratch.write("staged.txt", "staged\n");
    board.scratch.git(["add", "staged.txt"]);
    board.scratch.write("README", "half written\n");
    board.ticket("t-1", "In the way");
    board.ticket("t-2", "Free");
    // It must end although one merge waits.
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-2"), "done");
    assert_eq!(board.phase("t-1"), "ready_to_merge");
    let why = board.ok(&["status", "t-1", "--field", "sentence"]);
    assert!(why.contains("t-1.txt"), "{why}");
    assert_eq!(board.scratch.read("t-1.txt"), "mine\n");
    let status = board.scratch.git(["status", "--porcelain", "--", "README", "staged.txt", "t-1.txt", "t-2.txt"]);
    assert_eq!(status, " M README\nA  staged.txt\n?? t-1.txt");
    std::fs::remove_file(board.repo().join("t-1.txt")).unwrap();
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    assert_eq!(board.scratch.read("README"), "half written\n");
}

#[test]
fn what_waits_to_be_merged_keeps_its_place_and_does_not_fill_the_ledger() {
    let board = Board::new("echo x > README; git add -A; git commit -qm x; tk done x", MERGE);
    board.scratch.write("README", "the user is writing here\n");
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it waits", || board.phase("t-1") == "ready_to_merge");
    let notes = || {
        let story: serde_json::Value = serde_json::from_str(&board.ok(&["explain", "t-1", "--json"])).unwrap();
        let moves = story["notes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|note| note["text"].as_str().is_some_and(|text| text.starts_with("ready_to_merge: ")));
        moves.count()
    };
    for _ in 0..5 {
        board.ok(&["status"]);
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(notes(), 0, "{}", board.ok(&["explain", "t-1"]));
    runner.end();
}
