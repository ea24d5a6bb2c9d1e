//! The items of a Codex turn: messages and tool calls.

use serde_json::Value;

use crate::agent::conversation::{Turn, about, text};
use crate::agent::{AgentEvent, Reaction};

pub(super) fn started(item: &Value, turn: &mut Turn, out: &mut Reaction) {
    if text(item, "/type") == "userMessage" {
        let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for part in parts {
            turn.heard(text(part, "/text"));
        }
    } else if let Some((name, about)) = tool(item) {
        turn.tool_started(text(item, "/id"), &name, &about, out);
    }
}

pub(super) fn completed(item: &Value, turn: &mut Turn, out: &mut Reaction) {
    if text(item, "/type") == "agentMessage" {
        let message = text(item, "/text");
        if !message.is_empty() {
            out.tell(AgentEvent::Message { text: message.to_owned() });
        }
    } else if tool(item).is_some() {
        turn.tool_finished(text(item, "/id"), succeeded(item), out);
    }
}

fn succeeded(item: &Value) -> bool {
    let status = text(item, "/status");
    let exit = item.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
    (status.is_empty() || status == "completed") && exit == 0 && item["success"] != false
}

fn tool(item: &Value) -> Option<(String, String)> {
    let kind = text(item, "/type");
    let pair = match kind {
        "commandExecution" => ("shell".to_owned(), text(item, "/command").to_owned()),
        "fileChange" => {
            let paths = item["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let paths: Vec<&str> = paths.iter().map(|change| text(change, "/path")).collect();
            ("apply_patch".to_owned(), paths.join(" "))
        }
        "mcpToolCall" => (format!("{}.{}", text(item, "/server"), text(item, "/tool")), about(&item["arguments"])),
        "dynamicToolCall" => (text(item, "/tool").to_owned(), about(&item["arguments"])),
        "collabAgentToolCall" => (text(item, "/tool").to_owned(), text(item, "/prompt").to_owned()),
        "webSearch" => ("web_search".to_owned(), text(item, "/query").to_owned()),
        "imageGeneration" | "sleep" => (kind.to_owned(), String::new()),
        _ => return None,
    };
    Some(pair)
}
