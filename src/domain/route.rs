//! Which agent does a run. Decided when the run is.

use serde::{Deserialize, Serialize};

use super::ids::PoolName;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The runtime's name, as `worker.runtime` spells it.
    pub runtime: String,
    pub model: Option<String>,
    pub model_provider: Option<String>,
    pub thinking_level: Option<String>,
    /// A template of the repository, used in place of the workflow's prompt.
    pub prompt: Option<String>,
    /// The credential pool: runs of the same pool share one usage limit.
    pub pool: PoolName,
}
