//! Answers as GitHub's description wants them.

pub mod actions;
pub mod app;
pub mod commit;
pub mod event;
pub mod issue;
pub mod pull;
pub mod repo;
pub mod review;
pub mod rules;
pub mod user;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::state::shown;

pub fn time(at: Timestamp) -> Value {
    json!(shown(at))
}

pub fn time_or_null(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, time)
}

/// The second object's fields, added to the first.
pub fn joined(mut one: Value, other: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (one.as_object_mut(), other) {
        fields.extend(more);
    }
    one
}
