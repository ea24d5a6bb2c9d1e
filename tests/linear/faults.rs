//! What goes wrong between a client and Linear.

use std::time::Duration;

use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// The request is not looked at.
    Before,
    /// The request took effect; only its answer is another one.
    After,
}

type Edit = Box<dyn Fn(&mut Value) + Send>;

pub enum Instead {
    /// With an error body, as Linear gives it for this status.
    Status(u16),
    /// Status 200, no data, this code and these words.
    Errors(&'static str, &'static str),
    /// Status 200, the right data, and an error beside it.
    Partial,
    Html(u16),
    /// 400 with the code `RATELIMITED`, and when it ends.
    RateLimited(Duration),
    /// 429, as whatever stands before Linear may answer.
    TooMany,
    /// The right answer, changed, and not held against the schema.
    Edited(Edit),
    Truncated,
    Disconnect,
    Silence,
}

pub struct Fault {
    /// An operation's name, `mutation`, `query` or `*`.
    pub operation: String,
    pub when: When,
    pub instead: Instead,
    /// So many requests are answered rightly first.
    pub skip: u32,
    /// So many requests meet it.
    pub times: u32,
}

impl Fault {
    pub fn concerns(&self, operation: &str, is_mutation: bool) -> bool {
        self.times > 0
            && match self.operation.as_str() {
                "*" => true,
                "mutation" => is_mutation,
                "query" => !is_mutation,
                name => name == operation,
            }
    }
}

/// The error list that Linear gives.
pub fn complaint(code: &str, words: &str) -> Value {
    let kind = code.to_lowercase().replace('_', " ");
    json!({"message": words, "extensions": {"type": kind, "code": code, "userError": true, "userPresentableMessage": words}})
}

pub fn status_body(status: u16) -> Value {
    let (code, words) = match status {
        400 => ("INPUT_ERROR", "Argument Validation Error"),
        401 => ("AUTHENTICATION_ERROR", "Authentication required, not authenticated"),
        403 => ("FORBIDDEN", "You do not have permission to do this"),
        _ => ("INTERNAL_SERVER_ERROR", "Internal server error"),
    };
    json!({"errors": [complaint(code, words)]})
}
