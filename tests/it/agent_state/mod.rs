//! `agent-state.json`: the 22 cases of its contract, and what a runner and the hook commands make of it.

mod hooks;
mod runner;
mod writer;

use std::path::Path;

use serde_json::Value;

/// Holds a file's text against the schema that is kept in the repository.
fn checked(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    let schema: Value = serde_json::from_str(&kept_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{text}");
    value
}

fn kept_schema() -> String {
    std::fs::read_to_string(schema_path()).unwrap_or_default()
}

fn schema_path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/agent-state.schema.json")
}

#[test]
fn the_schema_of_agent_state_in_the_repository_is_current() {
    let current = dirigent::publish::json_schema_text();
    if kept_schema() != current && std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(schema_path(), &current).unwrap();
    }
    assert!(
        kept_schema() == current,
        "schema/agent-state.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}

#[test]
fn the_schema_has_exactly_the_keys_and_values_of_the_contract() {
    let schema: Value = serde_json::from_str(&kept_schema()).unwrap();
    let keys = |pointer: &str| -> Vec<String> {
        let mut keys: Vec<String> = schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(
        keys("/properties"),
        [
            "ctoAgent",
            "enabled",
            "feature",
            "lastUpdated",
            "orchestrationPattern",
            "pdcaPhase",
            "progress",
            "recentMessages",
            "sessionId",
            "startedAt",
            "teamName",
            "teammates",
            "version"
        ]
    );
    assert_eq!(
        keys("/properties/teammates/items/properties"),
        ["currentTask", "lastActivityAt", "model", "name", "role", "startedAt", "status", "taskId"]
    );
    assert_eq!(keys("/properties/recentMessages/items/properties"), ["content", "from", "timestamp", "to"]);
    let values = |pointer: &str| schema.pointer(&format!("{pointer}/enum")).cloned().unwrap();
    assert_eq!(values("/properties/pdcaPhase"), serde_json::json!(["plan", "design", "do", "check", "act"]));
    assert_eq!(values("/properties/orchestrationPattern").as_array().unwrap().len(), 4);
    assert_eq!(
        values("/properties/teammates/items/properties/status"),
        serde_json::json!(["spawning", "working", "idle", "completed", "failed"])
    );
}
