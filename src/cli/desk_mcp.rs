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

use super::tk::desk;
use crate::tracker::api_tool;
use crate::worker::desk_protocol::DeskResponse;
use crate::worker::desk_tools;

/// Option: also offers the tracker's own API, as the tool with this name.
pub const API: &str = "--api=";
/// Option: also offers to create follow-up tickets.
pub const FOLLOW_UPS: &str = "--follow-ups";
/// Option: offers only what a reviewer needs.
pub const READ_ONLY: &str = "--read-only";

struct DeskServer {
    tools: Vec<Tool>,
    socket: String,
    token: String,
}

pub fn serve(options: &[String]) -> ExitCode {
    let follow_ups = options.iter().any(|option| option == FOLLOW_UPS);
    let read_only = options.iter().any(|option| option == READ_ONLY);
    let api = options.iter().find_map(|option| option.strip_prefix(API)).and_then(api_tool);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(socket), Some(token)) = (variable("DIRIGENT_SOCKET"), variable("DIRIGENT_TOKEN")) else {
        eprintln!(
            "dirigent desk-mcp: DIRIGENT_SOCKET and DIRIGENT_TOKEN are not set; it is started by a worker's agent"
        );
        return ExitCode::FAILURE;
    };
    let tools = desk_tools::offered(read_only, follow_ups, api).into_iter().map(|tool| {
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
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dirigent desk-mcp: {error}");
            ExitCode::FAILURE
        }
    }
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
