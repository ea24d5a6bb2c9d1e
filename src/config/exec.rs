//! Section `exec`: any program as an agent. The program gets the prompt on its stdin and in the file `$DIRIGENT_PROMPT_FILE`; its exit
//! code is the result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codex::Timeouts;

/// Any program as an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExecSettings {
    /// The command line of the program. Required when a worker runs on `exec`.
    pub command: String,
    /// How the program's output is read.
    pub events: ExecEvents,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecEvents {
    /// Lines are plain text; each line shows that the program is alive.
    #[default]
    Plain,
    /// Lines are JSON events.
    Jsonl,
}
