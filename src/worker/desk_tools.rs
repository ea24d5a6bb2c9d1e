//! The desk's verbs as tools, for agents that take tools from their host.

use serde_json::{Value, json};

use super::desk_protocol::DeskVerb;
use crate::agent::ToolSpec;

const PREFIX: &str = "ticket_";

/// The tools that a run is offered.
pub fn offered(allow_followups: bool) -> Vec<ToolSpec> {
    let text = |name: &str, about: &str| {
        let properties = json!({ name: { "type": "string", "description": about } });
        json!({ "type": "object", "properties": properties, "required": [name] })
    };
    let mut tools = vec![
        tool(
            "show",
            "Shows the ticket of this run with its comments; with `new` only what was said since the last look.",
            json!({ "type": "object", "properties": { "new": { "type": "boolean" } } }),
        ),
        tool("comment", "Writes a comment on the ticket of this run.", text("text", "Markdown")),
        tool(
            "done",
            "Declares the ticket of this run done. End your turn afterwards.",
            text("summary", "What was done"),
        ),
        tool(
            "blocked",
            "Declares that the work cannot go on without a person. End your turn afterwards.",
            text("reason", "Exactly what is needed"),
        ),
    ];
    if allow_followups {
        tools.push(tool("create", "Creates a follow-up ticket.", {
            let properties = json!({ "title": { "type": "string" }, "description": { "type": "string" } });
            json!({ "type": "object", "properties": properties, "required": ["title"] })
        }));
    }
    tools
}

fn tool(verb: &str, description: &str, input_schema: Value) -> ToolSpec {
    ToolSpec { name: format!("{PREFIX}{verb}"), description: description.into(), input_schema }
}

/// What a call of one of them means; the error is for the agent.
pub fn read(name: &str, arguments: &Value) -> Result<DeskVerb, String> {
    let verb = name.strip_prefix(PREFIX).ok_or_else(|| format!("there is no tool `{name}`"))?;
    let arguments = if arguments.is_null() { json!({}) } else { arguments.clone() };
    serde_json::from_value(json!({ "verb": verb, "args": arguments }))
        .map_err(|error| format!("`{name}` does not understand its arguments: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offered_tool_is_a_verb() {
        let arguments = json!({ "text": "a", "summary": "b", "reason": "c", "title": "d" });
        for tool in offered(true) {
            read(&tool.name, &arguments).unwrap();
        }
        assert!(read("ticket_show", &Value::Null).is_ok());
        assert!(read("shell", &arguments).unwrap_err().contains("no tool `shell`"));
        assert!(read("ticket_done", &json!({})).unwrap_err().contains("summary"));
    }

    #[test]
    fn follow_ups_are_offered_only_where_allowed() {
        assert!(!offered(false).iter().any(|tool| tool.name == "ticket_create"));
    }
}
