//! Section `review`: a separate read-only run of an agent that reviews the head before people do.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::wire;
use super::worker::Runtime;
use crate::domain::finding::Severity;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReviewSettings {
    pub enabled: bool,
    /// The reviewer's profile, by its file's name: a prompt of Codex, or an agent of Claude Code or of pi. Without such a file the built-in
    /// reviewer is used.
    pub agent: Option<String>,
    /// The runtime of the reviewer. Default: `worker.runtime`.
    pub runtime: Option<Runtime>,
    pub model: Option<String>,
    /// The model's provider, for agents that need one.
    pub model_provider: Option<String>,
    pub thinking_level: Option<String>,
    pub output_format: ReviewFormat,
    /// The most reviews of one ticket.
    #[schemars(range(min = 1))]
    pub max_passes: u32,
    /// Bots whose remarks lead to one round of rework.
    pub bots: Vec<String>,
    /// Findings of these severities lead to rework.
    #[schemars(schema_with = "severities")]
    pub fix_consideration_severities: Vec<Severity>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewFormat {
    #[default]
    StructuredMarkdownV1,
}

impl Default for ReviewSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            agent: None,
            runtime: None,
            model: None,
            model_provider: None,
            thinking_level: None,
            output_format: ReviewFormat::default(),
            max_passes: 2,
            bots: Vec::new(),
            fix_consideration_severities: vec![Severity::P0, Severity::P1, Severity::P2],
        }
    }
}

fn severities(_: &mut SchemaGenerator) -> Schema {
    let one = wire::one_of(&Severity::ALL.map(Severity::name));
    schemars::json_schema!({ "type": "array", "items": one })
}
