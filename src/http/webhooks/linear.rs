//! Reads which tickets a delivery of Linear concerns.

use std::time::Duration;

use serde_json::Value;

use crate::domain::hint::Hint;
use crate::domain::ids::TicketId;
use crate::domain::time::Timestamp;

/// Maximum age of a delivery. When Linear repeats a delivery it sends a new time, so an old one is a replay by another sender.
const OLDEST: Duration = Duration::from_secs(60);

/// Whether the delivery was sent less than a minute ago by its own time. Without a time it is not fresh.
pub fn is_fresh(payload: &Value, now: Timestamp) -> bool {
    let Some(sent) = payload["webhookTimestamp"].as_i64().map(Timestamp) else { return false };
    now.since(sent) <= OLDEST && sent.since(now) <= OLDEST
}

pub fn hints(payload: &Value) -> Vec<Hint> {
    let data = &payload["data"];
    let is_gone = payload["action"] == "remove";
    let ticket = |id: &Value, floor: Option<Timestamp>| match id.as_str() {
        Some(id) => vec![Hint::Ticket { id: TicketId::new(id), floor }],
        None => vec![Hint::Board],
    };
    match payload["type"].as_str().unwrap_or_default() {
        "Issue" => ticket(&data["id"], data["updatedAt"].as_str().filter(|_| !is_gone).and_then(time)),
        "Comment" | "Attachment" | "Reaction" => match &data["issueId"] {
            Value::String(_) => ticket(&data["issueId"], None),
            // For example a comment on a document or a project.
            _ if data["issue"]["id"].is_string() => ticket(&data["issue"]["id"], None),
            _ => Vec::new(),
        },
        "IssueRelation" => {
            let both = [&data["issueId"], &data["relatedIssueId"]];
            both.into_iter().flat_map(|id| ticket(id, None)).collect()
        }
        // A changed label or column concerns all tickets that have it.
        "IssueLabel" | "WorkflowState" | "Cycle" | "Project" => vec![Hint::Board],
        _ => Vec::new(),
    }
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_delivery_is_a_minute_old_at_most() {
        let now = Timestamp(1_800_000_000_000);
        let sent = |at: i64| is_fresh(&json!({ "webhookTimestamp": at }), now);
        assert!(sent(now.0) && sent(now.0 - 59_000) && sent(now.0 + 59_000));
        assert!(!sent(now.0 - 61_000) && !sent(now.0 + 61_000) && !sent(0));
        assert!(!is_fresh(&json!({}), now) && !is_fresh(&json!({ "webhookTimestamp": "now" }), now));
    }

    #[test]
    fn an_issue_has_its_floor_and_a_comment_names_its_issue() {
        let issue = json!({ "type": "Issue", "action": "update", "data": { "id": "i-1", "updatedAt": "2026-11-18T05:05:23.123Z" } });
        let floor = time("2026-11-18T05:05:23.123Z");
        assert!(floor.is_some());
        assert_eq!(hints(&issue), [Hint::Ticket { id: TicketId::new("i-1"), floor }]);
        let gone = json!({ "type": "Issue", "action": "remove", "data": { "id": "i-1", "updatedAt": "2026-11-18T05:05:23.123Z" } });
        assert_eq!(hints(&gone), [Hint::ticket(TicketId::new("i-1"))]);
        let comment = json!({ "type": "Comment", "action": "create", "data": { "id": "c-1", "issueId": "i-2" } });
        assert_eq!(hints(&comment), [Hint::ticket(TicketId::new("i-2"))]);
        assert_eq!(hints(&json!({ "type": "IssueLabel", "data": {} })), [Hint::Board]);
        assert_eq!(hints(&json!({ "type": "Customer", "data": {} })), []);
        assert_eq!(hints(&json!([])), []);
    }
}
