//! Section `orchestration`: phases, rework, ownership, and the ticket states that follow the phases.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::policy::OnComment;
use super::problem::Problem;
use super::wire;
use crate::domain::phase::{Phase, PhaseClass};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OrchestrationSettings {
    /// `ledger` keeps the job in the ledger only. `workpad` also shows it in a comment on its ticket, the workpad.
    pub phase_store: PhaseStore,
    /// Has no effect; accepted because existing files have it. Must be `implementing` or `queued`.
    #[schemars(schema_with = "phase")]
    pub default_phase: Option<Phase>,
    /// Has no effect; accepted because existing files have it. May only contain phases that are passive.
    #[schemars(schema_with = "phases")]
    pub passive_phases: Vec<Phase>,
    /// The most rework runs of one ticket before it is blocked.
    #[schemars(range(min = 1))]
    pub max_rework_cycles: u32,
    /// Ticket states that ask for rework: moving a ticket into one of them starts a rework run.
    pub rework_states: Vec<String>,
    /// What a trusted comment does to a ticket that waits for people.
    pub on_comment: OnComment,
    /// Who is mentioned in comments that need a person.
    pub mention: MentionWhom,
    pub ownership: Ownership,
    /// The state that a ticket is moved to when its job enters a phase, by phase.
    #[schemars(schema_with = "states")]
    pub states: BTreeMap<Phase, String>,
    /// The workpad comment is written at most once in this time.
    #[serde(rename = "comment_min_interval_ms", with = "wire::millis")]
    #[schemars(with = "wire::Millis")]
    pub comment_min_interval: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStore {
    Workpad,
    #[default]
    Ledger,
}

/// Who is mentioned in comments that need a person, on boards that have accounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MentionWhom {
    #[default]
    Author,
    Assignees,
    None,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ownership {
    /// A label that a ticket must have before Dirigent does anything with it.
    pub required_label: Option<String>,
    /// The first line of the workpad comment.
    pub required_workpad_marker: Option<String>,
}

/// The workpad's first line where the workflow file sets none.
pub const DEFAULT_WORKPAD_MARKER: &str = "## Dirigent Workpad";

impl Default for OrchestrationSettings {
    fn default() -> Self {
        Self {
            phase_store: PhaseStore::default(),
            default_phase: None,
            passive_phases: Vec::new(),
            max_rework_cycles: 3,
            rework_states: vec!["Rework".to_owned()],
            on_comment: OnComment::default(),
            mention: MentionWhom::default(),
            ownership: Ownership::default(),
            states: BTreeMap::new(),
            comment_min_interval: Duration::from_secs(30),
        }
    }
}

impl OrchestrationSettings {
    pub fn workpad_marker(&self) -> &str {
        self.ownership.required_workpad_marker.as_deref().unwrap_or(DEFAULT_WORKPAD_MARKER)
    }

    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(phase) = self.default_phase.filter(|phase| !matches!(phase, Phase::Queued | Phase::Implementing)) {
            problems.push(
                Problem::new(
                    "orchestration.default_phase",
                    format!("work does not start in phase `{phase}`: the phases are built in"),
                )
                .with_help("write `implementing`, or remove the key"),
            );
        }
        for phase in self.passive_phases.iter().filter(|phase| phase.class() != PhaseClass::Passive) {
            let passive: Vec<&str> = Phase::ALL
                .iter()
                .filter(|phase| phase.class() == PhaseClass::Passive)
                .map(|phase| phase.name())
                .collect();
            problems.push(
                Problem::new(
                    "orchestration.passive_phases",
                    format!("phase `{phase}` is not passive: the phases are built in"),
                )
                .with_help(format!("passive are {}", passive.join(", "))),
            );
        }
        let ownership = &self.ownership;
        for (key, value) in [
            ("orchestration.ownership.required_label", &ownership.required_label),
            ("orchestration.ownership.required_workpad_marker", &ownership.required_workpad_marker),
        ] {
            if value.as_deref().is_some_and(|value| value.trim().is_empty()) {
                problems.push(
                    Problem::new(key, format!("`{key}` is empty"))
                        .with_help("an empty value never means permission; name one, or remove the key"),
                );
            }
        }
        problems
    }
}

fn phase_names() -> Vec<&'static str> {
    Phase::ALL.iter().map(|phase| phase.name()).collect()
}

fn phase(_: &mut SchemaGenerator) -> Schema {
    wire::one_of(&phase_names())
}

fn phases(_: &mut SchemaGenerator) -> Schema {
    wire::list_of(&phase_names())
}

fn states(_: &mut SchemaGenerator) -> Schema {
    let properties: serde_json::Map<String, serde_json::Value> =
        phase_names().into_iter().map(|name| (name.to_owned(), serde_json::json!({ "type": "string" }))).collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}
