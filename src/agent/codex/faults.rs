//! Converts Codex's own error names to classes.

use serde_json::Value;

use crate::agent::conversation::text;
use crate::agent::fault::Fault;
use crate::domain::failure::TurnError;

/// Converts an error of a turn: `codexErrorInfo` is its name, or contains the status of the model's server.
pub(super) fn of_turn(error: &Value) -> Fault {
    let message = text(error, "/message");
    let more = text(error, "/additionalDetails");
    let detail = if more.is_empty() { message.to_owned() } else { format!("{message}: {more}") };
    let info = &error["codexErrorInfo"];
    if let Some(name) = info.as_str()
        && let Some(class) = class_of(name)
    {
        let words = Fault::of(None, &detail);
        return Fault::new(class, detail).with_reset(words.reset);
    }
    let status = info
        .as_object()
        .and_then(|wrapped| wrapped.values().next())
        .and_then(|inner| inner.get("httpStatusCode"))
        .and_then(Value::as_u64);
    let mut fault = Fault::of(status, &detail);
    if info == "badRequest" {
        fault.retryable = false;
    }
    fault
}

/// Converts the error of a request that the server refused.
pub(super) fn of_rpc(error: &Value) -> Fault {
    let mut fault = Fault::of(None, text(error, "/message"));
    if fault.class == TurnError::Other {
        fault.retryable = false;
    }
    fault
}

fn class_of(name: &str) -> Option<TurnError> {
    match name {
        "unauthorized" => Some(TurnError::Auth),
        "usageLimitExceeded" | "rateLimitExceeded" => Some(TurnError::RateLimit),
        "contextWindowExceeded" => Some(TurnError::Context),
        "modelNotFound" => Some(TurnError::Model),
        "cyberPolicy" | "misalignmentPolicyViolation" | "tooManyDenials" => Some(TurnError::Refused),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_statuses() {
        for (info, message, class) in [
            (json!("usageLimitExceeded"), "limit", TurnError::RateLimit),
            (json!("contextWindowExceeded"), "full", TurnError::Context),
            (json!("modelNotFound"), "x", TurnError::Model),
            (json!({"httpConnectionFailed": {"httpStatusCode": 401}}), "x", TurnError::Auth),
            (json!({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}), "x", TurnError::RateLimit),
            (json!({"httpConnectionFailed": {"httpStatusCode": null}}), "x", TurnError::Other),
            (json!("someNewName"), "x", TurnError::Other),
            (Value::Null, "x", TurnError::Other),
        ] {
            assert_eq!(of_turn(&json!({"message": message, "codexErrorInfo": info})).class, class);
        }
    }
}
