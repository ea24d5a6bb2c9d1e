//! What people type at the wrong moment, twice, or with half of what is needed: each gets an answer that helps.

use super::support::board::{Board, MERGE, MUTATE, text};

const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

const ENDLESS: &str =
    "echo unsaved > \"$DIRIGENT_TICKET_KEY.txt\"\ntk comment 'I am at it'\nwhile :; do echo alive; sleep 1; done\n";

fn holds(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in\n{told}");
    }
}

#[test]
fn resume_says_that_the_kill_switch_file_is_still_there() {
    let board = Board::new(ENDLESS, MUTATE);
    board.ticket("t-1", "One");
    board.ticket("t-2", "Two");
    let runner = board.start();
    board.until("they work", || ["t-1", "t-2"].iter().all(|id| board.ticket_text(id).contains("I am at it")));
    // One ticket's pause is no full stop, and no kill switch.
    board.ok(&["pause", "t-1"]);
    board.until("it stands", || board.phase("t-1") == "queued");
    let status = board.ok(&["status"]);
    holds(&status, &["only t-1 is paused", "this ticket is paused (dirigent pause)"]);
    assert!(!status.contains("STOPPED") && !status.contains("kill switch"), "{status}");
    board.ok(&["pause"]);
    board.until("all stand", || board.phase("t-2") == "queued");
    holds(&board.fails(&["resume", "t-2"], 1), &["everything is; run `dirigent resume`"]);
    let status = board.ok(&["status"]);
    holds(&status, &["STOPPED: dirigent pause", "everything is paused (dirigent pause)"]);
    assert!(!status.contains("kill switch"), "{status}");

    let file = board.repo().join(".dirigent/pause");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "").unwrap();
    let resumed = board.fails(&["resume"], 1);
    holds(&resumed, &["kill-switch file", &file.display().to_string(), "still there"]);
    runner.end();
    holds(&board.fails(&["resume"], 1), &[&file.display().to_string(), "still there"]);
    std::fs::remove_file(&file).unwrap();
    assert!(!board.ok(&["resume"]).contains("still there"));
}

#[test]
fn an_approval_leaves_a_trace_and_a_second_one_says_so() {
    let more = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass}\n";
    let board = Board::new(GOOD, more);
    board.ticket("t-1", "One");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "waiting_for_human");
    board.ok(&["approve", "t-1"]);
    let head = board.status(&["t-1"])["head"].as_str().unwrap().to_owned();
    for told in [board.ok(&["status", "t-1"]), board.ok(&["explain", "t-1"])] {
        holds(&told, &[&format!("approved      {}", &head[..12]), "is approved; it goes on when a runner is up"]);
    }
    holds(&board.ok(&["approve", "t-1"]), &["t-1 was approved already", &head[..12]]);
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    holds(&board.ok(&["status", "t-1"]), &["approved"]);
}

#[test]
fn an_approval_where_nothing_is_merged_says_what_to_do() {
    let board = Board::new(GOOD, &MUTATE.replace("forge: local", "forge: none"));
    board.ticket("t-1", "One");
    board.ok(&["run", "--once"]);
    holds(&board.fails(&["approve", "t-1"], 1), &["no pull request is opened here", "merge branch dirigent/t-1-one"]);
}

#[test]
fn a_message_without_a_runner_points_to_the_ticket() {
    let board = Board::new(GOOD, MUTATE);
    board.ticket("t-1", "One");
    holds(&board.fails(&["message", "t-1", "hello"], 5), &["no runner is up", "dirigent tk add-note t-1"]);
}

#[test]
fn saved_work_is_found_by_its_ticket() {
    let board = Board::new(&format!("{ENDLESS}\n"), MUTATE);
    board.ticket("t-1", "One");
    for _ in 0..2 {
        let before = board.ticket_text("t-1").matches("I am at it").count();
        let runner = board.start();
        board.until("it works", || board.ticket_text("t-1").matches("I am at it").count() > before);
        runner.end();
    }
    let shown = board.run(&["salvage", "show", "t-1"]);
    holds(&text(&shown.stdout), &["+unsaved"]);
    holds(&text(&shown.stderr), &["the newest of 2 saved; the others: "]);
    let restored = board.ok(&["salvage", "restore", "t-1"]);
    holds(&restored, &["is on branch salvage/", "--branch NAME"]);
    holds(&board.fails(&["salvage", "show", "t-9"], 6), &["nothing was salvaged from `t-9`"]);
}

#[test]
fn the_second_runner_is_told_of_the_repository() {
    let board = Board::new(ENDLESS, MUTATE);
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it works", || board.ticket_text("t-1").contains("I am at it"));
    let refused = board.fails(&["run", "--plain"], 4);
    holds(&refused, &[&format!("another dirigent works on {}", board.repo().canonicalize().unwrap().display())]);
    let doctor = board.ok(&["doctor"]);
    holds(&doctor, &["runner", &format!("one is at work here (pid {})", runner.child.id())]);
    runner.end();
    holds(&board.ok(&["doctor"]), &["none is at work here"]);
}

