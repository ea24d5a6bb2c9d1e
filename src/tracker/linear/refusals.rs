//! What Linear's refusals mean. Linear reports many errors with status 200 and an `errors` list, and refuses too many requests with
//! status 400. A proxy in between may respond with an HTML page.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use super::budget;
use super::client::CallKind;
use crate::tracker::TrackerError;

/// Why a request failed. Writes treat the first two cases specially.
#[derive(Debug)]
pub enum WriteFailure {
    /// Linear does not know the object of the request.
    Missing(String),
    /// Linear understood the request and refuses it.
    Refused(String),
    Other(TrackerError),
}

impl From<WriteFailure> for TrackerError {
    fn from(failure: WriteFailure) -> Self {
        match failure {
            WriteFailure::Missing(why) | WriteFailure::Refused(why) => Self::Refused(why),
            WriteFailure::Other(error) => error,
        }
    }
}

#[derive(Deserialize)]
struct Body {
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<Complaint>,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    message: String,
    #[serde(default)]
    extensions: Extensions,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Extensions {
    code: Option<String>,
    r#type: Option<String>,
    user_presentable_message: Option<String>,
}

/// Returns the data of a successful response. Data together with errors is incomplete and counts as an error.
pub fn data_of(status: u16, headers: &HeaderMap, bytes: &[u8], kind: CallKind) -> Result<Value, WriteFailure> {
    let body: Option<Body> = serde_json::from_slice(bytes).ok();
    let (data, errors) = body.map_or((None, Vec::new()), |body| (body.data, body.errors));
    let complaint = errors.first();
    if status == 429 || complaint.is_some_and(|complaint| complaint.is("ratelimited")) {
        return Err(WriteFailure::Other(TrackerError::RateLimited { retry_after: budget::wait_of(headers) }));
    }
    match (status, data, complaint.map(|complaint| complaint.meaning(kind))) {
        (401 | 403, _, _) => {
            let said = complaint.map_or_else(|| beginning(bytes), Complaint::words);
            Err(no_access(kind, format!("Linear answers {status}: {said}")))
        }
        (500.., _, _) => Err(WriteFailure::Other(match kind {
            CallKind::Read | CallKind::AgentRead => TrackerError::Status { status, detail: beginning(bytes) },
            CallKind::Write => TrackerError::MaybeDone(format!("Linear answered {status}")),
        })),
        (_, _, Some(failure)) => Err(failure),
        (200, Some(data), None) if data.is_object() => Ok(data),
        (200, _, None) => Err(unreadable(kind, beginning(bytes))),
        (status, _, None) => Err(WriteFailure::Other(TrackerError::Status { status, detail: beginning(bytes) })),
    }
}

/// Returns the error for a refused access. What an agent asks for may be refused while the runner's own requests are not; if the
/// runner is locked out, its next request shows it.
fn no_access(kind: CallKind, words: String) -> WriteFailure {
    match kind {
        CallKind::AgentRead => WriteFailure::Refused(words),
        CallKind::Read | CallKind::Write => WriteFailure::Other(TrackerError::Auth(words)),
    }
}

/// Returns the error for a response that cannot be read.
pub fn unreadable(kind: CallKind, what: String) -> WriteFailure {
    WriteFailure::Other(match kind {
        CallKind::Read | CallKind::AgentRead => TrackerError::Response(what),
        CallKind::Write => TrackerError::MaybeDone(format!("the answer cannot be read: {what}")),
    })
}

impl Complaint {
    /// Whether the error has this code or type. Linear sends both, spelt differently; either may be missing.
    fn is(&self, wanted: &str) -> bool {
        let plain = |text: &String| text.to_lowercase().replace([' ', '_'], "");
        [&self.extensions.code, &self.extensions.r#type].into_iter().flatten().any(|said| plain(said) == wanted)
    }

    fn words(&self) -> String {
        match &self.extensions.user_presentable_message {
            Some(more) if !more.is_empty() && *more != self.message => format!("{} ({more})", self.message),
            _ => self.message.clone(),
        }
    }

    fn meaning(&self, kind: CallKind) -> WriteFailure {
        let words = self.words();
        if self.is("authenticationerror") {
            return no_access(kind, words);
        }
        if self.message.to_lowercase().starts_with("entity not found") {
            return WriteFailure::Missing(words);
        }
        let refused =
            ["forbidden", "featurenotaccessible", "inputerror", "invalidinput", "usererror", "usagelimitexceeded"]
                .into_iter()
                .any(|code| self.is(code));
        // A document that does not fit the schema is refused before anything is done.
        let not_understood =
            ["graphqlvalidationfailed", "graphqlparsefailed", "graphqlerror", "badrequest", "baduserinput"]
                .into_iter()
                .any(|code| self.is(code));
        match kind {
            CallKind::Read if self.is("forbidden") => WriteFailure::Other(TrackerError::Auth(words)),
            CallKind::Read => WriteFailure::Other(TrackerError::Response(words)),
            CallKind::AgentRead => WriteFailure::Refused(words),
            CallKind::Write if refused || not_understood => WriteFailure::Refused(words),
            CallKind::Write => WriteFailure::Other(TrackerError::MaybeDone(words)),
        }
    }
}

/// Returns the beginning of a body, enough to recognise what it is.
fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(160)]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "an empty answer".to_owned() } else { format!("`{text}`") }
}
