//! The board cannot be read for a long while, and boards that are long.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::Value;

use super::{Board, ENDLESS, MERGE, Runner, at_it, merges, salvaged};

/// Each says that it is at it with a dirty tree; then one works on, one fails, and one is done, each when it is told.
const THREE: &str = r#"set -eu
key="$DIRIGENT_TICKET_KEY"
echo "unsaved by $key" > "$key.txt"
if [ "$DIRIGENT_ATTEMPT" = 1 ]; then
  tk comment 'I am at it'
  while [ ! -e "$HOME/go-$key" ]; do sleep 0.05; done
  [ "$key" = t-fails ] && exit 3
fi
git add -A
git commit -qm "Do $key"
tk done 'it is done'
"#;

/// The poller's own words, once a poll that failed.
fn failed_polls(board: &Board) -> usize {
    let log = std::fs::read_to_string(board.scratch.dir.path().join("runner.log")).unwrap();
    log.matches("the board could not be read").count()
}

#[test]
fn a_long_outage_of_the_board_stops_nobody_and_loses_nothing() {
    let board = Board::new(THREE, MERGE);
    let text = board.scratch.read("WORKFLOW.md");
    let text = text.replace("interval_ms: 500", "interval_ms: 50");
    let text = text.replace("stop_grace_ms: 1000", "stop_grace_ms: 1000, max_retries: 1, max_retry_backoff_ms: 50");
    board.scratch.write("WORKFLOW.md", &text);
    let ids = ["t-dirty", "t-fails", "t-quick"];
    for id in ids {
        board.ticket(id, &format!("Ticket {id}"));
    }
    let runner = board.start();
    board.until("all work", || ids.iter().all(|id| at_it(&board, id)));
    let pid = board.status(&["t-dirty"])["run"]["pid"].clone();

    let (place, away) = (board.repo().join(".tickets"), board.scratch.dir.path().join("elsewhere"));
    std::fs::rename(&place, &away).unwrap();
    let go = |id: &str| std::fs::write(board.scratch.dir.path().join(format!("go-{id}")), "").unwrap();
    // Not there; no folder; a link that leads nowhere; one that leads to itself.
    for (number, how) in ["gone", "file", "dangling", "loop"].into_iter().enumerate() {
        match how {
            "file" => std::fs::write(&place, "no folder").unwrap(),
            "dangling" => symlink("nowhere", &place).unwrap(),
            "loop" => symlink(".tickets", &place).unwrap(),
            _ => {}
        }
        let before = failed_polls(&board);
        match number {
            0 => go("t-fails"),
            1 => go("t-quick"),
            _ => {}
        }
        // Said once for each reason, however many polls fail of it; the others follow while the runs go on.
        board.until(&format!("polls fail ({how})"), || failed_polls(&board) > before);
        std::thread::sleep(std::time::Duration::from_secs(1));
        if how != "gone" {
            std::fs::remove_file(&place).unwrap();
        }
    }
    board.until("the failure is known, its work saved", || salvaged(&board) == 1);
    board.until("the other one's run is over", || board.status(&["t-quick"])["run"].is_null());
    let dirty = board.status(&["t-dirty"]);
    assert_eq!((&dirty["phase"], &dirty["run"]["pid"]), (&"implementing".into(), &pid), "{dirty}");
    let unsaved =
        board.worktrees().into_iter().filter_map(|tree| std::fs::read_to_string(tree.join("t-dirty.txt")).ok());
    assert_eq!(unsaved.collect::<Vec<_>>(), ["unsaved by t-dirty\n"], "its tree is as the worker left it");
    let waits = board.status(&["t-fails"]);
    assert_eq!((&waits["phase"], &waits["attempts"]), (&"queued".into(), &1.into()), "no attempt is spent: {waits}");

    std::fs::rename(&away, &place).unwrap();
    go("t-dirty");
    board.until("all are done", || ids.iter().all(|id| board.phase(id) == "done"));
    board.until("what could not be written is written", || board.status(&[])["pending_effects"] == 0);
    runner.end();
    for (id, attempts) in [("t-dirty", 1), ("t-fails", 2), ("t-quick", 1)] {
        assert_eq!(board.status(&[id])["attempts"], attempts, "{id}");
        assert_eq!(merges(&board, id), 1, "{id}");
        let ticket = board.ticket_text(id);
        assert!(ticket.contains("status: closed"), "{ticket}");
        for marker in ticket.lines().filter(|line| line.starts_with("<!-- dirigent:")) {
            assert_eq!(ticket.matches(marker).count(), 1, "{ticket}");
        }
    }
    assert!(board.ticket_text("t-fails").contains("refs/dirigent/salvage/"), "{}", board.ticket_text("t-fails"));
    assert!(board.worktrees().is_empty(), "{:?}", board.worktrees());
}

/// The events of a recording, by name.
fn events(board: &Board, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(board.scratch.dir.path().join("events.jsonl")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"]["event"] == name).collect()
}

#[test]
fn five_hundred_candidates_cost_no_more_requests_than_five() {
    let board = Board::new(ENDLESS, MERGE);
    let text = board.scratch.read("WORKFLOW.md");
    board
        .scratch
        .write("WORKFLOW.md", &text.replace("stop_grace_ms: 1000", "stop_grace_ms: 1000, max_concurrent_agents: 2"));
    let id = |number: usize| format!("t-{number:03}");
    for number in 0..500 {
        board.ticket(&id(number), &format!("Candidate {number}"));
    }
    let waiting: Vec<(String, String)> = (2..500).map(|number| (id(number), board.ticket_text(&id(number)))).collect();
    let record = board.scratch.dir.path().join("events.jsonl");
    let log = std::fs::File::create(board.scratch.dir.path().join("runner.log")).unwrap();
    let mut command = board.command(&["run", "--plain", "--record"]);
    let child = command.arg(&record).stderr(log).stdout(Stdio::null()).spawn().unwrap();
    let runner = Runner { child, log: board.scratch.dir.path().join("runner.log") };
    board.until("two work", || at_it(&board, &id(0)) && at_it(&board, &id(1)));
    let polled = || events(&board, "polled").len() + events(&board, "polled_unchanged").len();
    let refreshed = || events(&board, "tickets_refreshed");
    let (polls, looks) = (polled(), refreshed().len());
    board.until("it has polled for a while", || polled() >= polls + 6);
    let asked: Vec<usize> = refreshed().iter().map(|line| line["event"]["found"].as_array().unwrap().len()).collect();
    runner.end();
    // A poll is one request. Nobody asks for a candidate by name, only for what is being started or worked on.
    assert!(asked.iter().all(|many| *many <= 2), "asked for so many at a time: {asked:?}");
    assert!(asked.len() - looks <= 6, "{} requests beside the polls", asked.len() - looks);
    let polls = events(&board, "polled");
    assert!(polls.iter().all(|line| line["event"]["tickets"].as_array().unwrap().len() == 500));
    for (id, text) in waiting {
        assert_eq!(board.ticket_text(&id), text, "a ticket that only waits was written to");
    }
}
