//! Crashes, and two runners where one should be.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Board, ENDLESS, GOOD, MERGE, at_it, merges};

#[test]
fn kill_nine_again_and_again_merges_every_ticket_once() {
    let agent = "set -eu
sleep 0.$(($(od -An -N1 -tu1 /dev/urandom) % 8))
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
(setsid sleep 87654 >/dev/null 2>&1 &)
sleep 0.$(($(od -An -N1 -tu1 /dev/urandom) % 8))
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\" || true
tk done 'it is done'
";
    let board = Board::new(agent, &format!("{MERGE}gates: {{task: ['sleep 0.2; test -f README']}}\n"));
    board.scratch.write(
        "WORKFLOW.md",
        &board.scratch.read("WORKFLOW.md").replace(
            "stop_grace_ms: 1000",
            "stop_grace_ms: 1000, max_concurrent_agents: 3, max_retries: 100, max_retry_backoff_ms: 200",
        ),
    );
    let ids = ["t-1", "t-2", "t-3", "t-4", "t-5"];
    for id in ids {
        board.ticket(id, &format!("Ticket {id}"));
    }
    for round in 0..8_u64 {
        let runner = board.start();
        // Different moments each time; which ones does not matter for what has to hold.
        let moment = u64::from(std::process::id()).wrapping_mul(round + 7) % 1700;
        std::thread::sleep(Duration::from_millis(150 + moment));
        runner.signal(Signal::SIGKILL);
        drop(runner);
        board.until("no process of the killed life is left", || board.worker_processes().is_empty());
    }
    let runner = board.start();
    board.until("all are done", || ids.iter().all(|id| board.phase(id) == "done"));
    runner.end();
    for id in ids {
        assert_eq!(merges(&board, id), 1, "{id}\n{}", board.scratch.git(["log", "--oneline"]));
        assert_eq!(board.scratch.read(&format!("{id}.txt")), "work\n");
        let ticket = board.ticket_text(id);
        assert!(ticket.contains("status: closed"), "{ticket}");
        assert_eq!(ticket.matches("<!-- dirigent:pr:").count(), 1, "{ticket}");
        assert_eq!(ticket.matches("<!-- dirigent:done:").count(), 1, "{ticket}");
    }
    assert!(board.worktrees().is_empty(), "{:?}", board.worktrees());
    assert_eq!(board.scratch.git(["worktree", "list"]).lines().count(), 1);
    assert_eq!(board.scratch.git(["branch", "--list", "dirigent/*"]), "");
    assert!(board.worker_processes().is_empty());
}

#[test]
fn two_runners_with_homes_of_their_own_do_not_share_a_board() {
    let board = Board::new(ENDLESS, MERGE);
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("the first works", || at_it(&board, "t-1"));
    let other = board.scratch.dir.path().join("other-home");
    let output = board.command(&["run", "--plain"]).env("DIRIGENT_HOME", &other).output().unwrap();
    let said = super::text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains(&format!("pid {}", runner.child.id())), "{said}");
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
    runner.end();
}

#[test]
fn a_restart_during_rework_keeps_branch_and_counters() {
    // The first attempt does not pass its gate; the rework hangs in its first life.
    let agent = format!(
        "if [ $DIRIGENT_PHASE = implementing ]; then echo bad > result.txt; git add -A; git commit -qm first; tk done x; exit 0; fi
if [ $DIRIGENT_ATTEMPT = 2 ]; then {ENDLESS}
fi
git log --format=%s > seen.txt
echo good > result.txt; git add -A; git commit -qm second; tk done y
"
    );
    let board = Board::new(&agent, &format!("{MERGE}gates: {{task: ['grep -q good result.txt']}}\n"));
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("the rework is under way", || at_it(&board, "t-1"));
    let before = board.status(&["t-1"]);
    assert_eq!(before["rework_cycles"], 1, "{before}");
    runner.signal(Signal::SIGKILL);
    drop(runner);
    let runner = board.start();
    board.until("it is done", || board.phase("t-1") == "done");
    let after = board.status(&["t-1"]);
    assert_eq!(after["rework_cycles"], 1, "{after}");
    assert_eq!(after["branch"], before["branch"]);
    assert!(board.scratch.read("seen.txt").lines().any(|line| line == "first"), "the first commit was lost");
    assert_eq!(merges(&board, "t-1"), 1);
    runner.end();
}

#[test]
fn a_board_that_is_gone_for_a_moment_is_not_a_board_without_tickets() {
    let board = Board::new(ENDLESS, MERGE);
    board.ticket("t-1", "Work");
    let runner = board.start();
    board.until("it works", || at_it(&board, "t-1"));
    let (place, away) = (board.repo().join(".tickets"), board.repo().join("elsewhere"));
    std::fs::rename(&place, &away).unwrap();
    board.until("it is noticed", || !board.status(&[])["tracker"]["last_error"].is_null());
    assert!(!board.worker_processes().is_empty(), "the worker was stopped");
    std::fs::rename(&away, &place).unwrap();
    board.until("the board is back", || board.status(&[])["tracker"]["last_error"].is_null());
    let job = board.status(&["t-1"]);
    assert_eq!((job["phase"].as_str(), job["attempts"].as_u64()), (Some("implementing"), Some(1)), "{job}");
    runner.end();
}

