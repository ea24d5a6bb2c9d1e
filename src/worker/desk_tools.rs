//! The desk's verbs as tools, for agents that take tools from their host or from an MCP server.

use serde_json::{Value, json};

use super::desk_protocol::{AnswerKind, DeskVerb};
use crate::agent::ToolSpec;
use crate::domain::service::{API_TOOLS, ApiTool};

const PREFIX: &str = "ticket_";

/// Returns the tools that a run is offered. `api` is the tool of its tracker's own API.
pub fn offered(reads_only: bool, allow_followups: bool, api: Option<ApiTool>) -> Vec<ToolSpec> {
    let mut tools = vec![
        tool(
            "show",
            "Shows the ticket of this run with its comments; with `new` only what was said since the last look.",
            &[("new", json!({ "type": "boolean" }))],
            &[],
        ),
        tool("comment", "Writes a comment on the ticket of this run.", &[("text", text("Markdown"))], &["text"]),
        evidence(),
        tool(
            "answer",
            "Says what became of a remark that somebody made and that you were told. `fixed` needs a commit made since.",
            &[
                ("remark", text("Its name, such as r1a2b3c")),
                ("answer", one_of(&AnswerKind::ALL.map(AnswerKind::name))),
                ("text", text("What you did, or why not")),
            ],
            &["remark", "answer", "text"],
        ),
        tool(
            "done",
            "Declares the ticket of this run done. End your turn afterwards.",
            &[("summary", text("What was done"))],
            &["summary"],
        ),
        tool(
            "blocked",
            "Declares that the work cannot go on without a person. End your turn afterwards.",
            &[("reason", text("Exactly what is needed"))],
            &["reason"],
        ),
        tool(
            "failed",
            "Gives up: the run has failed with these words. End your turn afterwards.",
            &[("why", text("Why it cannot be done"))],
            &["why"],
        ),
    ];
    if reads_only {
        tools.retain(|tool| ["ticket_show", "ticket_done", "ticket_failed"].contains(&tool.name.as_str()));
    } else if allow_followups {
        tools.push(tool(
            "create",
            "Creates a follow-up ticket.",
            &[
                ("title", text("One line")),
                ("description", text("Markdown")),
                ("labels", json!({ "type": "array", "items": { "type": "string" } })),
            ],
            &["title"],
        ));
    }
    tools.extend(api.map(|api| ToolSpec {
        name: api.name.to_owned(),
        description: api.description.to_owned(),
        input_schema: api.input_schema,
    }));
    tools
}

/// Returns the tool for evidence. Its fields depend on `type`, so missing ones are reported when it is called.
fn evidence() -> ToolSpec {
    let number = || json!({ "type": "integer" });
    tool(
        "evidence",
        "Records a fact that proves the work. `command` wants command, exit_code and output; `test` wants passed and failed; \
         `file` wants path and action; `note` wants text. What can be checked is checked.",
        &[
            ("type", one_of(&["command", "test", "file", "note"])),
            ("command", text("The command line")),
            ("exit_code", number()),
            ("output", text("The end of what it printed")),
            ("passed", number()),
            ("failed", number()),
            ("path", text("Relative to the worktree")),
            ("action", one_of(&["created", "modified", "deleted"])),
            ("text", text("One sentence")),
        ],
        &["type"],
    )
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn one_of(values: &[&str]) -> Value {
    json!({ "type": "string", "enum": values })
}

fn tool(verb: &str, description: &str, properties: &[(&str, Value)], required: &[&str]) -> ToolSpec {
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let input_schema = json!({ "type": "object", "properties": properties, "required": required });
    ToolSpec { name: format!("{PREFIX}{verb}"), description: description.into(), input_schema }
}

/// Converts a call of one of these tools into a verb. The error is a message for the agent.
pub fn read(name: &str, arguments: &Value) -> Result<DeskVerb, String> {
    if API_TOOLS.contains(&name) {
        return Ok(DeskVerb::Api { request: arguments.clone(), tool: Some(name.to_owned()) });
    }
    let verb = name.strip_prefix(PREFIX).ok_or_else(|| format!("there is no tool `{name}`"))?;
    let arguments = match arguments {
        Value::Null => json!({}),
        // A tool's arguments hold the fields of the evidence directly.
        record if verb == "evidence" => json!({ "evidence": with_defaults(record) }),
        other => other.clone(),
    };
    serde_json::from_value(json!({ "verb": verb, "args": arguments }))
        .map_err(|error| format!("`{name}` does not understand its arguments: {error}"))
}

/// Fills in the same defaults as the command line.
fn with_defaults(record: &Value) -> Value {
    let mut record = record.clone();
    let default = match record["type"].as_str() {
        Some("command") => ("output", json!("")),
        Some("test") => ("failed", json!(0)),
        Some("file") => ("action", json!("modified")),
        _ => return record,
    };
    if let Some(fields) = record.as_object_mut() {
        fields.entry(default.0).or_insert(default.1);
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::EvidenceKind;

    #[test]
    fn every_verb_is_a_tool_and_every_tool_a_verb() {
        let arguments = json!({
            "text": "a", "summary": "b", "reason": "c", "title": "d", "why": "e", "remark": "r1", "answer": "fixed", "type": "note",
        });
        let mut names: Vec<String> = offered(false, true, None)
            .iter()
            .map(|tool| read(&tool.name, &arguments).unwrap().name().to_owned())
            .collect();
        names.sort_unstable();
        // Nobody waits for a plan, so no tool is offered for one.
        assert_eq!(names, ["answer", "blocked", "comment", "create", "done", "evidence", "failed", "show"]);
        assert!(read("ticket_show", &Value::Null).is_ok());
        assert!(read("shell", &arguments).unwrap_err().contains("no tool `shell`"));
        assert!(read("ticket_done", &json!({})).unwrap_err().contains("summary"));
    }

    #[test]
    fn evidence_lies_flat_and_says_what_is_missing() {
        let verb = read("ticket_evidence", &json!({ "type": "test", "passed": 3 })).unwrap();
        let evidence = EvidenceKind::Test { passed: 3, failed: 0 };
        assert_eq!(verb, DeskVerb::Evidence { evidence, ticket: None });
        let missing = read("ticket_evidence", &json!({ "type": "command", "command": "make" })).unwrap_err();
        assert!(missing.contains("exit_code"), "{missing}");
    }

    #[test]
    fn follow_ups_are_offered_only_where_allowed() {
        assert!(!offered(false, false, None).iter().any(|tool| tool.name == "ticket_create"));
        let read: Vec<String> = offered(true, true, None).into_iter().map(|tool| tool.name).collect();
        assert_eq!(read, ["ticket_show", "ticket_done", "ticket_failed"], "a reviewer writes nothing");
    }
}
