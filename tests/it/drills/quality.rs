//! The repository's own quality gate: a script in `.dirigent/hooks/`.

use std::path::Path;

use dirigent::gates::hook::HookContext;
use serde_json::Value as Json;

use super::{Board, GOOD, MERGE, sentence};

/// As one writes it for pi-agent-teams: it looks at the tree and at what it is told.
const SCRIPT: &str = r#"printf '%s' "$PI_TEAMS_HOOK_CONTEXT_JSON" > "$HOME/context.json"
env | sort > "$HOME/hook-environment"
if [ "$PI_TEAMS_HOOK_EVENT" != task_completed ] || [ "$PI_TEAMS_HOOK_CONTEXT_VERSION" != 1 ]; then exit 2; fi
echo looking
test -e good.txt || { echo 'good.txt is missing' >&2; exit 1; }
"#;

/// Replaces its judge before it is judged, and gives in when it is told what is missing.
const TRIES_IT: &str = r#"set -eu
if [ "$DIRIGENT_PHASE" = rework ]; then
  grep -q 'good.txt is missing' "$DIRIGENT_PROMPT_FILE"
  git checkout -q main -- .dirigent/hooks
  echo good > good.txt
else
  echo 'exit 0' > .dirigent/hooks/on_task_completed.sh
fi
git add -A
git commit -qm "$DIRIGENT_PHASE"
tk done x
"#;

fn logs(board: &Board) -> Vec<Json> {
    let repo = std::fs::read_dir(board.home().join("repos")).unwrap().next().unwrap().unwrap().path();
    let mut paths: Vec<_> = std::fs::read_dir(repo.join("hook-logs")).unwrap().map(|one| one.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()).collect()
}

#[test]
fn a_script_of_the_repository_judges_finished_work_and_the_work_cannot_replace_it() {
    let board = Board::new(TRIES_IT, MERGE);
    board.scratch.write(".dirigent/hooks/on_task_completed.sh", SCRIPT);
    board.scratch.commit("a judge");
    board.ticket("t-1", &format!("Make it {}", "good ".repeat(300)));
    assert!(board.ok(&["doctor"]).contains("on_task_completed: "), "{}", board.ok(&["doctor"]));
    board.ok(&["run", "--once"]);
    let status = board.status(&["t-1"]);
    assert_eq!((status["phase"].as_str(), status["attempts"].as_u64()), (Some("done"), Some(2)), "{status}");
    assert!(board.scratch.git(["ls-tree", "--name-only", "main"]).contains("good.txt"));

    let home = board.scratch.dir.path();
    let told: Json = serde_json::from_str(&std::fs::read_to_string(home.join("context.json")).unwrap()).unwrap();
    assert_eq!((&told["version"], &told["event"]), (&1.into(), &"task_completed".into()), "{told:#}");
    let keys = |value: &Json| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&told), ["event", "member", "task", "team", "timestamp", "version"]);
    assert_eq!(keys(&told["team"]), ["dir", "id", "style", "taskListId"]);
    let of_task = [
        "blockedBy",
        "blocks",
        "createdAt",
        "description",
        "id",
        "metadata",
        "owner",
        "status",
        "subject",
        "updatedAt",
    ];
    assert_eq!(keys(&told["task"]), of_task);
    let task = &told["task"];
    assert_eq!((&task["id"], &task["status"]), (&"t-1".into(), &"completed".into()), "{task:#}");
    assert_eq!(task["subject"].as_str().unwrap().chars().count(), 1_000);
    assert_eq!((&task["owner"], task["createdAt"].as_str()), (&told["member"], Some("2026-01-01T00:00:00.000Z")));
    let environment = std::fs::read_to_string(home.join("hook-environment")).unwrap();
    for name in [
        "HOOK_EVENT",
        "HOOK_CONTEXT_VERSION",
        "TEAM_ID",
        "TEAM_DIR",
        "TASK_LIST_ID",
        "STYLE",
        "MEMBER",
        "TASK_ID",
        "TASK_STATUS",
    ] {
        let values = ["DIRIGENT", "PI_TEAMS"].map(|whose| {
            let start = format!("{whose}_{name}=");
            environment.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned))
        });
        assert!(values[0].is_some() && values[0] == values[1], "{name}: {values:?}");
    }

    let logs = logs(&board);
    assert_eq!(logs.len(), 2, "{logs:#?}");
    let (refused, passed) = (&logs[0]["result"], &logs[1]["result"]);
    assert_eq!((&refused["exitCode"], &passed["exitCode"]), (&1.into(), &0.into()));
    assert_eq!(
        (refused["stdout"].as_str(), refused["stderr"].as_str()),
        (Some("looking\n"), Some("good.txt is missing\n"))
    );
    assert_eq!(
        (&refused["contractVersion"], &refused["timedOut"], &refused["ran"]),
        (&1.into(), &false.into(), &true.into())
    );
    assert_eq!(refused["command"][0], "bash");
    assert_eq!(logs[0]["invocation"]["event"], "task_completed");
    // What it found is part of the receipt.
    let commit = status["merged_commit"].as_str().unwrap().to_owned();
    assert!(board.ok(&["receipt", "show", &commit]).contains("on_task_completed: passed"));
}

#[test]
fn scripts_that_nothing_calls_are_said_and_those_that_should_judge_hold_the_merge() {
    let board = Board::new(GOOD, MERGE);
    for name in ["on_idle.sh", "on_final.sh"] {
        board.scratch.write(&format!(".dirigent/hooks/{name}"), "true\n");
    }
    board.ticket("t-1", "Do something");
    let told = board.ok(&["doctor"]);
    assert!(told.contains("on_idle.sh is not called") && told.contains("on_final.sh is not called"), "{told}");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "waiting_for_human", "{}", board.ok(&["explain", "t-1"]));
    assert!(sentence(&board, "t-1").contains(".dirigent/hooks/on_final"), "{}", sentence(&board, "t-1"));
    std::fs::remove_file(board.repo().join(".dirigent/hooks/on_final.sh")).unwrap();
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done", "{}", board.ok(&["explain", "t-1"]));
}

#[test]
fn the_schema_of_what_a_script_is_told_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/hook-context.schema.json");
    let schema = serde_json::to_value(schemars::schema_for!(HookContext)).unwrap();
    let text = format!("{schema:#}\n");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(there, text, "schema/hook-context.schema.json is out of date: run this test with UPDATE_SCHEMA=1");
}
