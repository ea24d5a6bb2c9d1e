//! Section `acp`: any agent that speaks the Agent Client Protocol (ACP).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codex::Timeouts;

/// Any agent that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcpSettings {
    /// The command that starts the agent. Required when a worker runs on `acp`.
    pub command: String,
    pub model: Option<String>,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}
