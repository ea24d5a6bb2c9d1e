//! Requests of the Codex server. Each gets exactly one response; one that cannot be served is refused at once, so that no turn waits for
//! it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::conversation::{about, text};
use crate::agent::{AgentEvent, Answer, Question, Reaction, ToolSpec};

#[derive(Debug)]
enum Ask {
    /// Answered with `accept` or `decline`.
    Decision,
    /// The older pair of requests, answered with `approved` or `denied`.
    Review,
    Permissions(Value),
    /// The ids of the questions, and the first choice of each.
    Input(Vec<(String, Option<String>)>),
    Elicitation,
    Tool,
}

#[derive(Debug, Default)]
pub(super) struct Asks {
    offered: Vec<String>,
    open: BTreeMap<String, (Value, Ask)>,
}

impl Asks {
    pub fn offer(&mut self, tools: &[ToolSpec]) {
        self.offered = tools.iter().map(|tool| tool.name.clone()).collect();
    }

    pub fn clear(&mut self) {
        self.open.clear();
    }

    pub fn resolved(&mut self, id: &Value) {
        self.open.remove(&id.to_string());
    }

    pub fn request(&mut self, id: &Value, method: &str, params: &Value, out: &mut Reaction) {
        let approval = |tool: &str, about: String| Question::Approval { tool: tool.to_owned(), about };
        let (ask, question) = match method {
            "item/commandExecution/requestApproval" => (Ask::Decision, approval("shell", command(params))),
            "item/fileChange/requestApproval" => {
                (Ask::Decision, approval("apply_patch", text(params, "/reason").to_owned()))
            }
            "item/permissions/requestApproval" => {
                let wanted = params["permissions"].clone();
                (Ask::Permissions(wanted.clone()), approval("permissions", about(&wanted)))
            }
            "execCommandApproval" => (Ask::Review, approval("shell", command(params))),
            "applyPatchApproval" => (Ask::Review, approval("apply_patch", text(params, "/reason").to_owned())),
            "item/tool/requestUserInput" => input(&params["questions"]),
            "mcpServer/elicitation/request" => {
                let question = Question::Input { text: text(params, "/message").to_owned(), choices: Vec::new() };
                (Ask::Elicitation, question)
            }
            "item/tool/call" => {
                let name = text(params, "/tool").to_owned();
                if !self.offered.contains(&name) {
                    let output = format!("there is no tool `{name}` here; offered are: {}", self.offered.join(", "));
                    out.say(&json!({"id": id, "result": tool_result(false, &output)}));
                    out.tell(AgentEvent::UnsupportedTool { name });
                    return;
                }
                (Ask::Tool, Question::Tool { name, arguments: params["arguments"].clone() })
            }
            _ => {
                let message = format!("`{method}` is not served here");
                out.say(&json!({"id": id, "error": {"code": -32601, "message": message}}));
                return;
            }
        };
        let key = id.to_string();
        if self.open.insert(key.clone(), (id.clone(), ask)).is_none() {
            out.tell(AgentEvent::Asked { ask: key, question });
        }
    }

    pub fn answer(&mut self, ask: &str, answer: &Answer) -> Reaction {
        let mut out = Reaction::default();
        let Some((id, ask)) = self.open.remove(ask) else { return out };
        let yes = matches!(answer, Answer::Allow);
        let result = match ask {
            Ask::Decision => json!({"decision": if yes { "accept" } else { "decline" }}),
            Ask::Review => json!({"decision": if yes { "approved" } else { "denied" }}),
            Ask::Permissions(wanted) if yes => json!({"permissions": wanted, "scope": "turn"}),
            Ask::Permissions(_) => json!({"permissions": {}}),
            Ask::Input(questions) => {
                let answers: serde_json::Map<String, Value> =
                    questions.into_iter().map(|(id, first)| (id, json!({"answers": [words(answer, first)]}))).collect();
                json!({"answers": answers})
            }
            Ask::Elicitation => match answer {
                Answer::Allow => json!({"action": "accept", "content": {}}),
                Answer::Text(text) => match serde_json::from_str::<Value>(text) {
                    Ok(content) if content.is_object() => json!({"action": "accept", "content": content}),
                    _ => json!({"action": "decline"}),
                },
                _ => json!({"action": "decline"}),
            },
            Ask::Tool => match answer {
                Answer::ToolResult { success, output } => tool_result(*success, output),
                Answer::Text(text) => tool_result(true, text),
                Answer::Allow => tool_result(false, "the tool was allowed but not run"),
                Answer::Deny { because } => tool_result(false, because),
            },
        };
        out.say(&json!({"id": id, "result": result}));
        out
    }
}

fn tool_result(success: bool, output: &str) -> Value {
    json!({"contentItems": [{"type": "inputText", "text": output}], "success": success})
}

fn words(answer: &Answer, first_choice: Option<String>) -> String {
    match answer {
        Answer::Text(text) => text.clone(),
        Answer::Allow => first_choice.unwrap_or_else(|| "yes".to_owned()),
        Answer::Deny { because } => because.clone(),
        Answer::ToolResult { output, .. } => output.clone(),
    }
}

fn command(params: &Value) -> String {
    match &params["command"] {
        Value::String(command) => command.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => text(params, "/reason").to_owned(),
    }
}

fn input(questions: &Value) -> (Ask, Question) {
    let questions = questions.as_array().map(Vec::as_slice).unwrap_or_default();
    let labels = |question: &Value| -> Vec<String> {
        let options = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        options.iter().map(|option| text(option, "/label").to_owned()).collect()
    };
    let ids = questions.iter().map(|one| (text(one, "/id").to_owned(), labels(one).into_iter().next())).collect();
    let texts: Vec<&str> = questions.iter().map(|question| text(question, "/question")).collect();
    let choices = if let [only] = questions { labels(only) } else { Vec::new() };
    (Ask::Input(ids), Question::Input { text: texts.join("\n"), choices })
}
