//! `waves`: tickets in layers of their dependency graph.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WavesSettings {
    /// A wave opens when the one before is verified.
    pub enabled: bool,
}
