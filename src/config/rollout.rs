//! Section `rollout`: how much Dirigent may change, and the switches that stop it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::RolloutMode;
use super::problem::Problem;
use super::wire;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RolloutSettings {
    /// `observe` changes nothing outside, `mutate` does everything except merges, `merge` does everything.
    pub mode: RolloutMode,
    /// Whether `mutate` and `merge` are refused until `dirigent doctor` has passed for exactly this content of the workflow file.
    pub preflight_required: bool,
    /// A label that stops all work on the ticket or pull request that has it.
    pub kill_switch_label: String,
    /// While this file exists, nothing runs. Default: `.dirigent/pause` in the repository.
    #[schemars(with = "wire::PathText")]
    pub kill_switch_file: PathBuf,
}

impl Default for RolloutSettings {
    fn default() -> Self {
        Self {
            mode: RolloutMode::Observe,
            preflight_required: false,
            kill_switch_label: "dirigent-pause".to_owned(),
            kill_switch_file: PathBuf::from(".dirigent/pause"),
        }
    }
}

impl RolloutSettings {
    pub fn check(&self) -> Vec<Problem> {
        if self.kill_switch_label.trim().is_empty() {
            let help = "name a label, or remove the key to get `dirigent-pause`";
            return vec![
                Problem::new("rollout.kill_switch_label", "`rollout.kill_switch_label` is empty").with_help(help),
            ];
        }
        Vec::new()
    }
}
