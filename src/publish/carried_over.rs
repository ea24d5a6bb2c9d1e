//! What an agent's hooks say about helpers of its own. Inside a run it is recorded in the run's artifacts, from where the runner
//! carries it over; elsewhere the hook command changes the file itself.

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

/// In the run's artifacts, one JSON object per line.
pub const RECORD: &str = "teammates.jsonl";
/// More than this at once is not a hook's doing; the rest is read the next time.
const READ_AT_ONCE: u64 = 256 << 10;
const TEXT_LIMIT: usize = 200;

/// One event of an agent's hooks.
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
    /// The name is the helper's own; inside a run it stands behind the worker's.
    pub fn of_worker(self, worker: &str) -> Option<Self> {
        let under = |name: String| format!("{worker}/{}", clip(&name));
        Some(match self {
            Self::Started { name, role, model, team, session, task } => {
                Self::Started { name: under(name), role, model, team, session, task }
            }
            Self::Stopped { name, well } => Self::Stopped { name: under(name), well },
            Self::Idle { name } => Self::Idle { name: under(name) },
            Self::TaskCompleted { name, task, subject } => Self::TaskCompleted { name: under(name), task, subject },
            // The agent's session, which is a part of the run. The runner's goes on.
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

/// The whole lines after `position`, which moves on behind them. A line that is not a report is passed over: the folder is the
/// worker's to write to.
pub fn read_from(path: &Path, position: &mut u64) -> Vec<TeammateReport> {
    // A pipe or a link in its place must not hold us up or lead elsewhere.
    let careful = (OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits();
    let Ok(mut file) = OpenOptions::new().read(true).custom_flags(careful).open(path) else { return Vec::new() };
    let mut text = Vec::new();
    if file.seek(SeekFrom::Start(*position)).is_err() || file.take(READ_AT_ONCE).read_to_end(&mut text).is_err() {
        return Vec::new();
    }
    let whole = match text.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        // One line that fills everything is given up.
        None if text.len() as u64 == READ_AT_ONCE => text.len(),
        None => 0,
    };
    *position += whole as u64;
    text[..whole].split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
