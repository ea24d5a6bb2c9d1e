//! `GET /openapi.json`: the description of the API, generated from the types of the responses. A copy is kept in `schema/openapi.json`, so
//! that a changed shape shows up in review.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::commands::{ApprovalWords, DoneAnswer, MessageWords, NoWords, Words};
use super::logs::TranscriptAnswer;
use super::routes::{HealthAnswer, RefreshAnswer, json_text};
use super::shapes::{ChangeEvent, StateAnswer, TicketAnswer};
use super::webhooks::DeliveryAnswer;
use super::workspaces::{CleanupAnswer, CleanupWords, DiffAnswer, WorkspacesAnswer};

/// The error envelope.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is told")]
struct ErrorAnswer {
    error: ErrorWords,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is told")]
struct ErrorWords {
    /// The code, for programs.
    code: String,
    /// The message, for people.
    message: String,
}

/// Who may use a route.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Everybody, even if other machines can reach the server.
    Open,
    /// Everybody outside of a run, if only this machine can reach the server; otherwise only with a token.
    Look,
    /// Only with a token.
    Change,
    /// Only with a valid signature.
    Signed,
}

/// The successful response.
enum Good {
    Json(u16, Value),
    Text(&'static str),
}

struct Table {
    generator: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Table {
    fn of<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }

    fn add(&mut self, method: &str, path: &str, summary: &str, access: Access, body: Option<Value>, good: Good) {
        let error = self.of::<ErrorAnswer>();
        let failed =
            |words: &str| json!({ "description": words, "content": { "application/json": { "schema": error } } });
        let (status, good) = match good {
            Good::Json(status, schema) => {
                (status, json!({ "description": "done", "content": { "application/json": { "schema": schema } } }))
            }
            Good::Text(kind) => {
                (200, json!({ "description": "done", "content": { kind: { "schema": { "type": "string" } } } }))
            }
        };
        let mut responses = Map::new();
        responses.insert(status.to_string(), good);
        responses.insert("default".into(), failed("what went wrong, in the one envelope"));
        let parameters: Vec<Value> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        let mut operation = json!({ "summary": summary, "parameters": parameters, "responses": responses });
        if access == Access::Change {
            operation["security"] = json!([{ "token": [] }]);
        }
        if access == Access::Look {
            operation["security"] = json!([{}, { "token": [] }]);
        }
        if access == Access::Signed {
            operation["description"] = "Proved by its signature; see docs/webhooks.md.".into();
        }
        if let Some(schema) = body {
            operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
        }
        let entry = self.paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        entry[method] = operation;
    }

    fn look<T: JsonSchema>(&mut self, path: &str, summary: &str, access: Access) {
        let answer = self.of::<T>();
        self.add("get", path, summary, access, None, Good::Json(200, answer));
    }

    fn change<B: JsonSchema, A: JsonSchema>(&mut self, path: &str, summary: &str) {
        let (body, answer) = (self.of::<B>(), self.of::<A>());
        self.add("post", path, summary, Access::Change, Some(body), Good::Json(200, answer));
    }
}

/// Returns the whole description.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut table = Table { generator: settings.for_serialize().into_generator(), paths: Map::new() };
    table.look::<HealthAnswer>("/healthz", "The runner is there", Access::Open);
    table.look::<HealthAnswer>("/readyz", "It can work; 503 says why not", Access::Open);
    table.look::<StateAnswer>("/api/v1/state", "The board as a whole", Access::Look);
    table.look::<TicketAnswer>("/api/v1/{key}", "One ticket with its story, also one that is over", Access::Look);
    table.look::<DiffAnswer>("/api/v1/{key}/diff", "What its head has beyond its base", Access::Look);
    let refresh = table.of::<RefreshAnswer>();
    table.add("post", "/api/v1/refresh", "Read the board now", Access::Look, None, Good::Json(202, refresh));
    // Named here so that the shape of events is among the components.
    let _ = table.of::<ChangeEvent>();
    let events =
        "Server-sent events: first `state` (as /api/v1/state), then `change` (ChangeEvent); Last-Event-ID resumes";
    table.add("get", "/api/v1/events", events, Access::Look, None, Good::Text("text/event-stream"));
    let log = "What the agent printed; a Range of bytes, or `?follow=true` until the run is over";
    table.add("get", "/api/v1/runs/{run}/log", log, Access::Look, None, Good::Text("text/plain"));
    let transcript = "What the agent said and which tools it used; `?last=N` lines";
    table.look::<TranscriptAnswer>("/api/v1/transcript/{run}", transcript, Access::Look);
    table.look::<WorkspacesAnswer>("/api/v1/workspaces", "The worktrees that there are", Access::Look);
    table.change::<CleanupWords, CleanupAnswer>("/api/v1/workspaces/cleanup", "Remove old worktrees, their work saved");
    for (path, summary) in [
        ("/api/v1/pause", "Stop everything"),
        ("/api/v1/resume", "Go on"),
        ("/api/v1/{key}/pause", "Stop one ticket"),
        ("/api/v1/{key}/resume", "Go on with it"),
        ("/api/v1/{key}/stop", "End its run and set it aside"),
        ("/api/v1/{key}/retry", "Start it again, with fresh counters"),
    ] {
        table.change::<NoWords, DoneAnswer>(path, summary);
    }
    table.change::<ApprovalWords, DoneAnswer>("/api/v1/{key}/approve", "Approve the head that was looked at");
    table.change::<Words, DoneAnswer>("/api/v1/{key}/reject", "Ask for changes");
    table.change::<Words, DoneAnswer>("/api/v1/{key}/answer", "Answer its question");
    table.change::<MessageWords, DoneAnswer>("/api/v1/{key}/message", "Say something to its agent");
    for (path, summary) in [("/webhooks/github", "A delivery of GitHub"), ("/webhooks/linear", "A delivery of Linear")]
    {
        let answer = table.of::<DeliveryAnswer>();
        table.add("post", path, summary, Access::Signed, Some(json!({ "type": "object" })), Good::Json(200, answer));
    }
    table.add(
        "get",
        "/metrics",
        "Prometheus metrics, where `observability.metrics` is on",
        Access::Look,
        None,
        Good::Text("text/plain"),
    );
    table.add(
        "get",
        "/openapi.json",
        "This description",
        Access::Look,
        None,
        Good::Json(200, json!({ "type": "object" })),
    );
    let schemas = table.generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Dirigent",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Times are RFC 3339. Changes need `Authorization: Bearer TOKEN` and a JSON body; docs/api.md has examples.",
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "paths": table.paths,
    })
}

/// Returns the text of `schema/openapi.json`.
pub fn openapi_text() -> String {
    format!("{:#}\n", openapi())
}

pub async fn serve() -> Response {
    json_text(StatusCode::OK, openapi().to_string())
}
