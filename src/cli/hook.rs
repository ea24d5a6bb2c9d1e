//! `dirigent hook EVENT`: the command that agents call as their hook. It reads the agent's JSON on stdin and writes a JSON response to
//! stdout. Inside a run it records a teammate (a helper of the agent), and the runner carries the record over into `agent-state.json`.
//! Outside of a run it changes that file itself, unless a runner is up that owns the file. It always exits with 0, because a failing hook
//! would disturb the agent.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::config::observability::ModelTier;
use crate::publish::{RECORD, TeamState, TeamStateFile, TeammateReport};
use crate::runtime;
use crate::workflow::resolve::usual_repo;
use crate::workspace::exclude::keep_out_of_git;

use super::context::Context;

/// The most bytes that are read from stdin; a hook's input is smaller.
const INPUT_LIMIT: u64 = 4 << 20;
const TASK_LIMIT: usize = 100;

/// Handles one hook call. `context` tells where `agent-state.json` is; without it, a report from outside of a run is not recorded.
pub fn hook(event: &str, context: Option<&Context>) -> ExitCode {
    let mut input = Vec::new();
    std::io::stdin().lock().take(INPUT_LIMIT).read_to_end(&mut input).ok();
    let said: Value = serde_json::from_slice(&input).unwrap_or(Value::Null);
    let (answer, report) = answer(event, &said);
    // A closed stdout is not a reason to fail: the agent may have stopped reading.
    writeln!(std::io::stdout(), "{answer}").ok();
    std::io::stdout().flush().ok();
    if let Some(report) = report {
        match std::env::var_os("DIRIGENT_ARTIFACTS") {
            Some(directory) => append(Path::new(&directory), &report),
            None => {
                if let Some(context) = context {
                    write_down(context, &report);
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// Appends the report in one write of a whole line, so that lines of hooks that run at the same time do not mix.
fn append(directory: &Path, report: &TeammateReport) {
    let file = OpenOptions::new().create(true).append(true).open(directory.join(RECORD));
    if let (Ok(mut file), Ok(line)) = (file, serde_json::to_string(report)) {
        file.write_all(format!("{line}\n").as_bytes()).ok();
    }
}

/// Writes the report into `agent-state.json` of the repository that the agent works in, unless a runner owns the file.
fn write_down(context: &Context, report: &TeammateReport) {
    let (repo, path) = match context.load(None) {
        Ok(loaded) => {
            let observability = loaded.settings.observability;
            (loaded.settings.workspace.repo, observability.agent_state_file)
        }
        Err(_) => {
            let repo = usual_repo(&context.cwd);
            let path = repo.join(".bkit/agent-state.json");
            (repo, path)
        }
    };
    if is_owned(context, &repo) {
        return;
    }
    keep_out_of_git(&repo, Some(&path)).ok();
    let now = runtime::now();
    let file = TeamStateFile::at(path);
    file.change(now, |there| changed(there, report, now)).ok();
}

/// Whether a runner is up for this repository, which then owns `agent-state.json`.
fn is_owned(context: &Context, repo: &Path) -> bool {
    let socket: PathBuf = runtime::RunnerFolder::of(repo, &context.env).socket;
    std::os::unix::net::UnixStream::connect(socket).is_ok()
}

/// Applies the report to the document. A started helper begins a new session where none is open; other reports need an existing document
/// (`None` without one).
fn changed(
    there: Option<TeamState>,
    report: &TeammateReport,
    now: crate::domain::time::Timestamp,
) -> Option<TeamState> {
    let mut state = match (there, report) {
        (Some(state), TeammateReport::Started { .. }) if state.enabled => state,
        (_, TeammateReport::Started { team, session, .. }) => TeamState::begun(team, session, now),
        (there, _) => there?,
    };
    report.apply(&mut state, now);
    if state.enabled {
        state.count_teammates();
    }
    Some(state)
}

/// Returns the response to the agent, and the report to record; `None` for an unknown event.
fn answer(event: &str, said: &Value) -> (Value, Option<TeammateReport>) {
    let name =
        first(said, &["/agent_name", "/agent_id", "/teammate_name", "/teammate_id", "/tool_input/name"], "unknown");
    let team = first(said, &["/team_name", "/tool_input/team_name"], "");
    match event {
        "subagent-start" => {
            let role = first(said, &["/agent_type", "/tool_input/subagent_type"], "agent");
            let task: String = first(said, &["/tool_input/prompt"], "").chars().take(TASK_LIMIT).collect();
            let model = ModelTier::of(&first(said, &["/model", "/tool_input/model"], "sonnet"));
            let output =
                json!({"hookEventName": "SubagentStart", "agentName": name, "agentType": role, "teamName": team});
            let answer = spoken(&format!("Subagent {name} spawned"), output);
            let session = first(said, &["/session_id"], "");
            let task = (!task.is_empty()).then_some(task);
            (answer, Some(TeammateReport::Started { name, role, model, team, session, task }))
        }
        "subagent-stop" => {
            let well = !said["transcript_path"].is_null() || said["exit_code"].is_null() || said["exit_code"] == 0;
            let status = if well { "completed" } else { "failed" };
            let output = json!({"hookEventName": "SubagentStop", "agentName": name, "status": status});
            let answer = spoken(&format!("Subagent {name} stopped ({status})"), output);
            (answer, Some(TeammateReport::Stopped { name, well }))
        }
        "teammate-idle" => {
            let output = json!({"hookEventName": "TeammateIdle", "agentName": name});
            (spoken(&format!("Teammate {name} is idle"), output), Some(TeammateReport::Idle { name }))
        }
        "task-completed" => {
            let task = first(said, &["/task_id", "/tool_input/task_id", "/tool_input/id"], "");
            let subject = first(said, &["/task_subject", "/tool_input/subject"], "");
            let output = json!({"hookEventName": "TaskCompleted", "taskId": task});
            (spoken("Task completed", output), Some(TeammateReport::TaskCompleted { name, task, subject }))
        }
        "stop" => (json!({}), Some(TeammateReport::SessionEnded)),
        // A newer agent may send events that this version does not know.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fall_back_in_their_order() {
        for (said, wanted) in [
            (json!({"agent_name": "a", "agent_id": "b"}), "a"),
            (json!({"agent_id": "b", "tool_input": {"name": "c"}}), "b"),
            (json!({"tool_input": {"name": "c"}}), "c"),
            (json!({"agent_name": "", "agent_id": 7}), "unknown"),
            (Value::Null, "unknown"),
        ] {
            let (answer, report) = answer("subagent-start", &said);
            assert_eq!(answer["hookSpecificOutput"]["agentName"], wanted);
            assert!(matches!(report, Some(TeammateReport::Started { name, .. }) if name == wanted));
        }
    }

    #[test]
    fn a_start_is_recorded_with_role_model_and_the_beginning_of_its_task() {
        let said = json!({"agent_id": "x", "tool_input": {"subagent_type": "explorer", "model": "claude-opus-9", "prompt": "é".repeat(200)}});
        let Some(TeammateReport::Started { role, model, task, .. }) = answer("subagent-start", &said).1 else {
            panic!()
        };
        assert_eq!((role.as_str(), model), ("explorer", ModelTier::Opus));
        assert_eq!(task.unwrap().chars().count(), TASK_LIMIT);
    }

    #[test]
    fn an_end_is_good_unless_an_exit_code_says_otherwise() {
        for (said, wanted) in [
            (json!({}), true),
            (json!({"exit_code": 0}), true),
            (json!({"exit_code": 1}), false),
            (json!({"exit_code": 1, "transcript_path": "/t"}), true),
        ] {
            assert!(
                matches!(answer("subagent-stop", &said).1, Some(TeammateReport::Stopped { well, .. }) if well == wanted)
            );
        }
    }

    #[test]
    fn an_unknown_event_says_nothing_and_writes_nothing() {
        assert_eq!(answer("something-new", &json!({})), (json!({}), None));
    }
}
