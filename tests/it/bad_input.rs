//! Bad input: one clear sentence where a person sees it, nothing lost or half done, the other tickets go on.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::support::board::{Board, MERGE, text};
use super::support::git_in;

const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

/// Nothing was made: no branch, no worktree, no note on a ticket.
fn untouched(board: &Board, id: &str) {
    assert!(!board.ticket_text(id).contains("## Notes"), "{}", board.ticket_text(id));
    assert!(board.worktrees().is_empty());
}

fn workflow(board: &Board, front_matter: &str) {
    board.scratch.write("WORKFLOW.md", &format!("---\n{front_matter}---\n"));
}

#[test]
fn a_workflow_that_cannot_be_read_is_named_with_its_place() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Work");
    workflow(&board, "tracker: {kind: tk\nfoo: [\n");
    let said = board.fails(&["run", "--once"], 3);
    assert!(said.contains("WORKFLOW.md:3:") && said.contains("not valid YAML"), "{said}");
    workflow(&board, "tracker: {kind: tk}\npolling: {interval_ms: soon}\n");
    let said = board.fails(&["run", "--once"], 3);
    assert!(said.contains("WORKFLOW.md:3:24") && said.contains("`polling.interval_ms` is \"soon\""), "{said}");
    board.scratch.write("WORKFLOW.md", "---\ntracker: {kind: tk}\n");
    let said = board.fails(&["run", "--once"], 3);
    assert!(said.contains("never closed"), "{said}");
    std::fs::write(board.repo().join("WORKFLOW.md"), [0xff_u8, 0xfe, 0, 1]).unwrap();
    let said = board.fails(&["run", "--once"], 3);
    assert!(said.contains("not UTF-8"), "{said}");
    std::fs::remove_file(board.repo().join("WORKFLOW.md")).unwrap();
    for command in ["run", "status", "doctor"] {
        let said = board.fails(&[command], 3);
        assert!(said.contains("no workflow file at") && said.contains("dirigent init"), "{said}");
    }
    std::fs::create_dir(board.repo().join("WORKFLOW.md")).unwrap();
    let said = board.fails(&["run", "--once"], 3);
    assert!(said.contains("is a directory"), "{said}");
    let said = board.fails(&["init"], 1);
    assert!(said.contains("is there already"), "{said}");
    untouched(&board, "t-1");
}

#[test]
fn an_unknown_key_is_told_with_what_was_probably_meant() {
    let board = Board::new(GOOD, MERGE);
    workflow(&board, "tracker: {kind: tk}\npoling: {interval_ms: 500}\n");
    let output = board.run(&["run", "--once", "--plain"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("`poling`") && said.contains("did you mean `polling`?"), "{said}");
}

#[test]
fn no_repository_no_commit_and_no_base_are_said_before_anything_is_made() {
    let board = Board::new(GOOD, &format!("{MERGE}workspace: {{base: nosuch}}\n"));
    board.ticket("t-1", "Work");
    let said = board.fails(&["run", "--once"], 1);
    assert!(said.contains("base branch `nosuch` does not exist") && said.contains("workspace.base"), "{said}");
    assert!(text(&board.run(&["doctor"]).stdout).contains("PROBLEM"));
    board.workflow(MERGE);
    std::fs::rename(board.repo().join(".git"), board.scratch.dir.path().join("git")).unwrap();
    let said = board.fails(&["run", "--once"], 1);
    assert!(said.contains("is not a git repository") && said.contains("git init"), "{said}");
    git_in(&board.repo(), ["init", "-q", "-b", "main"]);
    let said = board.fails(&["run", "--once"], 1);
    assert!(said.contains("has no commit yet"), "{said}");
    board.fails(&["doctor"], 7);
    untouched(&board, "t-1");
}

fn ledger(board: &Board) -> std::path::PathBuf {
    let repos = board.home().join("repos");
    std::fs::read_dir(repos).unwrap().flatten().next().unwrap().path().join("ledger.db")
}

#[test]
fn a_damaged_ledger_is_refused_and_kept() {
    let board = Board::new(GOOD, MERGE);
    board.ok(&["run", "--once"]);
    let ledger = ledger(&board);
    for extra in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(ledger.with_extension(extra));
    }
    std::fs::write(&ledger, "this is no database, whatever its name says").unwrap();
    board.ticket("t-1", "Work");
    for command in [&["run", "--once"][..], &["status"], &["explain", "t-1"]] {
        let said = board.fails(command, 1);
        assert!(said.contains("is damaged") && said.contains("move it away"), "{said}");
        assert!(said.contains(&ledger.display().to_string()), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "this is no database, whatever its name says");
    untouched(&board, "t-1");
    std::fs::remove_file(&ledger).unwrap();
    std::fs::create_dir(&ledger).unwrap();
    let said = board.fails(&["run", "--once"], 1);
    assert!(said.contains("cannot be opened"), "{said}");
    std::fs::remove_dir(&ledger).unwrap();
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
}

#[test]
fn tickets_that_are_no_tickets_are_named_and_the_others_are_done() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Work");
    board.ticket("t-untitled", "");
    let place = |name: &str| board.repo().join(".tickets").join(name);
    std::fs::write(place("plain.md"), "no front matter\n").unwrap();
    std::fs::write(place("empty.md"), "").unwrap();
    std::fs::write(place("binary.md"), [0_u8, 255, 254, 10, 45]).unwrap();
    std::fs::create_dir(place("folder.md")).unwrap();
    symlink("/nonexistent", place("dangling.md")).unwrap();
    board.ticket_with("t-self", "Waits for itself", "");
    let cycle = board.ticket_text("t-self").replace("deps: []", "deps: [t-self]");
    std::fs::write(board.ticket_path("t-self"), cycle).unwrap();
    let output = board.run(&["run", "--once", "--plain"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(10), "one waits for itself: {said}");
    for name in ["plain.md", "empty.md", "binary.md", "folder.md", "t-untitled.md"] {
        assert!(said.lines().any(|line| line.contains("ticket left out") && line.contains(name)), "{name}: {said}");
    }
    assert_eq!(board.phase("t-1"), "done");
    let why = board.ok(&["status", "t-self", "--field", "sentence"]);
    assert!(why.contains("dependency cycle"), "{why}");
    assert_eq!(std::fs::read_to_string(place("plain.md")).unwrap(), "no front matter\n");
}

#[test]
fn keys_that_look_alike_after_sanitising_stay_apart() {
    let board = Board::new(GOOD, MERGE);
    let keys = ["a b", "a:b", "a_b", "-x"];
    for key in keys {
        board.ticket(key, &format!("The one called {key}"));
    }
    board.ok(&["run", "--once"]);
    for key in keys {
        assert_eq!(board.ok(&["explain", "--json", "--", key]).matches("\"phase\": \"done\"").count(), 1, "{key}");
        assert_eq!(board.scratch.read(&format!("{key}.txt")), "work\n");
    }
    assert_eq!(board.scratch.git(["log", "--oneline", "main"]).lines().count(), 2 + keys.len());
}

#[test]
fn a_ticket_of_ten_megabytes_is_worked_on_like_any_other() {
    let board = Board::new(&format!("cat >/dev/null\n{GOOD}"), MERGE);
    board.ticket("t-1", "Long");
    let long = format!("{}{}\n", board.ticket_text("t-1"), "y".repeat(10_000_000));
    std::fs::write(board.ticket_path("t-1"), long).unwrap();
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    assert!(board.ticket_text("t-1").contains(&"y".repeat(10_000_000)), "the body changed");
}

#[test]
fn an_agent_that_floods_is_drained_and_its_transcript_stays_small() {
    let agent = format!(
        "case $DIRIGENT_TICKET_KEY in
t-lines) head -c 90000000 /dev/zero | tr '\\0' 'x' | fold -w 2000 ;;
t-endless) head -c 90000000 /dev/zero | tr '\\0' 'z' ;;
esac
{GOOD}"
    );
    let board = Board::new(&agent, MERGE);
    for id in ["t-lines", "t-endless", "t-quiet"] {
        board.ticket(id, id);
    }
    board.ok(&["run", "--once"]);
    for id in ["t-lines", "t-endless", "t-quiet"] {
        assert_eq!(board.phase(id), "done", "{id}");
    }
    let runs = ledger(&board).with_file_name("runs");
    for run in std::fs::read_dir(runs).unwrap().flatten() {
        let length = std::fs::metadata(run.path().join("transcript.log")).unwrap().len();
        assert!(length < 60_000_000, "{length} bytes of transcript");
    }
}

