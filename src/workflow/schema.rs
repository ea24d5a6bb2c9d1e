//! The JSON Schema of the front matter, generated from the settings types.

use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use super::shape::branches;
use crate::config::Settings;
use crate::config::wire::FORMAT_SECRET;

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

/// Whether the value of this key is a secret. Places in lists are left out of the path: `observability.notify.url`.
pub fn holds_secret(path: &str) -> bool {
    let root = json_schema();
    let mut found = shapes(&root);
    for key in path.split('.') {
        let below = found.iter().filter_map(|shape| {
            let known = shape.get("properties").and_then(|known| known.get(key));
            known.or(shape.get("additionalProperties"))
        });
        found = below.flat_map(shapes).collect();
    }
    found.iter().any(|shape| shape.get("format").and_then(Json::as_str) == Some(FORMAT_SECRET))
}

/// Returns the alternatives of a schema, with the elements of a list in the place of the list.
fn shapes(schema: &Json) -> Vec<&Json> {
    let alternatives = branches(schema).into_iter();
    alternatives.flat_map(|shape| shape.get("items").map_or_else(|| vec![shape], shapes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_the_schema() {
        for secret in [
            "tracker.provider.api_key",
            "pr.provider.private_key",
            "observability.notify.url",
            "server.tokens.ada",
            "polling.webhook.linear.secret",
        ] {
            assert!(holds_secret(secret), "{secret}");
        }
        for plain in
            ["tracker.provider.repo", "observability.notify", "observability.notify.to", "agent.max_turns", "x.y"]
        {
            assert!(!holds_secret(plain), "{plain}");
        }
    }
}
