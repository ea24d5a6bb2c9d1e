//! The drills: bad nights, played with the built binary, and looked at from outside.

mod accidents;
mod asking;
mod budgets;
mod commits;
mod keys;
mod limits;
mod outages;
mod people;
mod quality;
mod receipts;
mod requests;
mod rollout;
mod secrets;
mod words;
mod worker_side;

use super::support::board::{Board, MERGE, Runner, text};

/// Commits a file named after the ticket and says done.
const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

/// Dirties its tree, leaves a detached child that does not listen, says that it is there, and works for ever.
const ENDLESS: &str = "echo unsaved > \"$DIRIGENT_TICKET_KEY.txt\"
(setsid sh -c 'trap : TERM; while :; do sleep 100000; done' >/dev/null 2>&1 &)
tk comment 'I am at it'
while :; do echo alive; sleep 1; done
";

/// The workflow with JSON events from the agent; `exec` and `agent` are further keys of theirs.
fn with_events(board: &Board, exec: &str, agent: &str, more: &str) {
    let front = format!(
        "tracker: {{kind: tk}}\npolling: {{interval_ms: 500}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh, events: jsonl{exec}}}\nagent: {{stop_grace_ms: 1000{agent}}}\n{more}"
    );
    board.scratch.write("WORKFLOW.md", &format!("---\n{front}---\n"));
}

fn at_it(board: &Board, id: &str) -> bool {
    std::fs::read_to_string(board.ticket_path(id)).is_ok_and(|text| text.contains("I am at it"))
}

/// How often a ticket's work is on the base branch.
fn merges(board: &Board, id: &str) -> usize {
    let log = board.scratch.git(["log", "--format=%s", "main"]);
    log.lines().filter(|line| line.starts_with(&format!("{id}:"))).count()
}

/// Why a ticket is where it is; empty while nobody knows it.
fn sentence(board: &Board, id: &str) -> String {
    text(&board.run(&["status", id, "--field", "sentence"]).stdout)
}

fn salvaged(board: &Board) -> usize {
    let saved: serde_json::Value = serde_json::from_str(&board.ok(&["salvage", "list", "--json"])).unwrap();
    saved.as_array().unwrap().len()
}
