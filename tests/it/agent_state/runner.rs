//! What a runner writes to `agent-state.json` while it works, and at its end.

use serde_json::Value;

use super::checked;
use crate::support::board::{Board, MERGE, MUTATE};

fn read(board: &Board) -> Option<Value> {
    let text = std::fs::read_to_string(board.repo().join(".bkit/agent-state.json")).ok()?;
    Some(checked(&text))
}

const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm work
tk done 'it is done'
";

/// Says something, has a helper of its own, and then waits until it may go on.
const WITH_HELPER: &str = "set -eu
echo '{\"agent_name\": \"scout\", \"agent_type\": \"explorer\", \"model\": \"claude-haiku-4\"}' | PROGRAM hook subagent-start
tk comment 'the door is blue'
while [ ! -e .go ]; do sleep 0.1; done
rm .go
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A && git commit -qm work
tk done 'it is done'
";

#[test]
fn a_run_is_a_teammate_its_helper_is_another_and_the_end_switches_the_file_off() {
    let state = "observability: {agent_state: {team_name: Painters, cto_agent: opus, orchestration_pattern: swarm, session_id: s-9}}\n";
    let board = Board::new(&WITH_HELPER.replace("PROGRAM", env!("CARGO_BIN_EXE_dirigent")), &format!("{MERGE}{state}"));
    board.ticket_with("t-1", "Paint the door", "tags: [role:painter]\n");
    let runner = board.start();
    let mate = |value: &Value, name: &str| -> Option<Value> {
        value["teammates"].as_array()?.iter().find(|mate| mate["name"] == name).cloned()
    };
    board.until("the helper is there", || read(&board).is_some_and(|value| mate(&value, "t-1#1/scout").is_some()));
    let value = read(&board).unwrap();
    assert_eq!(
        (&value["enabled"], &value["teamName"], &value["sessionId"]),
        (&true.into(), &"Painters".into(), &"s-9".into())
    );
    assert_eq!((&value["ctoAgent"], &value["orchestrationPattern"]), (&"opus".into(), &"swarm".into()));
    assert_eq!((&value["feature"], &value["pdcaPhase"]), (&"Paint the door".into(), &"do".into()));
    let worker = mate(&value, "t-1#1").unwrap();
    assert_eq!((&worker["role"], &worker["model"]), (&"painter".into(), &"sonnet".into()));
    assert_eq!((&worker["status"], &worker["taskId"]), (&"working".into(), &"t-1".into()));
    let helper = mate(&value, "t-1#1/scout").unwrap();
    assert_eq!(
        (&helper["role"], &helper["model"], &helper["status"]),
        (&"explorer".into(), &"haiku".into(), &"spawning".into())
    );
    board.until("the worker is heard", || {
        read(&board).is_some_and(|value| value["recentMessages"].to_string().contains("the door is blue"))
    });

    std::fs::write(board.worktrees()[0].join(".go"), "").unwrap();
    board.until("it is merged", || board.phase("t-1") == "done");
    board.until("the file says so", || read(&board).is_some_and(|value| value["progress"]["completedTasks"] == 1));
    let value = read(&board).unwrap();
    assert_eq!(mate(&value, "t-1#1").unwrap()["status"], "completed");
    assert_eq!(mate(&value, "t-1#1/scout").unwrap()["status"], "completed", "it ended with its worker");
    assert_eq!(value["pdcaPhase"], "act");
    assert!(value["recentMessages"].to_string().contains("implementing → "), "{value:#}");

    runner.end();
    let value = read(&board).unwrap();
    assert_eq!((&value["enabled"], &value["teammates"]), (&false.into(), &serde_json::json!([])));
    assert_eq!(value["progress"]["completedTasks"], 1);
}

