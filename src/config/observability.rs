//! Section `observability`: what the runner shows and writes for people and other programs.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::notify::NotifySettings;
use super::problem::Problem;
use super::wire;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObservabilitySettings {
    /// Whether `run` shows its live table on a terminal.
    pub dashboard_enabled: bool,
    /// The live table is drawn again at least this often.
    #[serde(rename = "refresh_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub refresh: Duration,
    /// The live table is drawn again at most this often.
    #[serde(rename = "render_interval_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub render_interval: Duration,
    /// Where `agent-state.json` is written. Default: `.bkit/agent-state.json` in the repository.
    #[schemars(with = "wire::PathText")]
    pub agent_state_file: PathBuf,
    /// What `agent-state.json` says about the team as a whole.
    pub agent_state: AgentStateSettings,
    /// Receivers of notifications.
    pub notify: Vec<NotifySettings>,
    pub log: LogFormat,
    /// Whether the server serves `/metrics`.
    pub metrics: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentStateSettings {
    /// Default: the name of the repository's folder.
    pub team_name: Option<String>,
    /// The leader's model. Default: the one of these three that comes closest to the workers' model.
    pub cto_agent: Option<ModelTier>,
    pub orchestration_pattern: OrchestrationPattern,
    /// Default: a new id at every start of the runner.
    pub session_id: Option<String>,
}

/// The three model names that readers of `agent-state.json` know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelTier {
    Opus,
    #[default]
    Sonnet,
    Haiku,
}

impl ModelTier {
    /// Finds the tier whose name the model's name contains; `Sonnet` if it contains none.
    pub fn of(model: &str) -> Self {
        let model = model.to_lowercase();
        [Self::Opus, Self::Haiku].into_iter().find(|tier| model.contains(tier.name())).unwrap_or_default()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Opus => "opus",
            Self::Sonnet => "sonnet",
            Self::Haiku => "haiku",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrchestrationPattern {
    #[default]
    Leader,
    Swarm,
    Council,
    Watchdog,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One short line per event, for people.
    #[default]
    Text,
    /// One line per event, with every field.
    Full,
    /// One JSON object per event and line.
    Json,
}

impl Default for ObservabilitySettings {
    fn default() -> Self {
        Self {
            dashboard_enabled: true,
            refresh: Duration::from_secs(1),
            render_interval: Duration::from_millis(200),
            agent_state_file: PathBuf::from(".bkit/agent-state.json"),
            agent_state: AgentStateSettings::default(),
            notify: Vec::new(),
            log: LogFormat::default(),
            metrics: false,
        }
    }
}

impl ObservabilitySettings {
    pub fn check(&self) -> Vec<Problem> {
        let places = self.notify.iter().enumerate();
        places.flat_map(|(index, notify)| notify.check(&format!("observability.notify[{index}]"))).collect()
    }
}
