//! Section `merge`: whether Dirigent merges work itself, and what must hold before it does.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;
use crate::domain::pr::MergeMethod;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = no_immediate_rebase)]
pub struct MergeSettings {
    /// `disabled`: a ready pull request waits until a person merges it. `auto`: Dirigent merges it.
    pub mode: MergeMode,
    /// `forge`: merges through the pull request. `local`: merges in this repository. `prompt`: a run of the agent with the merge prompt
    /// prepares the head (conflicts, changelog); Dirigent makes the merge itself.
    pub executor: MergeExecutor,
    #[schemars(schema_with = "methods")]
    pub method: MergeMethod,
    /// `queue`: one merge at a time per base branch; each head is first brought up to date with the base and checked. `immediate`: merges a
    /// head as soon as it is ready. `immediate` cannot be combined with `method: rebase`, because the rebased commits would not have been
    /// checked on their new base.
    pub strategy: MergeStrategy,
    pub max_rebase_attempts: u32,
    pub require_green_checks: bool,
    /// Whether only the very head that was checked and approved may be merged.
    pub require_head_match: bool,
    pub require_human_approval: bool,
    /// Ticket states that mean approval: moving a ticket into one of them approves the head of that moment.
    pub approval_states: Vec<String>,
    /// The state that a ticket is moved to when its work is merged. Default: the tracker's own.
    pub completion_state: Option<String>,
    /// For this long after a push, a head without any checks counts as pending.
    #[serde(rename = "checks_grace_ms", with = "wire::millis")]
    #[schemars(with = "wire::Millis")]
    pub checks_grace: Duration,
    /// What a head without any checks counts as after `checks_grace_ms`.
    pub no_checks: NoChecks,
    /// How often failed check jobs are run again before a rework run is started.
    pub rerun_failed_checks: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeMode {
    #[default]
    Disabled,
    Auto,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeExecutor {
    #[default]
    Forge,
    Local,
    Prompt,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    #[default]
    Queue,
    Immediate,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoChecks {
    #[default]
    Wait,
    Pass,
}

impl Default for MergeSettings {
    fn default() -> Self {
        Self {
            mode: MergeMode::default(),
            executor: MergeExecutor::default(),
            method: MergeMethod::Squash,
            strategy: MergeStrategy::default(),
            max_rebase_attempts: 2,
            require_green_checks: true,
            require_head_match: true,
            require_human_approval: true,
            approval_states: Vec::new(),
            completion_state: None,
            checks_grace: Duration::from_secs(120),
            no_checks: NoChecks::default(),
            rerun_failed_checks: 0,
        }
    }
}

impl MergeSettings {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.strategy == MergeStrategy::Immediate && self.method == MergeMethod::Rebase {
            problems.push(
                Problem::new("merge.strategy", "`merge.strategy: immediate` does not go with `merge.method: rebase`")
                    .with_help("its commits would land on a base that they were not checked on: use `strategy: queue`, or `method: squash` or `merge`")
                    .depending_on("merge.method"),
            );
        }
        problems
    }
}

fn no_immediate_rebase(schema: &mut Schema) {
    let both = serde_json::json!({
        "required": ["strategy", "method"],
        "properties": { "strategy": { "const": "immediate" }, "method": { "const": "rebase" } },
    });
    schema.insert("not".to_owned(), both);
}

fn methods(_: &mut SchemaGenerator) -> Schema {
    wire::one_of(&["squash", "merge", "rebase"])
}
