//! The tracker's own API for agents, host-side: the worker never has a credential.

use async_trait::async_trait;
use serde_json::Value;

use super::TrackerError;
use crate::domain::permit::Permit;
use crate::domain::service::{ApiAnswer, ApiDeed, ApiScope, ApiTool};

/// What an adapter offers to the agents of its runs. Each adapter knows the requests that it lets through; all others are refused.
#[async_trait]
pub trait AgentApi: Send + Sync {
    fn tool(&self) -> ApiTool;

    /// Understands a request without changing anything; the error is a sentence for the agent.
    async fn judge(&self, scope: &ApiScope, request: &Value) -> Result<ApiDeed, String>;

    /// Sends a request that was judged to read. An error is one of the connection; what the service says about the request
    /// itself is an answer without success.
    async fn read_api(&self, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError>;

    /// Sends a request that was judged to write, with the mark of the scope in what is written. Sent once.
    async fn write_api(&self, permit: &Permit, scope: &ApiScope, request: &Value) -> Result<ApiAnswer, TrackerError>;
}

/// The tool of each adapter that has one, by its name.
pub fn api_tool(name: &str) -> Option<ApiTool> {
    [super::github::api_tool(), super::linear::api_tool()].into_iter().find(|tool| tool.name == name)
}
