//! `hooks`: shell scripts around a workspace's life. Run by `sh -c` in the workspace with
//! the user's login environment, never rewritten.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HooksSettings {
    /// After a workspace was made. A failure ends the attempt.
    pub after_create: Option<String>,
    /// Before the agent starts. A failure ends the attempt.
    pub before_run: Option<String>,
    /// After the agent ended. A failure is logged.
    pub after_run: Option<String>,
    /// Before the workspace is removed. A failure is logged.
    pub before_remove: Option<String>,
    /// For each of them.
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
