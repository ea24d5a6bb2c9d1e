//! A request as the server sees it, and what it answers.

use serde_json::{Value, json};

pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Debug, Default)]
pub enum Body {
    #[default]
    Empty,
    Json(Value),
    Raw {
        content_type: String,
        bytes: Vec<u8>,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Body,
    /// What any operation may answer without its description saying so: no rights, no such repository, a limit, an injected fault.
    pub general: bool,
}

/// What a handler gives back; both sides are answers, so that `?` leaves early.
pub type Answered = Result<Answer, Answer>;

const DOCUMENTATION: &str = "https://docs.github.com/rest";

impl Answer {
    pub fn json(status: u16, body: Value) -> Self {
        Self { status, body: Body::Json(body), ..Self::default() }
    }

    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn raw(status: u16, content_type: &str, bytes: Vec<u8>) -> Self {
        let body = Body::Raw { content_type: content_type.to_owned(), bytes };
        Self { status, body, general: true, ..Self::default() }
    }

    pub fn message(status: u16, words: &str) -> Self {
        Self::json(status, json!({"message": words, "documentation_url": DOCUMENTATION}))
    }

    /// An answer of GitHub in general, not of the operation.
    pub fn general(status: u16, words: &str) -> Self {
        Self { general: true, ..Self::message(status, words) }
    }

    pub fn not_found() -> Self {
        Self::message(404, "Not Found")
    }

    /// 422 with errors about fields.
    pub fn invalid(resource: &str, field: &str, code: &str, words: Option<&str>) -> Self {
        let mut error = json!({"resource": resource, "field": field, "code": code});
        if let Some(words) = words {
            error["message"] = json!(words);
        }
        Self::json(422, json!({"message": "Validation Failed", "errors": [error], "documentation_url": DOCUMENTATION}))
    }

    /// 422 with a sentence.
    pub fn unprocessable(words: &str) -> Self {
        Self::json(422, json!({"message": words, "documentation_url": DOCUMENTATION}))
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// How an answer goes out.
pub enum Delivery {
    Whole(Answer),
    /// The first half, and then the connection ends.
    Truncated(Answer),
    /// Nothing, until the client gives up or the server ends.
    Silence,
    /// The connection ends without an answer.
    Disconnect,
}
