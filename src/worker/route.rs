//! The agent that does a run, as the engine has routed it.

use crate::config::worker::Runtime;
use crate::domain::route::Route;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub runtime: Runtime,
    pub model: Option<String>,
    pub model_provider: Option<String>,
    pub thinking_level: Option<String>,
    pub template: Option<String>,
}

impl Chosen {
    /// Converts a route. `default` is the runtime for a route whose runtime this version does not know.
    pub fn of(route: &Route, default: Runtime) -> Self {
        Self {
            runtime: Runtime::ALL.into_iter().find(|runtime| runtime.name() == route.runtime).unwrap_or(default),
            model: route.model.clone(),
            model_provider: route.model_provider.clone(),
            thinking_level: route.thinking_level.clone(),
            template: route.prompt.clone(),
        }
    }
}
