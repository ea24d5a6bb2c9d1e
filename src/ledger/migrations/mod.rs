//! Numbered migrations: what leads from version `n` to `n + 1`. A number once released is never changed; the next one is
//! added below it. How they are run is in `upgrade`.

mod archive_and_plain_names;
mod first_tables;
mod job_groups;

use serde_json::Value;

/// One step: the tables first, then every record through a pure function.
pub struct Migration {
    pub sql: &'static str,
    pub records: Records,
}

/// What becomes of the JSON of a record. `None`: it stays as it is, and is not even read.
pub struct Records {
    pub job: Option<Rewrite>,
    /// Live runs and finished ones, which hold the live one under `run`.
    pub run: Option<Rewrite>,
    /// An outbox entry: the effect with its status.
    pub effect: Option<Rewrite>,
    pub meta: Option<Rewrite>,
}

pub type Rewrite = fn(Value) -> Value;

impl Records {
    const UNCHANGED: Self = Self { job: None, run: None, effect: None, meta: None };
}

pub const MIGRATIONS: [Migration; 2] = [first_tables::MIGRATION, archive_and_plain_names::MIGRATION];

/// The version that this program writes.
pub const CURRENT: i64 = MIGRATIONS.len() as i64;

/// Gives a field of an object another name. What is no object, or has no such field, stays as it is.
fn rename(value: &mut Value, from: &str, to: &str) {
    if let Some(fields) = value.as_object_mut()
        && let Some(content) = fields.remove(from)
    {
        fields.insert(to.to_owned(), content);
    }
}

/// Replaces a word at this place, if it stands there.
fn reword(value: Option<&mut Value>, from: &str, to: &str) {
    if let Some(value) = value.filter(|value| value.as_str() == Some(from)) {
        *value = to.into();
    }
}
