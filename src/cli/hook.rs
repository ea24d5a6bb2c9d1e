//! `dirigent hook EVENT`: called by agents that call hooks. Reads the agent's JSON on stdin, records a teammate of the worker's run, and
//! answers JSON on stdout. Ends with 0 whatever happens: a hook that fails would disturb the agent.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// In the run's artifacts, one JSON object per line.
pub const RECORD: &str = "teammates.jsonl";
/// More than this is no hook's input.
const INPUT_LIMIT: u64 = 4 << 20;
const TASK_LIMIT: usize = 100;

pub fn hook(event: &str) -> ExitCode {
    let mut input = Vec::new();
    std::io::stdin().lock().take(INPUT_LIMIT).read_to_end(&mut input).ok();
    let said: Value = serde_json::from_slice(&input).unwrap_or(Value::Null);
    let (answer, record) = answer(event, &said);
    if let (Some(mut record), Some(directory)) = (record, std::env::var_os("DIRIGENT_ARTIFACTS")) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        record["at_ms"] = json!(u64::try_from(at).unwrap_or(u64::MAX));
        append(Path::new(&directory), &record);
    }
    // An agent that does not listen any more is no reason to fail.
    writeln!(std::io::stdout(), "{answer}").ok();
    ExitCode::SUCCESS
}

/// One write of a whole line, so that hooks at the same moment do not mix.
fn append(directory: &Path, record: &Value) {
    let file = OpenOptions::new().create(true).append(true).open(directory.join(RECORD));
    if let Ok(mut file) = file {
        file.write_all(format!("{record}\n").as_bytes()).ok();
    }
}

/// What is said to the agent, and what is written down.
fn answer(event: &str, said: &Value) -> (Value, Option<Value>) {
    let name =
        first(said, &["/agent_name", "/agent_id", "/teammate_name", "/teammate_id", "/tool_input/name"], "unknown");
    let team = first(said, &["/team_name", "/tool_input/team_name"], "");
    match event {
        "subagent-start" => {
            let role = first(said, &["/agent_type", "/tool_input/subagent_type"], "agent");
            let task = first(said, &["/tool_input/prompt"], "");
            let task: String = task.chars().take(TASK_LIMIT).collect();
            let record = json!({"event": event, "name": name, "role": role, "model": model(said), "team": team,
                                "status": "spawning", "task": (!task.is_empty()).then_some(task)});
            let output =
                json!({"hookEventName": "SubagentStart", "agentName": name, "agentType": role, "teamName": team});
            (spoken(&format!("Subagent {name} spawned"), output), Some(record))
        }
        "subagent-stop" => {
            let well = !said["transcript_path"].is_null() || said["exit_code"].is_null() || said["exit_code"] == 0;
            let status = if well { "completed" } else { "failed" };
            let output = json!({"hookEventName": "SubagentStop", "agentName": name, "status": status});
            let record = json!({"event": event, "name": name, "status": status});
            (spoken(&format!("Subagent {name} stopped ({status})"), output), Some(record))
        }
        "teammate-idle" => {
            let output = json!({"hookEventName": "TeammateIdle", "agentName": name});
            let record = json!({"event": event, "name": name, "status": "idle"});
            (spoken(&format!("Teammate {name} is idle"), output), Some(record))
        }
        "task-completed" => {
            let task = first(said, &["/task_id", "/tool_input/task_id", "/tool_input/id"], "");
            let subject = first(said, &["/task_subject", "/tool_input/subject"], "");
            let output = json!({"hookEventName": "TaskCompleted", "taskId": task});
            let record = json!({"event": event, "name": name, "task": task, "subject": subject});
            (spoken("Task completed", output), Some(record))
        }
        "stop" => (json!({}), Some(json!({"event": event, "session": first(said, &["/session_id"], "")}))),
        // A newer agent may know events that this build does not.
        _ => (json!({}), None),
    }
}

fn spoken(message: &str, output: Value) -> Value {
    json!({"systemMessage": message, "hookSpecificOutput": output})
}

fn first(said: &Value, pointers: &[&str], otherwise: &str) -> String {
    let found = pointers.iter().filter_map(|pointer| said.pointer(pointer)?.as_str()).find(|text| !text.is_empty());
    found.unwrap_or(otherwise).to_owned()
}

/// Folded to the three names that readers of the record know.
fn model(said: &Value) -> &'static str {
    let named = first(said, &["/model", "/tool_input/model"], "sonnet").to_lowercase();
    ["opus", "haiku"].into_iter().find(|known| named.contains(known)).unwrap_or("sonnet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fall_back_in_their_order() {
        for (said, name) in [
            (json!({"agent_name": "a", "agent_id": "b"}), "a"),
            (json!({"agent_id": "b", "tool_input": {"name": "c"}}), "b"),
            (json!({"tool_input": {"name": "c"}}), "c"),
            (json!({"agent_name": "", "agent_id": 7}), "unknown"),
            (Value::Null, "unknown"),
        ] {
            let (answer, record) = answer("subagent-start", &said);
            assert_eq!(answer["hookSpecificOutput"]["agentName"], name);
            assert_eq!(record.unwrap()["name"], name);
        }
    }

    #[test]
    fn a_start_is_recorded_with_role_model_and_the_beginning_of_its_task() {
        let said = json!({"agent_id": "x", "tool_input": {"subagent_type": "explorer", "model": "claude-opus-9", "prompt": "é".repeat(200)}});
        let record = answer("subagent-start", &said).1.unwrap();
        assert_eq!((record["role"].as_str(), record["model"].as_str()), (Some("explorer"), Some("opus")));
        assert_eq!(record["task"].as_str().unwrap().chars().count(), TASK_LIMIT);
        assert_eq!(record["status"], "spawning");
    }

    #[test]
    fn an_end_is_good_unless_an_exit_code_says_otherwise() {
        for (said, status) in [
            (json!({}), "completed"),
            (json!({"exit_code": 0}), "completed"),
            (json!({"exit_code": 1}), "failed"),
            (json!({"exit_code": 1, "transcript_path": "/t"}), "completed"),
        ] {
            assert_eq!(answer("subagent-stop", &said).1.unwrap()["status"], status);
        }
    }

    #[test]
    fn an_unknown_event_says_nothing_and_writes_nothing() {
        assert_eq!(answer("something-new", &json!({})), (json!({}), None));
    }
}
