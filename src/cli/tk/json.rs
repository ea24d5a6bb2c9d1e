//! Tickets as typed JSON, for `--json`. (`query` has its own form, in which scalars are strings.)

use serde_json::{Value, json};

use super::session::TkOutput;
use super::tickets::{Tickets, shown_status};
use crate::tracker::tk::Record;

/// Returns one ticket without its body.
pub fn ticket(tickets: &Tickets, record: &Record) -> Value {
    let unmet: Vec<Value> = tickets
        .unmet(record)
        .into_iter()
        .map(|dep| json!({ "id": dep, "status": tickets.get(dep).map(shown_status) }))
        .collect();
    json!({
        "id": record.id,
        "status": record.status,
        "state": shown_status(record),
        "title": record.title,
        "type": record.kind,
        "priority": priority(record),
        "assignee": record.assignee,
        "tags": record.tags,
        "deps": record.deps,
        "links": record.links,
        "parent": record.parent,
        "external_ref": record.external_ref,
        "created": record.created,
        "ready": tickets.is_ready(record),
        "waiting_for": if record.is_active() { unmet } else { Vec::new() },
    })
}

fn priority(record: &Record) -> Value {
    match record.priority.parse::<i64>() {
        Ok(number) => json!(number),
        Err(_) => json!(record.priority),
    }
}

pub fn reply(value: &Value) -> TkOutput {
    TkOutput::line(format!("{value:#}"))
}
