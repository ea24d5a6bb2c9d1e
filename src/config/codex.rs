//! Section `codex`: the Codex app server. Also the type of the three time limits that every runtime has.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire;

/// The Codex app server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CodexSettings {
    /// The command that starts the app server, run by `bash -c` in the workspace.
    pub command: String,
    pub model: Option<String>,
    /// The model's reasoning effort, unless a route sets another.
    pub reasoning_effort: Option<String>,
    /// Passed on to Codex unchanged.
    pub service_tier: Option<String>,
    /// Whether Codex gets its own home directory, with the user's login and settings but without the user's MCP servers and plugins.
    pub isolated_home: bool,
    /// Passed on to Codex unchanged, like the next two keys.
    #[schemars(with = "Option<wire::Anything>")]
    pub approval_policy: Option<serde_json::Value>,
    #[schemars(with = "Option<wire::Anything>")]
    pub thread_sandbox: Option<serde_json::Value>,
    #[schemars(with = "Option<wire::Anything>")]
    pub turn_sandbox_policy: Option<serde_json::Value>,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}

/// How long an agent may be silent. Zero or less turns a limit off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timeouts {
    /// The longest silence inside a turn.
    #[serde(rename = "turn_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::MillisOrOff")]
    pub turn: Duration,
    /// The longest wait for the response to one protocol request.
    #[serde(rename = "read_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::MillisOrOff")]
    pub read: Duration,
    /// The longest time without any event from the agent itself.
    #[serde(rename = "stall_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::MillisOrOff")]
    pub stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { turn: Duration::from_secs(3600), read: Duration::from_secs(5), stall: Duration::from_secs(300) }
    }
}

impl Default for CodexSettings {
    fn default() -> Self {
        Self {
            command: "codex app-server".to_owned(),
            model: None,
            reasoning_effort: None,
            service_tier: None,
            isolated_home: false,
            approval_policy: None,
            thread_sandbox: None,
            turn_sandbox_policy: None,
            timeouts: Timeouts::default(),
        }
    }
}
