//! The part of migration 2 that changes jobs: fields are grouped, remarks replace undelivered messages, and an approval has an
//! author.

use serde_json::{Map, Value, json};

/// Groups the flat fields of a job. A job that already has groups is returned unchanged.
pub fn group(job: Value) -> Value {
    let Value::Object(mut old) = job else { return job };
    if !old.contains_key("branch") {
        return Value::Object(old);
    }
    let updated_at = old.get("updated_at").cloned().unwrap_or(json!(0));
    let delivery = json!({
        "branch": take(&mut old, "branch"),
        "head": take(&mut old, "head"),
        "remote_head": null,
        "pr": pull_request(take(&mut old, "pr")),
        "update_attempts": number(take(&mut old, "rebase_attempts")),
        "merge_attempts": 0,
        "reviews": { "passes": number(take(&mut old, "review_passes")), "head": take(&mut old, "reviewed_head") },
    });
    let spending = json!({
        "total": take(&mut old, "spent"),
        "run_ms": number(take(&mut old, "run_ms")),
        "since_reset": take(&mut old, "budget_used"),
        "run_ms_since_reset": number(take(&mut old, "budget_run_ms")),
    });
    // The old fingerprints are made of other parts than the new ones, so they cannot be compared.
    old.remove("started_with");
    old.remove("no_progress_with");
    let evidence = json!({
        "receipt": take(&mut old, "receipt"),
        "started_with": null,
        "no_progress_with": null,
        "summary": take(&mut old, "summary"),
        "salvage": take(&mut old, "salvage"),
        "last_failure": take(&mut old, "last_failure"),
    });
    let people = json!({
        "pause": take(&mut old, "pause"),
        "approval": approval(take(&mut old, "approved_head"), updated_at),
        "remarks": remarks(take(&mut old, "undelivered")),
        "outside_approval_at": null,
    });
    old.remove("moved_to");
    old.remove("moved");
    old.insert("delivery".into(), delivery);
    old.insert("spending".into(), spending);
    old.insert("evidence".into(), evidence);
    old.insert("people".into(), people);
    old.insert("column".into(), Value::Null);
    if let Some(stage) = old.get_mut("stage") {
        *stage = stage_of(stage.take());
    }
    if let Some(ticket) = old.get_mut("ticket").and_then(Value::as_object_mut) {
        let until = ticket.remove("newest_comment_at").unwrap_or(Value::Null);
        ticket.insert("known_until".into(), until);
        ticket.remove("newest_comment");
        ticket.remove("newest_trusted_comment");
    }
    Value::Object(old)
}

/// Adds the fields that effects need since version 2.
pub fn complete_action(action: &mut Value) {
    let Some(fields) = action.as_object_mut() else { return };
    match fields.get("do").and_then(Value::as_str) {
        Some("start_run") => {
            fields.insert("undelivered".into(), json!([]));
            let route = json!({"runtime": "", "pool": ""});
            fields.entry("route").or_insert(route);
        }
        // An empty list means: from any column.
        Some("move_ticket") => {
            fields.entry("from").or_insert(json!([]));
        }
        // The comment about a block contains the cause of the block.
        Some("comment") => {
            forget_fingerprint(fields.get_mut("said").and_then(|said| said.get_mut("cause")));
        }
        // An empty base branch means that the merge is not sent; its job goes back to waiting for checks.
        Some("merge_pr") => {
            fields.entry("base_branch").or_insert(json!(""));
        }
        _ => {}
    }
}

fn take(fields: &mut Map<String, Value>, name: &str) -> Value {
    fields.remove(name).unwrap_or(Value::Null)
}

fn number(value: Value) -> Value {
    if value.is_number() { value } else { json!(0) }
}

fn pull_request(pr: Value) -> Value {
    let Value::Object(mut pr) = pr else { return Value::Null };
    for gone in ["review_cursor", "reopened_at", "replaced"] {
        pr.remove(gone);
    }
    pr.entry("base_branch").or_insert(json!(""));
    pr.entry("write").or_insert(Value::Null);
    Value::Object(pr)
}

fn approval(head: Value, at: Value) -> Value {
    match head {
        Value::String(head) => json!({"head": head, "by": "a person", "at": at, "by_review": false}),
        _ => Value::Null,
    }
}

fn remarks(words: Value) -> Value {
    let Value::Array(words) = words else { return json!([]) };
    let remark = |(number, word): (usize, Value)| {
        json!({
            "key": {"kind": "message", "id": format!("before-{number}"), "version": ""},
            "author": word["from"], "text": word["text"], "place": null, "head": null,
            "at": word["at"], "effect": "rework", "urgent": word["urgent"], "status": {"is": "open"},
        })
    };
    Value::Array(words.into_iter().enumerate().map(remark).collect())
}

fn stage_of(stage: Value) -> Value {
    let Value::Object(mut stage) = stage else { return stage };
    match stage.get("at").and_then(Value::as_str) {
        Some("ready_to_merge") => {
            stage.entry("turn").or_insert(Value::Null);
        }
        // The runner first asks whether the pull request was merged, and then decides about the merge anew.
        Some("merging") => {
            let head = take(&mut stage, "head");
            stage.insert("at".into(), json!("waiting_for_checks"));
            stage.insert("on".into(), json!({"for": "mergeability", "head": head}));
        }
        Some("blocked") => {
            forget_fingerprint(stage.get_mut("cause"));
        }
        _ => {}
    }
    Value::Object(stage)
}

/// Replaces the old fingerprint, one hash, with the new one: a hash for each part, all of them unknown.
fn forget_fingerprint(cause: Option<&mut Value>) {
    if let Some(cause) = cause.and_then(Value::as_object_mut)
        && cause.get("cause").and_then(Value::as_str) == Some("no_new_evidence")
        && cause.get("fingerprint").is_some_and(Value::is_string)
    {
        let unknown = ["ticket", "comments", "remarks", "labels", "head", "checks", "cause", "workflow"]
            .map(|part| (part.to_owned(), json!("")));
        cause.insert("fingerprint".into(), Value::Object(Map::from_iter(unknown)));
    }
}
