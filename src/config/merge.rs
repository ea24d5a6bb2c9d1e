//! `merge`: whether Dirigent lands work itself, and what must hold first.

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
    /// `disabled`: a ready pull request rests until a person merges it.
    pub mode: MergeMode,
    /// `forge`: through the pull request. `local`: in this repository. `prompt`: a run of the agent with the merge prompt prepares the
    /// head (conflicts, changelog); the merge itself stays ours.
    pub executor: MergeExecutor,
    #[schemars(schema_with = "methods")]
    pub method: MergeMethod,
    /// `queue`: one at a time per base branch, each brought up to date with it and checked before. `immediate`: as soon as it is ready;
    /// not with `method: rebase`, whose commits nobody would have checked on the base that they end up on.
    pub strategy: MergeStrategy,
    pub max_rebase_attempts: u32,
    pub require_green_checks: bool,
    /// The head that was checked and approved is the head that is merged.
    pub require_head_match: bool,
    pub require_human_approval: bool,
    /// A ticket that enters one of these approves the head of that moment.
    pub approval_states: Vec<String>,
    /// Default: the tracker's own.
    pub completion_state: Option<String>,
    /// For so long after a push, no checks at all means pending.
    #[serde(rename = "checks_grace_ms", with = "wire::millis")]
    #[schemars(with = "wire::Millis")]
    pub checks_grace: Duration,
    /// What no checks at all means after that.
    pub no_checks: NoChecks,
    /// How often failed jobs run again before a rework is paid for.
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
