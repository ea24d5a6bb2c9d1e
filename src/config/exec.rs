//! `exec`: any program. The prompt is on its stdin and in `$DIRIGENT_PROMPT_FILE`; its exit code is the result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codex::Timeouts;

/// Any program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExecSettings {
    /// Required when a worker runs on `exec`.
    pub command: String,
    /// How its output is read.
    pub events: ExecEvents,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecEvents {
    /// Lines are text; each one shows that the program is alive.
    #[default]
    Plain,
    /// Lines are JSON events.
    Jsonl,
}
