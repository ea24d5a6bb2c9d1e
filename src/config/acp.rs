//! `acp`: any Agent Client Protocol agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codex::Timeouts;

/// Any Agent Client Protocol agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcpSettings {
    /// Required when a worker runs on `acp`.
    pub command: String,
    pub model: Option<String>,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}
