//! Reports that an agent's hooks make about the agent's own helpers (subagents, teammates). Inside a run, `dirigent hook` appends each
//! report to a file in the run's artifacts, and the runner carries it over into `agent-state.json`. Outside of a run, `dirigent hook`
//! changes `agent-state.json` itself.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};

use super::team_state::{TeamState, Teammate, TeammateStatus, time_text};
use crate::config::observability::ModelTier;
use crate::domain::time::Timestamp;
use crate::launcher::environment::Secrets;

/// Name of the file in a run's artifacts that holds the reports, one JSON object per line.
pub const RECORD: &str = "teammates.jsonl";
/// How many bytes are read from the record at once; the rest is read the next time. Hooks never write more than this in one interval.
const READ_AT_ONCE: u64 = 256 << 10;
const TEXT_LIMIT: usize = 200;

/// One event that an agent's hooks reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum TeammateReport {
    Started { name: String, role: String, model: ModelTier, team: String, session: String, task: Option<String> },
    Stopped { name: String, well: bool },
    Idle { name: String },
    TaskCompleted { name: String, task: String, subject: String },
    SessionEnded,
}

impl TeammateReport {
    /// Returns the report with `worker/` put before the helper's name, so that helpers of different workers stay apart. `None` for the
    /// end of the agent's session, which does not end the runner's session.
    pub fn of_worker(self, worker: &str) -> Option<Self> {
        let under = |name: String| format!("{worker}/{}", clip(&name));
        Some(match self {
            Self::Started { name, role, model, team, session, task } => {
                Self::Started { name: under(name), role, model, team, session, task }
            }
            Self::Stopped { name, well } => Self::Stopped { name: under(name), well },
            Self::Idle { name } => Self::Idle { name: under(name) },
            Self::TaskCompleted { name, task, subject } => Self::TaskCompleted { name: under(name), task, subject },
            // The agent's session is only a part of the run. The runner's session continues.
            Self::SessionEnded => return None,
        })
    }

    pub fn without_secrets(self, secrets: &Secrets) -> Self {
        let cut = |text: String| secrets.cut_from(&text);
        match self {
            Self::Started { name, role, model, team, session, task } => {
                Self::Started { name: cut(name), role: cut(role), model, team, session, task: task.map(cut) }
            }
            Self::TaskCompleted { name, task, subject } => {
                Self::TaskCompleted { name: cut(name), task: cut(task), subject: cut(subject) }
            }
            Self::Stopped { name, well } => Self::Stopped { name: cut(name), well },
            Self::Idle { name } => Self::Idle { name: cut(name) },
            Self::SessionEnded => Self::SessionEnded,
        }
    }

    pub fn apply(&self, state: &mut TeamState, now: Timestamp) {
        match self {
            Self::Started { name, role, model, task, .. } => state.add(Teammate {
                name: clip(name),
                role: clip(role),
                model: *model,
                status: TeammateStatus::Spawning,
                current_task: task.as_deref().map(clip),
                task_id: None,
                started_at: time_text(now),
                last_activity_at: time_text(now),
            }),
            Self::Stopped { name, well } => {
                let status = if *well { TeammateStatus::Completed } else { TeammateStatus::Failed };
                state.set_status(name, status, None, now);
            }
            Self::Idle { name } => state.set_status(name, TeammateStatus::Idle, None, now),
            Self::TaskCompleted { name, task, subject } => {
                state.set_status(name, TeammateStatus::Completed, Some((some(subject), some(task))), now);
                let what = some(subject).or_else(|| some(task)).unwrap_or_else(|| "a task".into());
                state.say(name, "all", &format!("completed: {what}"), now);
            }
            Self::SessionEnded => state.end(),
        }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| clip(text))
}

fn clip(text: &str) -> String {
    text.chars().take(TEXT_LIMIT).collect()
}

/// Reads the complete lines after `position`, and moves `position` behind them. Lines that are not reports are skipped, because the
/// worker can write anything into this folder.
pub fn read_from(path: &Path, position: &mut u64) -> Vec<TeammateReport> {
    // The worker may put a pipe or a symbolic link in its place: the one must not block the runner, the other must not be followed.
    let careful = (OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits();
    let Ok(mut file) = OpenOptions::new().read(true).custom_flags(careful).open(path) else { return Vec::new() };
    let mut text = Vec::new();
    if file.seek(SeekFrom::Start(*position)).is_err() || file.take(READ_AT_ONCE).read_to_end(&mut text).is_err() {
        return Vec::new();
    }
    let whole = match text.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        // A single line that fills the whole buffer is skipped.
        None if text.len() as u64 == READ_AT_ONCE => text.len(),
        None => 0,
    };
    *position += whole as u64;
    text[..whole].split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
