//! The tracker's own API for agents. The runner sends the requests, so the worker never has a credential.

use async_trait::async_trait;
use serde_json::Value;

use super::TrackerError;
use crate::domain::permit::Permit;
use crate::domain::service::{ApiAnswer, ApiDeed, ApiScope, ApiTool};

/// The API that an adapter offers to the agents of its runs. Each adapter knows which requests it lets through; all others are
/// refused.
#[async_trait]
pub trait AgentApi: Send + Sync {
    fn tool(&self) -> ApiTool;

    /// Interprets a request without changing anything. The error is a sentence for the agent.
    async fn judge(&self, scope: &ApiScope, request: &Value) -> Result<ApiDeed, String>;

    /// Sends a request that was judged to be a read. An error concerns the connection; if the service refuses the request itself,
    /// the result is an `ApiAnswer` without success.
    async fn read_api(&self, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError>;

    /// Sends a request that was judged to be a write, once. The text that it writes carries the mark of `scope`.
    async fn write_api(&self, permit: &Permit, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError>;
}

/// Returns the API tool with this name. `None` if no adapter offers it.
pub fn api_tool(name: &str) -> Option<ApiTool> {
    [super::github::api_tool(), super::linear::api_tool()].into_iter().find(|tool| tool.name == name)
}
