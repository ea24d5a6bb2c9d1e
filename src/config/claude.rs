//! Section `claude`: Claude Code, driven over its stream-json protocol.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codex::Timeouts;

/// Claude Code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClaudeSettings {
    pub command: String,
    pub model: Option<String>,
    /// Passed on to Claude Code unchanged.
    pub permission_mode: Option<String>,
    pub allowed_tools: Vec<String>,
    /// Whether to add hooks to the run that record the agent's subagents. The user's own settings are not changed.
    pub hooks: bool,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}

impl Default for ClaudeSettings {
    fn default() -> Self {
        Self {
            command: "claude".to_owned(),
            model: None,
            permission_mode: None,
            allowed_tools: Vec::new(),
            hooks: true,
            timeouts: Timeouts::default(),
        }
    }
}
