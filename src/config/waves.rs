//! Section `waves`: working on tickets in layers (waves) of their dependency graph.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WavesSettings {
    /// Whether a wave starts only when the one before is verified.
    pub enabled: bool,
}
