//! The permission requests of Claude, which it sends before a tool runs (`can_use_tool`). A question to the user is the same request for
//! the tool `AskUserQuestion`. Every other request of the client is refused at once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::conversation::{about, text};
use crate::agent::{AgentEvent, Answer, Question, Reaction};

const QUESTION_TOOL: &str = "AskUserQuestion";

#[derive(Debug)]
struct Ask {
    question: bool,
    input: Value,
}

#[derive(Debug, Default)]
pub(super) struct Asks {
    open: BTreeMap<String, Ask>,
}

impl Asks {
    pub fn clear(&mut self) {
        self.open.clear();
    }

    pub fn cancelled(&mut self, id: &str) {
        self.open.remove(id);
    }

    pub fn request(&mut self, message: &Value, out: &mut Reaction) {
        let id = text(message, "/request_id");
        let request = &message["request"];
        if text(request, "/subtype") != "can_use_tool" {
            let error = format!("`{}` is not served here", text(request, "/subtype"));
            out.say(&json!({"type": "control_response",
                            "response": {"subtype": "error", "request_id": id, "error": error}}));
            return;
        }
        let tool = text(request, "/tool_name");
        let input = request["input"].clone();
        let question = if tool == QUESTION_TOOL {
            asked(&input)
        } else {
            Question::Approval { tool: tool.to_owned(), about: about(&input) }
        };
        let ask = Ask { question: tool == QUESTION_TOOL, input };
        if self.open.insert(id.to_owned(), ask).is_none() {
            out.tell(AgentEvent::Asked { ask: id.to_owned(), question });
        }
    }

    pub fn answer(&mut self, id: &str, answer: &Answer) -> Reaction {
        let mut out = Reaction::default();
        let Some(ask) = self.open.remove(id) else { return out };
        let response = match answer {
            Answer::Allow if ask.question => with_answers(ask.input, None),
            Answer::Allow => json!({"behavior": "allow", "updatedInput": ask.input}),
            Answer::Text(text) if ask.question => with_answers(ask.input, Some(text)),
            Answer::Text(text) => json!({"behavior": "deny", "message": text}),
            Answer::Deny { because } => json!({"behavior": "deny", "message": because}),
            Answer::ToolResult { output, .. } => json!({"behavior": "deny", "message": output}),
        };
        out.say(&json!({"type": "control_response",
                        "response": {"subtype": "success", "request_id": id, "response": response}}));
        out
    }
}

fn questions(input: &Value) -> &[Value] {
    input["questions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn labels(question: &Value) -> Vec<String> {
    let options = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    options.iter().map(|option| text(option, "/label").to_owned()).collect()
}

fn asked(input: &Value) -> Question {
    let all = questions(input);
    let texts: Vec<&str> = all.iter().map(|question| text(question, "/question")).collect();
    let choices = if let [only] = all { labels(only) } else { Vec::new() };
    Question::Input { text: texts.join("\n"), choices }
}

/// Answers every question with the same words; without words, with the first choice of each.
fn with_answers(mut input: Value, words: Option<&str>) -> Value {
    let answers: serde_json::Map<String, Value> = questions(&input)
        .iter()
        .map(|question| {
            let first = || labels(question).into_iter().next().unwrap_or_else(|| "yes".to_owned());
            (text(question, "/question").to_owned(), json!(words.map_or_else(first, str::to_owned)))
        })
        .collect();
    if let Value::Object(fields) = &mut input {
        fields.insert("answers".to_owned(), Value::Object(answers));
    }
    json!({"behavior": "allow", "updatedInput": input})
}
