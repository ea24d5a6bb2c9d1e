//! `merge`: whether Dirigent lands work itself, and what must hold first.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::domain::pr::MergeMethod;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MergeSettings {
    /// `disabled`: a ready pull request rests until a person merges it.
    pub mode: MergeMode,
    /// `forge`: through the pull request. `local`: in this repository. `prompt`: an agent with the merge prompt.
    pub executor: MergeExecutor,
    #[schemars(schema_with = "methods")]
    pub method: MergeMethod,
    /// `queue`: one at a time per base branch. `immediate`: as soon as it is ready.
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

fn methods(_: &mut SchemaGenerator) -> Schema {
    wire::one_of(&["squash", "merge", "rebase"])
}
