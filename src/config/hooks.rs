//! Section `hooks`: shell scripts that run at points in the life of a workspace. They are run by `sh -c`, exactly as written, in the
//! workspace and with the user's login environment.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HooksSettings {
    /// Runs after a workspace was created. If it fails, the attempt ends.
    pub after_create: Option<String>,
    /// Runs before the agent starts. If it fails, the attempt ends.
    pub before_run: Option<String>,
    /// Runs after the agent has exited. A failure is only logged.
    pub after_run: Option<String>,
    /// Runs before the workspace is removed. A failure is only logged.
    pub before_remove: Option<String>,
    /// The time limit of each hook.
    #[serde(rename = "timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub timeout: Duration,
}

impl Default for HooksSettings {
    fn default() -> Self {
        Self {
            after_create: None,
            before_run: None,
            after_run: None,
            before_remove: None,
            timeout: Duration::from_secs(60),
        }
    }
}
