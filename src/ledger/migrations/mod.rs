//! The numbered migrations: each one leads from version `n` to `n + 1`. A released migration is never changed; a new one is
//! appended. `upgrade` runs them.

mod archive_and_plain_names;
mod first_tables;
mod job_groups;

use serde_json::Value;

/// One migration: first the SQL for the tables, then a pure function on every record.
pub struct Migration {
    pub sql: &'static str,
    pub records: Records,
}

/// The functions that rewrite the JSON of each kind of record. `None`: records of this kind are not read and stay unchanged.
pub struct Records {
    pub job: Option<Rewrite>,
    /// Live runs, and finished runs, which hold the live run under `run`.
    pub run: Option<Rewrite>,
    /// An outbox entry: an effect with its status.
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

/// Renames a field of an object. A value that is no object or has no such field is left unchanged.
fn rename(value: &mut Value, from: &str, to: &str) {
    if let Some(fields) = value.as_object_mut()
        && let Some(content) = fields.remove(from)
    {
        fields.insert(to.to_owned(), content);
    }
}

/// Replaces the string `from` with `to`. Any other value is left unchanged.
fn reword(value: Option<&mut Value>, from: &str, to: &str) {
    if let Some(value) = value.filter(|value| value.as_str() == Some(from)) {
        *value = to.into();
    }
}
