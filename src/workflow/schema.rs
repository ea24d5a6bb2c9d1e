//! The JSON Schema of the front matter, generated from the settings types.

use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::config::Settings;

/// Sections that accept keys which the schema does not list: other spellings, other tools' keys, keys of an adapter. The loader knows these
/// keys; an editor that only has the schema must not report them as errors.
const OPEN_SECTIONS: [&str; 5] = ["tracker", "workspace", "agent", "codex", "pi"];

/// Maps whose invalid entries are left out with a warning.
pub const LENIENT_MAPS: [&str; 1] = ["agent.max_concurrent_agents_by_state"];

/// Returns the schema that `dirigent config schema` prints.
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
    if let Some(sections) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        for (name, section) in sections {
            if let (false, Some(section)) = (OPEN_SECTIONS.contains(&name.as_str()), section.as_object_mut()) {
                section.insert("additionalProperties".to_owned(), false.into());
            }
        }
    }
    schema
}

/// Returns the schema as text, as it is printed and kept in the repository.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}