#[test]
fn doctor_looks_for_the_gates_programs_and_names_a_stand_in() {
    let gates = "gates: {task: ['FAST=1 no-such-checker --all', 'cd src && make', {name: good, run: 'sh -c true'}]}\n";
    let board = Board::new(GOOD, &format!("{MERGE}{gates}"));
    let doctor = text(&board.run(&["doctor"]).stdout);
    holds(
        &doctor,
        &[
            "PROBLEM  gates",
            "`no-such-checker` of gate `FAST=1 no-such-checker --all` is not there, or no program",
            "good: sh -c true",
        ],
    );
    assert_eq!(doctor.matches("PROBLEM").count(), 1, "{doctor}");
    holds(&doctor, &["mkdir -p ", ".dirigent && touch "]);

    std::fs::remove_file(board.repo().join("WORKFLOW.md")).unwrap();
    let bare = board.scratch.dir.path().join("bare");
    std::fs::create_dir(&bare).unwrap();
    for program in ["git", "sh"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|file| file.is_file())
            .unwrap();
        std::os::unix::fs::symlink(found, bare.join(program)).unwrap();
    }
    let without_agents = |args: &[&str]| text(&board.command(args).env("PATH", &bare).output().unwrap().stdout);
    holds(&without_agents(&["init"]), &["a stand-in"]);
    holds(&without_agents(&["doctor"]), &["warning  agent", "the stand-in that `init` wrote"]);
}

#[test]
fn help_names_tk_and_where_the_workflow_is_looked_for() {
    let board = Board::new(GOOD, MUTATE);
    let help = board.ok(&["--help"]);
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    holds(&words, &[" tk Tickets as files", "nearest folder above", "mkdir -p .dirigent && touch .dirigent/pause"]);
    assert!(!help.contains("./WORKFLOW.md"), "{help}");
    holds(&board.ok(&["tk", "--help"]), &["tickets as Markdown files", "tag <id> +x -y"]);
}

#[test]
fn gc_names_branches_of_closed_tickets_and_removes_only_what_is_merged() {
    let board = Board::new(GOOD, MUTATE);
    for id in ["t-1", "t-2"] {
        board.ticket(id, "One");
    }
    board.ok(&["run", "--once"]);
    board.ok(&["tk", "close", "t-1"]);
    board.ok(&["tk", "close", "t-2"]);
    board.ok(&["run", "--once"]);
    for id in ["t-1", "t-2"] {
        assert_eq!(board.phase(id), "released", "{}", board.ok(&["explain", id]));
    }
    // One is squashed by hand after all.
    board.scratch.git(["checkout", "-q", "dirigent/t-1-one", "--", "t-1.txt"]);
    board.scratch.git(["commit", "-qm", "by hand", "--", "t-1.txt"]);
    let kept = "kept: t-2 is closed, but 1 commit is not in main";
    let gc = board.ok(&["gc", "--dry-run", "--max-age", "0s"]);
    holds(&gc, &["branch dirigent/t-2-one", kept, "git branch -D dirigent/t-2-one"]);
    holds(&gc, &["would be removed: t-1 is closed, and the base has all of it"]);
    holds(&board.ok(&["gc"]), &["it was not so for long enough"]);
    board.ok(&["gc", "--max-age", "0s"]);
    let left = board.scratch.git(["branch", "--list", "dirigent/*", "--format=%(refname:short)"]);
    assert_eq!(left.trim(), "dirigent/t-2-one", "{gc}");
}

/// A branch has its name from the title that the ticket had when its work began.
#[test]
fn gc_finds_the_branch_of_a_ticket_that_was_renamed() {
    let board = Board::new(GOOD, MUTATE);
    board.ticket("t-1", "One");
    board.ok(&["run", "--once"]);
    board.ticket("t-1", "Something else");
    board.ok(&["run", "--once"]);
    assert!(board.ok(&["status", "t-1"]).contains("Something else"));
    board.ok(&["tk", "close", "t-1"]);
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "released", "{}", board.ok(&["explain", "t-1"]));
    let kept = board.ok(&["gc", "--dry-run", "--max-age", "0s"]);
    holds(&kept, &["branch dirigent/t-1-one", "kept: t-1 is closed, but 1 commit is not in main"]);
    board.scratch.git(["checkout", "-q", "dirigent/t-1-one", "--", "t-1.txt"]);
    board.scratch.git(["commit", "-qm", "by hand", "--", "t-1.txt"]);
    board.ok(&["gc", "--max-age", "0s"]);
    assert_eq!(board.scratch.git(["branch", "--list", "dirigent/*"]).trim(), "");
}
