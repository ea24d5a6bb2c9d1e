//! `observability`: what is shown and written for people and other programs.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObservabilitySettings {
    /// The live table of `run` on a terminal.
    pub dashboard_enabled: bool,
    /// The live table is drawn again at least this often.
    #[serde(rename = "refresh_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub refresh: Duration,
    /// And at most this often.
    #[serde(rename = "render_interval_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub render_interval: Duration,
    /// Default: `.bkit/agent-state.json` in the repository.
    #[schemars(with = "wire::PathText")]
    pub agent_state_file: PathBuf,
    pub log: LogFormat,
    /// Serve `/metrics`.
    pub metrics: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Default for ObservabilitySettings {
    fn default() -> Self {
        Self {
            dashboard_enabled: true,
            refresh: Duration::from_secs(1),
            render_interval: Duration::from_millis(200),
            agent_state_file: PathBuf::from(".bkit/agent-state.json"),
            log: LogFormat::default(),
            metrics: false,
        }
    }
}
