//! Every answer that a test of the API gets is held against `openapi.json`.

use crate::support::board::MERGE;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::client::Answer;

fn description() -> &'static Value {
    static DESCRIPTION: OnceLock<Value> = OnceLock::new();
    DESCRIPTION.get_or_init(dirigent::http::openapi)
}

/// The template that a path is of; what is written out counts before what may be anything.
fn template(path: &str) -> Option<&'static str> {
    let bare = path.split('?').next().unwrap();
    let fits = |template: &str| {
        let (parts, wanted): (Vec<&str>, Vec<&str>) = (bare.split('/').collect(), template.split('/').collect());
        parts.len() == wanted.len()
            && parts.iter().zip(&wanted).all(|(part, wanted)| part == wanted || wanted.starts_with('{'))
    };
    let mut all: Vec<&String> =
        description()["paths"].as_object().unwrap().keys().filter(|known| fits(known)).collect();
    all.sort_by_key(|known| known.matches('{').count());
    all.first().map(|known| known.as_str())
}

/// Panics where the answer is not what is described.
pub fn check(method: &str, path: &str, answer: &Answer) {
    let Some(operation) = template(path).and_then(|known| description()["paths"][known].get(method)) else {
        assert!(answer.status >= 400, "{method} {path} answers {} and is not described", answer.status);
        check_json(&json!({ "$ref": "#/components/schemas/ErrorAnswer" }), path, answer);
        return;
    };
    let responses = &operation["responses"];
    let described = responses.get(answer.status.to_string()).unwrap_or_else(|| {
        let is_other = answer.status >= 400 || answer.status == 206 || answer.status == 304;
        assert!(is_other, "{method} {path}: {} is not described", answer.status);
        &responses["default"]
    });
    // What is not ready says so in its own shape.
    let described = if path == "/readyz" { &responses["200"] } else { described };
    match described["content"].get("application/json") {
        Some(content) if answer.header("content-type") == Some("application/json") => {
            check_json(&content["schema"], path, answer);
        }
        Some(_) => assert!(
            answer.status == 206 || answer.header("content-type").is_some_and(|kind| kind.starts_with("text/")),
            "{answer:?}"
        ),
        None => {
            let kind = described["content"].as_object().unwrap().keys().next().unwrap();
            assert!(answer.header("content-type").is_some_and(|told| told.starts_with(kind)), "{path}: {answer:?}");
        }
    }
}

fn check_json(schema: &Value, path: &str, answer: &Answer) {
    let mut whole = schema.clone();
    whole["components"] = description()["components"].clone();
    let validator = jsonschema::options().build(&whole).unwrap();
    let told: Value = serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{path}: {error}: {answer:?}"));
    let wrong: Vec<String> =
        validator.iter_errors(&told).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{path} is not as described:\n{}\n{told:#}", wrong.join("\n"));
}

#[test]
fn the_description_that_is_kept_is_the_one_that_is_served() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/openapi.json");
    let current = dirigent::http::openapi_text();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == current, "schema/openapi.json is out of date: run this test with UPDATE_SCHEMA=1");
}

#[test]
fn the_description_would_notice_another_shape() {
    let good = Answer {
        status: 200,
        headers: "HTTP/1.1 200 OK\r\ncontent-type: application/json".into(),
        body: json!({ "status": "ok", "why": null }).to_string(),
    };
    check("get", "/healthz", &good);
    let other = Answer { body: json!({ "state": "ok" }).to_string(), ..good };
    assert!(std::panic::catch_unwind(|| check("get", "/healthz", &other)).is_err());
}

#[test]
fn what_is_described_is_there() {
    let served = super::ServedBoard::new(super::ASKS, &format!("{MERGE}observability: {{metrics: true}}\n"), |board| {
        board.ticket("t-1", "Ask")
    });
    served.until("it asks", || served.phase("t-1") == "blocked");
    let run = served.get("/api/v1/t-1").json()["runs"][0]["id"].as_str().unwrap().to_owned();
    let mut asked = 0;
    for (path, operations) in description()["paths"].as_object().unwrap() {
        let place = path.replace("{key}", "t-1").replace("{run}", &run);
        // Events never end, and webhooks are there only with a secret.
        if path.ends_with("/events") || path.starts_with("/webhooks/") {
            continue;
        }
        for method in operations.as_object().unwrap().keys() {
            let answer = if method == "get" { served.get(&place) } else { served.post_with(&place, "", "") };
            let expected: &[u16] = match (method.as_str(), path.as_str()) {
                // A ticket that nothing was made for has an empty diff, or no branch yet.
                ("get", "/api/v1/{key}/diff") => &[200, 409],
                ("get", _) => &[200],
                (_, "/api/v1/refresh") => &[202],
                _ => &[401],
            };
            assert!(expected.contains(&answer.status), "{method} {place}: {answer:?}");
            asked += 1;
        }
    }
    assert!(asked > 18, "{asked}");
    served.runner.end();
}
