//! The JSON Schema of the front matter, generated from the settings types, and how strict each section is.

use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::config::Settings;

/// An unknown key here is an error: a typo in a safety setting must not pass silently.
pub const STRICT_SECTIONS: [&str; 8] =
    ["orchestration", "rollout", "pr", "review", "merge", "budget", "gates", "waves"];

/// Maps whose bad entries are left out with a warning.
pub const LENIENT_MAPS: [&str; 1] = ["agent.max_concurrent_agents_by_state"];

/// The schema as `dirigent config schema` prints it.
pub fn json_schema() -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Settings>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "WORKFLOW.md front matter".into());
        root.insert("required".to_owned(), serde_json::json!(["tracker"]));
    }
    if let Some(tracker) = schema.pointer_mut("/properties/tracker").and_then(Json::as_object_mut) {
        tracker.insert("required".to_owned(), serde_json::json!(["kind"]));
    }
    for section in STRICT_SECTIONS {
        if let Some(section) = schema.pointer_mut(&format!("/properties/{section}")).and_then(Json::as_object_mut) {
            section.insert("additionalProperties".to_owned(), false.into());
        }
    }
    schema
}

/// Printed and kept in the repository.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

/// Whether an unknown key under this path is an error.
pub fn is_strict(path: &str) -> bool {
    let section = path.split('.').next().unwrap_or_default();
    STRICT_SECTIONS.contains(&section) || path == "tracker.provider"
}
