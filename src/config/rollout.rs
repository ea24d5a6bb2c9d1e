//! `rollout`: how far Dirigent may go, and the switches that stop it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::RolloutMode;
use super::problem::Problem;
use super::wire;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RolloutSettings {
    /// `observe` writes nothing, `mutate` everything but merges, `merge` all.
    pub mode: RolloutMode,
    /// Refuse `mutate` and `merge` until `dirigent doctor` passed for this very content.
    pub preflight_required: bool,
    /// On a ticket or pull request: hands off.
    pub kill_switch_label: String,
    /// While this file exists nothing runs. Default: `.dirigent/pause` in the repository.
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