#[test]
fn a_hook_that_hangs_is_stopped_with_all_below_it() {
    let hook = "if [ $DIRIGENT_TICKET_KEY = t-1 ]; then (setsid sleep 98765 &); sleep 98766; fi";
    let board = Board::new(GOOD, &format!("{MERGE}hooks: {{timeout_ms: 1000, before_run: '{hook}'}}\n"));
    let workflow = board.scratch.read("WORKFLOW.md");
    board.scratch.write("WORKFLOW.md", &workflow.replace("stop_grace_ms", "max_retry_backoff_ms: 100, stop_grace_ms"));
    board.ticket("t-1", "Hangs");
    board.ticket("t-2", "Does not");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-2"), "done");
    let why = board.ok(&["status", "t-1", "--field", "sentence"]);
    assert!(why.contains("before_run") && why.contains("hooks.timeout_ms"), "{why}");
    assert!(board.worktrees().is_empty());
    assert_eq!(left_of("sleep\u{0}98765"), 0);
    assert_eq!(left_of("sleep\u{0}98766"), 0);
}

fn left_of(command: &str) -> usize {
    let command = command.as_bytes();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(command))
        .count()
}

/// Unmounts on the way out, whatever happened.
struct Mount(std::path::PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_the_work_with_a_sentence_and_space_lets_it_go_on() {
    let board = Board::new(GOOD, MERGE);
    let home = board.home();
    std::fs::create_dir_all(&home).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&home).output();
    let Ok(mounted) = mounted.map(|output| output.status.success()) else { return };
    if !mounted {
        println!("skipped: a small file system cannot be mounted here");
        return;
    }
    let _mount = Mount(home.clone());
    board.ok(&["run", "--once"]);
    let started = board.start();
    board.until("it is up", || board.run(&["status"]).status.success() && board.ok(&["status"]).contains("runner up"));
    let ballast = home.join("ballast");
    // What does not fit any more is the point.
    let _ = std::fs::write(&ballast, vec![1_u8; 16 << 20]);
    board.ticket("t-1", "Work");
    board.until("somebody is told", || started.log().contains("disk is full"));
    board.until("status says it", || board.ok(&["status"]).contains("until the ledger can be written"));
    assert!(!board.ticket_text("t-1").contains("is done"), "{}", board.ticket_text("t-1"));
    std::fs::remove_file(&ballast).unwrap();
    board.until("it goes on by itself", || board.phase("t-1") == "done");
    started.end();
    assert_eq!(board.scratch.read("t-1.txt"), "work\n");
    assert_eq!(board.scratch.git(["log", "--oneline", "main"]).lines().count(), 3);
    assert!(board.worktrees().is_empty());
}
