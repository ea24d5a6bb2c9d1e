//! `dirigent desk-mcp`: an MCP server on stdin and stdout that offers the desk's verbs (what the worker's `tk` can say to the runner) as
//! tools. It is for agents whose sandbox blocks `tk`.
//!
//! The agent starts it outside its sandbox, with the run's socket and token in its environment. It sends the same requests as `tk`.

use std::process::ExitCode;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use rmcp::transport::stdio;
use serde_json::Value;

use super::Failure;
use super::args::DeskMcpArgs;
use super::tk::desk;
use crate::tracker::api_tool;
use crate::worker::desk_protocol::DeskResponse;
use crate::worker::desk_tools;

struct DeskServer {
    tools: Vec<Tool>,
    socket: String,
    token: String,
}

/// Serves until the agent closes the connection.
pub fn serve(args: &DeskMcpArgs) -> Result<ExitCode, Failure> {
    let api = match &args.api {
        Some(name) => {
            let unknown = || Failure::Usage(format!("desk-mcp: no tracker has an API tool named `{name}`"));
            Some(api_tool(name).ok_or_else(unknown)?)
        }
        None => None,
    };
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(socket), Some(token)) = (variable("DIRIGENT_SOCKET"), variable("DIRIGENT_TOKEN")) else {
        return Err(Failure::plain(
            "desk-mcp: DIRIGENT_SOCKET and DIRIGENT_TOKEN are not set; it is started by a worker's agent",
        ));
    };
    let tools = desk_tools::offered(args.read_only, args.follow_ups, api).into_iter().map(|tool| {
        let schema = tool.input_schema.as_object().cloned().unwrap_or_default();
        Tool::new(tool.name, tool.description, schema)
    });
    let server = DeskServer { tools: tools.collect(), socket, token };
    let work = async {
        let running = server.serve(stdio()).await.map_err(|error| error.to_string())?;
        running.waiting().await.map(|_| ()).map_err(|error| error.to_string())
    };
    let served = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(error.to_string()),
    };
    served.map(|()| ExitCode::SUCCESS).map_err(|error| Failure::plain(format!("desk-mcp: {error}")))
}

impl ServerHandler for DeskServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("dirigent-desk", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "The ticket that this run works on: show it, comment, prove, answer, and declare the end.",
            )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, rmcp::ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, rmcp::ErrorData> {
        let arguments = call.arguments.map_or(Value::Null, Value::Object);
        let answer = match desk_tools::read(&call.name, &arguments) {
            Ok(verb) => {
                let (socket, token) = (self.socket.clone(), self.token.clone());
                let asked = tokio::task::spawn_blocking(move || desk::send(&socket, &token, verb)).await;
                asked.unwrap_or_else(|error| Err(error.to_string()))
            }
            Err(error) => Err(error),
        };
        Ok(result(answer).into())
    }
}

fn result(answer: Result<DeskResponse, String>) -> CallToolResult {
    match answer {
        Ok(DeskResponse { ok: true, text, .. }) => {
            CallToolResult::success(vec![ContentBlock::text(text.unwrap_or_default())])
        }
        Ok(refusal) => {
            let words = refusal.error.map_or_else(|| "the runner refused without a reason".to_owned(), |e| e.message);
            CallToolResult::error(vec![ContentBlock::text(words)])
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error)]),
    }
}
