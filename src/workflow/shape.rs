//! Reads a generated schema: which kinds of value, which words and which range it allows, and how to describe them.

use serde_json::Value as Json;

use super::tree::{Node, Value};
use crate::config::wire::FORMAT_DURATION;

pub enum Kind {
    Object,
    Array,
    Scalar,
}

pub fn kind(schema: &Json) -> Kind {
    let types = types(schema);
    if types.contains(&"object") {
        Kind::Object
    } else if types.contains(&"array") {
        Kind::Array
    } else {
        Kind::Scalar
    }
}

pub fn fits(node: &Node, schema: &Json) -> bool {
    match node.value {
        Value::Map(_) => matches!(kind(schema), Kind::Object),
        Value::List(_) => matches!(kind(schema), Kind::Array),
        _ => matches!(kind(schema), Kind::Scalar),
    }
}

/// Returns the alternatives of a schema, without null. Empty if any value is allowed.
pub fn branches(schema: &Json) -> Vec<&Json> {
    let Some(object) = schema.as_object() else { return Vec::new() };
    if let Some(alternatives) = object.get("anyOf").and_then(Json::as_array) {
        return alternatives.iter().filter(|branch| types(branch) != ["null"]).flat_map(branches).collect();
    }
    let typed = object.contains_key("type") || object.contains_key("oneOf") || object.contains_key("enum");
    if typed { vec![schema] } else { Vec::new() }
}

pub fn types(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(name)) => vec![name],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).filter(|name| *name != "null").collect(),
        _ => Vec::new(),
    }
}

/// Returns the fixed words that a schema allows, in all the forms that schemas use for them.
pub fn words(schema: &Json) -> Vec<&str> {
    let listed = schema.get("enum").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    let single = schema.get("const").and_then(Json::as_str);
    let nested = schema.get("oneOf").and_then(Json::as_array).into_iter().flatten().flat_map(words);
    listed.chain(single).chain(nested).collect()
}

pub fn bounds(schema: &Json) -> (Option<f64>, Option<f64>) {
    let highest = match schema.get("format").and_then(Json::as_str) {
        Some("uint8") => Some(f64::from(u8::MAX)),
        Some("uint16") => Some(f64::from(u16::MAX)),
        Some("uint32" | "uint") => Some(f64::from(u32::MAX)),
        _ => None,
    };
    let maximum = schema.get("maximum").and_then(Json::as_f64);
    (schema.get("minimum").and_then(Json::as_f64), maximum.or(highest))
}

pub fn in_range(value: &Json, schema: &Json) -> bool {
    let Some(number) = value.as_f64() else { return true };
    let (lowest, highest) = bounds(schema);
    lowest.is_none_or(|lowest| number >= lowest) && highest.is_none_or(|highest| number <= highest)
}

/// Describes for people what is allowed.
pub fn expected(schema: &Json) -> String {
    let Some(branch) = branches(schema).first().copied() else { return "a value".to_owned() };
    let words = words(branch);
    if !words.is_empty() {
        return one_of(&words);
    }
    let (lowest, highest) = bounds(branch);
    let range = match (lowest, highest) {
        (Some(lowest), Some(highest)) => format!(" from {lowest} to {highest}"),
        (Some(lowest), None) => format!(" of at least {lowest}"),
        (None, Some(highest)) => format!(" of at most {highest}"),
        (None, None) => String::new(),
    };
    if branch.get("format").and_then(Json::as_str) == Some(FORMAT_DURATION) {
        return format!("a whole number of milliseconds{range}, or a duration such as `30s`, `5m`, `2h`");
    }
    match types(branch).as_slice() {
        [.., "integer"] => format!("a whole number{range}"),
        [.., "number"] => format!("a number{range}"),
        [.., "boolean"] => "`true` or `false`".to_owned(),
        [.., "object"] => "a map of settings".to_owned(),
        [.., "array"] => "a list".to_owned(),
        _ => "text".to_owned(),
    }
}

pub fn one_of(words: &[&str]) -> String {
    match words {
        [only] => format!("`{only}`"),
        words => format!("one of {}", words.join(", ")),
    }
}