#[test]
fn one_broken_ticket_does_not_hide_what_became_of_the_others() {
    let board = Board::new(ENDLESS, MERGE);
    for id in ["t-broken", "t-gone"] {
        board.ticket(id, id);
    }
    let runner = board.start();
    board.until("both work", || at_it(&board, "t-broken") && at_it(&board, "t-gone"));
    let good = board.ticket_text("t-broken");
    std::fs::write(board.ticket_path("t-broken"), "an accident\n").unwrap();
    board.until("it is told", || board.ok(&["status"]).contains("t-broken.md"));
    std::fs::remove_file(board.ticket_path("t-gone")).unwrap();
    board.until("the deleted one is stopped", || board.phase("t-gone") == "released");
    assert_eq!(board.phase("t-broken"), "implementing", "a broken file is no deleted ticket");
    std::fs::write(board.ticket_path("t-broken"), good).unwrap();
    board.until("all is well", || !board.ok(&["status"]).contains("t-broken.md"));
    assert_eq!(board.status(&["t-broken"])["attempts"], 1);
    runner.end();
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_the_work() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Work");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = board.command(&["run", "--once", "--plain"]).stderr(full).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{status:?}");
    assert_eq!(board.phase("t-1"), "done");
    // A reader that goes away at once.
    board.ticket("t-2", "More work");
    let mut child = board.command(&["run", "--plain"]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    drop(child.stderr.take());
    board.until("it works on", || board.phase("t-2") == "done");
    assert!(child.try_wait().unwrap().is_none(), "the runner is gone");
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_terminal_that_goes_away_ends_the_runner_in_good_order() {
    let board = Board::new(ENDLESS, MERGE);
    board.ticket("t-1", "Work");
    let mut runner = board.start();
    board.until("it works", || at_it(&board, "t-1"));
    runner.signal(Signal::SIGHUP);
    let status = runner.child.wait().unwrap();
    assert!(status.success(), "{status:?}");
    assert!(board.worktrees().is_empty());
    assert_eq!(super::salvaged(&board), 1);
}

#[test]
fn an_agent_that_is_not_there_blocks_with_a_fix_and_costs_one_attempt() {
    let board = Board::new(GOOD, MERGE);
    board.scratch.write("WORKFLOW.md", &board.scratch.read("WORKFLOW.md").replace("sh ./agent.sh", "nosuchagent -x"));
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    let job = board.status(&["t-1"]);
    assert_eq!((job["phase"].as_str(), job["attempts"].as_u64()), (Some("blocked"), Some(1)), "{job}");
    assert!(board.ticket_text("t-1").contains("nosuchagent"), "{}", board.ticket_text("t-1"));
    assert!(board.worktrees().is_empty());
}

/// Nobody has told git who they are, as on a machine that was set up a minute ago.
#[test]
fn the_sample_board_needs_no_git_identity() {
    let home = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dirigent"))
        .args(["quickstart", "--dir"])
        .arg(home.path().join("sample"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home.path())
        .env("DIRIGENT_HOME", home.path().join("state"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("4 tickets were worked on"), "{said}");
}

#[test]
fn a_ticket_that_was_closed_while_nobody_looked_gets_no_run() {
    let board = Board::new("exit 3", MERGE);
    board.ticket("t-1", "Closed meanwhile");
    let runner = board.start();
    board.until("it is known", || board.ok(&["status"]).contains("t-1"));
    board.until("its first run failed", || board.status(&["t-1"])["failures"] == 1);
    runner.end();
    let runs = board.status(&["t-1"])["attempts"].clone();
    board.ok(&["tk", "close", "t-1"]);
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "released");
    assert_eq!(board.status(&["t-1"])["attempts"], runs);
}

#[test]
fn a_gate_that_cannot_be_run_costs_no_rework() {
    let board = Board::new(super::GOOD, &format!("{MERGE}gates: {{task: ['no-such-program --x']}}\n"));
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "blocked");
    let job = board.status(&["t-1"]);
    assert_eq!(job["attempts"], 1, "{job}");
    assert!(job["sentence"].as_str().unwrap().contains("no-such-program"), "{job}");
    board.workflow(&format!("{MERGE}gates: {{task: ['true']}}\n"));
    board.ok(&["retry", "t-1"]);
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
}

/// A ticket that nobody will ever work on is named, and its name is not taken for another one's.
#[test]
fn a_status_that_nobody_knows_is_told() {
    let board = Board::new(super::GOOD, MERGE);
    board.ticket("t-bad2", "Fine");
    std::fs::write(board.ticket_path("t-bad"), "---\nid: t-bad\nstatus: opne\n---\n# x\n").unwrap();
    assert!(board.ok(&["doctor"]).contains("its status `opne` is none of open, in_progress, closed, failed"));
    let runner = board.start();
    board.until("it is named", || board.ok(&["status"]).contains("its status `opne`"));
    assert!(board.fails(&["stop", "t-bad"], 1).contains("cannot be read"));
    runner.end();
}
