//! Responses of the scripted model in the three APIs that clients use: OpenAI Responses, OpenAI chat completions, Anthropic messages.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Responses,
    Chat,
    Messages,
}

/// What the model does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    Call { tool: String, arguments: Value },
    Say(String),
}

const INPUT: u64 = 1000;
const CACHED: u64 = 400;
const OUTPUT: u64 = 20;

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is(value: &Value, name: &str, wanted: &str) -> bool {
    value.get(name).and_then(Value::as_str) == Some(wanted)
}

impl Api {
    pub fn of_path(path: &str) -> Option<Api> {
        match path.rsplit('/').next()? {
            "responses" => Some(Self::Responses),
            "completions" => Some(Self::Chat),
            "messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// Returns the names of the tools that the client offers in its request.
    pub fn tools(self, body: &Value) -> Vec<&str> {
        let name = if self == Self::Chat { "/function/name" } else { "/name" };
        list(body, "tools").iter().filter_map(|tool| tool.pointer(name)?.as_str()).collect()
    }

    /// Whether the conversation in the request contains the result of a tool call.
    pub fn has_result(self, body: &Value) -> bool {
        match self {
            Self::Responses => list(body, "input")
                .iter()
                .any(|item| item.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("_output"))),
            Self::Chat => list(body, "messages").iter().any(|message| is(message, "role", "tool")),
            Self::Messages => list(body, "messages")
                .iter()
                .flat_map(|message| list(message, "content"))
                .any(|part| is(part, "type", "tool_result")),
        }
    }
}

/// Formats one server-sent event. It gets an event name if its API's events have a type.
fn event(value: &Value) -> String {
    match value.get("type").and_then(Value::as_str) {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

pub fn stream(api: Api, body: &Value, act: &Act, number: u32) -> String {
    let model = body.get("model").cloned().unwrap_or_default();
    let events = match api {
        Api::Responses => responses(&model, act, number),
        Api::Chat => chat(&model, act, number),
        Api::Messages => messages(&model, act, number),
    };
    let mut text: String = events.iter().map(event).collect();
    if api == Api::Chat {
        text.push_str("data: [DONE]\n\n");
    }
    text
}

/// Returns the response to a request without streaming. Clients use it only for side questions, such as one for a title.
pub fn whole(api: Api, body: &Value, act: &Act) -> String {
    let text = match act {
        Act::Say(text) => text.as_str(),
        Act::Call { .. } => "A title",
    };
    match api {
        Api::Chat => json!({"id": "c", "object": "chat.completion", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}),
        Api::Responses | Api::Messages => {
            json!({"id": "m", "type": "message", "role": "assistant", "model": body.get("model"),
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
    }
    .to_string()
}

fn responses(model: &Value, act: &Act, number: u32) -> Vec<Value> {
    let base = |status: &str, output: Value, usage: Value| {
        json!({"id": format!("resp_{number}"), "object": "response", "created_at": 0, "model": model, "status": status,
               "output": output, "usage": usage})
    };
    let usage = json!({"input_tokens": INPUT, "input_tokens_details": {"cached_tokens": CACHED}, "output_tokens": OUTPUT,
                       "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT + OUTPUT});
    let mut events = vec![json!({"type": "response.created", "response": base("in_progress", json!([]), Value::Null)})];
    let item = match act {
        Act::Call { tool, arguments } => {
            let item = json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                              "name": tool, "arguments": arguments.to_string(), "status": "completed"});
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
            item
        }
        Act::Say(text) => {
            let message = |content: Value| {
                json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
                       "content": content})
            };
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": message(json!([]))}));
            events.push(json!({"type": "response.output_text.delta", "item_id": format!("msg_{number}"),
                               "output_index": 0, "content_index": 0, "delta": text}));
            message(json!([{"type": "output_text", "text": text, "annotations": []}]))
        }
    };
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": base("completed", json!([item]), usage)}));
    events
}

fn chat(model: &Value, act: &Act, number: u32) -> Vec<Value> {
    let chunk = |choices: Value| {
        json!({"id": format!("chat_{number}"), "object": "chat.completion.chunk", "created": 0, "model": model,
               "choices": choices})
    };
    let step = |delta: Value, finish: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]));
    let (delta, finish) = match act {
        Act::Call { tool, arguments } => {
            let call = json!({"index": 0, "id": format!("call_{number}"), "type": "function",
                              "function": {"name": tool, "arguments": arguments.to_string()}});
            (json!({"tool_calls": [call]}), "tool_calls")
        }
        Act::Say(text) => (json!({"content": text}), "stop"),
    };
    let mut last = chunk(json!([]));
    last["usage"] = json!({"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT,
                           "prompt_tokens_details": {"cached_tokens": CACHED}});
    vec![
        step(json!({"role": "assistant", "content": ""}), Value::Null),
        step(delta, Value::Null),
        step(json!({}), finish.into()),
        last,
    ]
}

fn messages(model: &Value, act: &Act, number: u32) -> Vec<Value> {
    let usage = json!({"input_tokens": INPUT, "cache_creation_input_tokens": 0, "cache_read_input_tokens": CACHED,
                       "output_tokens": 1});
    let (block, delta, stop) = match act {
        Act::Call { tool, arguments } => (
            json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
            "tool_use",
        ),
        Act::Say(text) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
        }
    };
    vec![
        json!({"type": "message_start", "message": {"id": format!("msg_{number}"), "type": "message", "role": "assistant",
               "model": model, "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
               "usage": {"output_tokens": OUTPUT}}),
        json!({"type": "message_stop"}),
    ]
}