/// An agent with two helpers whose hooks are called as its client calls them; it goes on from step to step when it is told.
const WITH_HOOKS: &str = "set -eu
hook() { printf '%s' \"$2\" | PROGRAM hook \"$1\" > /dev/null; }
step() { while [ ! -e \".$1\" ]; do sleep 0.1; done; rm \".$1\"; }
hook subagent-start '{\"agent_id\": \"one\", \"tool_input\": {\"prompt\": \"look around\"}}'
hook subagent-start '{\"agent_id\": \"two\", \"agent_type\": \"tester\"}'
step second
hook teammate-idle '{\"teammate_name\": \"one\"}'
hook task-completed '{\"agent_id\": \"two\", \"task_id\": \"7\", \"task_subject\": \"Paint the frame\"}'
hook stop '{}'
step third
echo work > door.txt
git add -A && git commit -qm work
tk done 'it is done'
hook subagent-stop '{\"agent_id\": \"one\", \"transcript_path\": \"/t\"}'
hook subagent-stop '{\"agent_id\": \"two\", \"exit_code\": 3}'
";

/// Cases 11 to 16 with a runner, which owns the file: what the hooks of a worker say is carried over, to its very end.
#[test]
fn cases_11_to_16_hooks_of_a_worker_are_carried_over_by_the_runner() {
    let board = Board::new(&WITH_HOOKS.replace("PROGRAM", env!("CARGO_BIN_EXE_dirigent")), MERGE);
    board.ticket("t-1", "Paint the door");
    let runner = board.start();
    let helper = |name: &str| -> Option<Value> {
        let state = read(&board)?;
        let mates = state["teammates"].as_array()?;
        mates.iter().find(|mate| mate["name"] == format!("t-1#1/{name}")).cloned()
    };
    let is = |name: &str, status: &str| helper(name).is_some_and(|mate| mate["status"] == status);
    board.until("both helpers are there", || is("one", "spawning") && is("two", "spawning"));
    assert_eq!(helper("one").unwrap()["currentTask"], "look around");
    assert_eq!(helper("two").unwrap()["role"], "tester");

    std::fs::write(board.worktrees()[0].join(".second"), "").unwrap();
    board.until("one is idle, the other's task is done", || is("one", "idle") && is("two", "completed"));
    assert_eq!(helper("one").unwrap()["currentTask"], Value::Null);
    assert_eq!(helper("two").unwrap()["taskId"], "7");
    let state = read(&board).unwrap();
    assert!(state["recentMessages"].to_string().contains("completed: Paint the frame"), "{state:#}");
    assert_eq!(state["enabled"], true, "the end of the agent's session is not the end of the runner's");

    std::fs::write(board.worktrees()[0].join(".third"), "").unwrap();
    board.until("the run is over", || {
        read(&board).is_some_and(|value| {
            value["teammates"].to_string().contains("\"name\":\"t-1#1\"") && value["progress"]["completedTasks"] == 1
        })
    });
    assert_eq!(helper("one").unwrap()["status"], "completed");
    assert_eq!(helper("two").unwrap()["status"], "failed", "what was said in the last moment counts, too");
    runner.end();
    assert_eq!(read(&board).unwrap()["enabled"], false);
}

#[test]
fn a_title_with_a_secret_is_written_without_it() {
    let board = Board::new("exit 0\n", &format!("{MUTATE}server: {{tokens: {{ada: $CANARY}}}}\n"));
    board.ticket("t-1", "Use canary-0123456789-token for the door");
    let output =
        board.command(&["run", "--once", "--plain"]).env("CANARY", "canary-0123456789-token").output().unwrap();
    let text = std::fs::read_to_string(board.repo().join(".bkit/agent-state.json")).unwrap();
    assert!(text.contains("Use *** for the door") && !text.contains("canary"), "{text}\n{output:?}");
}

#[test]
fn a_run_that_fails_is_a_teammate_that_failed() {
    let board = Board::new("exit 3\n", MUTATE);
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it failed", || read(&board).is_some_and(|value| value["teammates"][0]["status"] == "failed"));
    runner.end();
}

#[test]
fn a_folder_that_cannot_be_written_stops_nothing_and_is_said_once() {
    let board = Board::new(GOOD, &format!("{MERGE}observability: {{agent_state_file: taken/state.json}}\n"));
    board.scratch.write("taken", "a file where the folder should be\n");
    board.scratch.commit("in the way");
    board.ticket("t-1", "One");
    let output = board.run(&["run", "--once", "--plain"]);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    assert_eq!(board.phase("t-1"), "done");
    assert_eq!(log.matches("agent-state.json cannot be written").count(), 1, "{log}");
}

#[test]
fn the_file_lies_where_the_workflow_says_and_stays_out_of_git() {
    let board = Board::new(GOOD, &format!("{MERGE}observability: {{agent_state_file: ops/team.json}}\n"));
    board.ticket("t-1", "One");
    board.ok(&["run", "--once", "--plain"]);
    let value = checked(&board.scratch.read("ops/team.json"));
    assert_eq!((&value["enabled"], &value["progress"]["completedTasks"]), (&false.into(), &1.into()));
    assert!(!board.repo().join(".bkit").exists());
    let seen = board.scratch.git(["status", "--porcelain"]);
    assert!(!seen.contains("ops"), "{seen}");
}

#[test]
fn a_hook_of_a_person_leaves_the_file_to_the_runner_that_owns_it() {
    let board = Board::new("sleep 1000\n", MUTATE);
    let runner = board.start();
    board.until("the runner has written it", || read(&board).is_some());
    board.ok(&["hook", "subagent-start"]);
    let value = read(&board).unwrap();
    assert_eq!(value["teammates"], serde_json::json!([]));
    assert_ne!(value["sessionId"], "");
    runner.end();
    assert_eq!(read(&board).unwrap()["enabled"], false);
}
