//! `codex`: the Codex app server, and the three time limits that the other runtimes inherit.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire;

/// The Codex app server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CodexSettings {
    /// Run by `bash -c` in the workspace.
    pub command: String,
    pub model: Option<String>,
    /// How hard the model thinks, where a route says nothing else.
    pub reasoning_effort: Option<String>,
    /// Passed on to Codex unchanged.
    pub service_tier: Option<String>,
    /// Give Codex a home of its own: the user's login and settings, without their MCP servers and plugins.
    pub isolated_home: bool,
    /// Passed on to Codex unchanged, like the two below.
    #[schemars(with = "Option<wire::Anything>")]
    pub approval_policy: Option<serde_json::Value>,
    #[schemars(with = "Option<wire::Anything>")]
    pub thread_sandbox: Option<serde_json::Value>,
    #[schemars(with = "Option<wire::Anything>")]
    pub turn_sandbox_policy: Option<serde_json::Value>,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}

/// How long an agent may be silent. Zero or less is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timeouts {
    /// Silence inside a turn.
    #[serde(rename = "turn_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::MillisOrOff")]
    pub turn: Duration,
    /// The answer to one request of the protocol.
    #[serde(rename = "read_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::MillisOrOff")]
    pub read: Duration,
    /// No event of the agent's own at all.
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
