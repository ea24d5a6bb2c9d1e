//! Hook contract version 1: the data that the repository's own script gets about finished work, and the log of each call
//! (docs/hooks.md).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::gates::HookScript;
use crate::domain::evidence::GateResult;
use crate::domain::ticket::Ticket;
use crate::domain::time::Timestamp;

/// The version of the contract. It goes up with every change that is not an addition.
pub const CONTRACT_VERSION: u32 = 1;

const SUBJECT: usize = 1_000;
const DESCRIPTION: usize = 8_000;
const DEPENDENCIES: usize = 200;
/// The limit for other long variables, in bytes.
const LONGEST_VARIABLE: usize = 32 << 10;
/// The number of calls whose logs are kept.
const LOGS: usize = 200;

/// A hook script with the context that it is called with.
#[derive(Debug, Clone)]
pub struct HookCall {
    pub script: HookScript,
    pub context: HookContext,
    /// The folder that the log of each call is written to.
    pub logs: PathBuf,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookContext {
    pub version: u32,
    pub event: &'static str,
    pub team: HookTeam,
    /// The member that triggered the event: the run.
    pub member: Option<String>,
    pub timestamp: Option<String>,
    /// `None` if the board cannot be read.
    pub task: Option<HookTask>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookTeam {
    pub id: String,
    pub dir: String,
    pub task_list_id: String,
    pub style: &'static str,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookTask {
    pub id: String,
    pub subject: String,
    pub description: String,
    pub owner: Option<String>,
    pub status: &'static str,
    pub blocked_by: Vec<String>,
    pub blocks: Vec<String>,
    pub metadata: Map<String, Value>,
    pub created_at: String,
    pub updated_at: String,
    /// The title without truncation. The flat variable `TASK_SUBJECT` is made from it.
    #[serde(skip)]
    pub whole_subject: String,
}

impl HookTask {
    /// Describes finished work on a ticket. `now` replaces dates that the board does not have.
    pub fn completed(ticket: &Ticket, owner: Option<String>, metadata: Map<String, Value>, now: Timestamp) -> Self {
        let date = |at: Option<Timestamp>| written(at.unwrap_or(now));
        let blocked_by = ticket.blocked_by.iter().take(DEPENDENCIES);
        Self {
            id: ticket.key.to_string(),
            subject: clipped(&ticket.title, SUBJECT),
            description: clipped(ticket.description.as_deref().unwrap_or_default(), DESCRIPTION),
            owner,
            status: "completed",
            blocked_by: blocked_by.map(|blocker| blocker.key.to_string()).collect(),
            blocks: Vec::new(),
            metadata,
            created_at: date(ticket.created_at),
            updated_at: date(ticket.updated_at),
            whole_subject: ticket.title.clone(),
        }
    }
}

impl HookContext {
    /// Returns the hook's environment variables. Each one has two names: `DIRIGENT_...`, and `PI_TEAMS_...` as in pi-agent-teams.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let json = serde_json::to_string(self).unwrap_or_default();
        let mut flat = vec![
            ("HOOK_EVENT", self.event.to_owned()),
            ("HOOK_CONTEXT_VERSION", self.version.to_string()),
            ("HOOK_CONTEXT_JSON", json),
            ("TEAM_ID", self.team.id.clone()),
            ("TEAM_DIR", self.team.dir.clone()),
            ("TASK_LIST_ID", self.team.task_list_id.clone()),
            ("STYLE", self.team.style.to_owned()),
        ];
        flat.extend(self.member.clone().map(|member| ("MEMBER", member)));
        flat.extend(self.timestamp.clone().map(|at| ("EVENT_TIMESTAMP", at)));
        if let Some(task) = &self.task {
            flat.push(("TASK_ID", task.id.clone()));
            flat.push(("TASK_SUBJECT", clipped(&task.whole_subject, LONGEST_VARIABLE / 4)));
            flat.extend(task.owner.clone().map(|owner| ("TASK_OWNER", owner)));
            flat.push(("TASK_STATUS", task.status.to_owned()));
        }
        // The operating system does not start a process that has a zero byte in a variable.
        let both = |(name, value): (&str, String)| {
            let value = value.replace('\0', "");
            [(format!("DIRIGENT_{name}"), value.clone()), (format!("PI_TEAMS_{name}"), value)]
        };
        flat.into_iter().flat_map(both).collect()
    }
}

fn clipped(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Formats a time as JavaScript formats a date.
pub fn written(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

impl HookCall {
    /// Writes a log of the call. A log that cannot be written is only a warning: it stops nothing.
    pub fn keep(&self, result: &GateResult, stdout: &str, stderr: &str) {
        if let Err(error) = self.write_log(result, stdout, stderr) {
            tracing::warn!(folder = %self.logs.display(), %error, "the call of a hook is not logged");
        }
    }

    fn write_log(&self, result: &GateResult, stdout: &str, stderr: &str) -> std::io::Result<()> {
        let mut invocation = serde_json::to_value(&self.context).unwrap_or_default();
        invocation["teamId"] = self.context.team.id.clone().into();
        let log = json!({
            "invocation": invocation,
            "result": {
                "ran": true,
                "hookPath": self.script.path,
                "command": self.script.argv(),
                "exitCode": result.exit_code,
                "timedOut": result.timed_out,
                "durationMs": result.duration_ms,
                "stdout": stdout,
                "stderr": stderr,
                "contractVersion": CONTRACT_VERSION,
            },
        });
        fs::create_dir_all(&self.logs)?;
        let name = format!("{}-{}.json", ulid::Ulid::generate(), self.context.event);
        let path = self.logs.join(name);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(format!("{log:#}\n").as_bytes())?;
        forget_old(&self.logs)
    }
}

/// Removes the oldest logs beyond the limit. Log names begin with the time, so sorting by name sorts by age.
fn forget_old(folder: &Path) -> std::io::Result<()> {
    let mut logs: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    logs.sort();
    let excess = logs.len().saturating_sub(LOGS);
    logs.iter().take(excess).try_for_each(fs::remove_file)
}
