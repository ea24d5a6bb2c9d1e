//! What Linear's refusals mean. It says much with status 200 and an `errors` list, refuses too many requests with 400, and whatever
//! stands between may answer with a page of HTML.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use super::budget;
use super::client::Kind;
use crate::tracker::TrackerError;

/// Why something was not done. A write branches on the first two.
#[derive(Debug)]
pub enum Failure {
    /// Linear does not know what the request is about.
    Missing(String),
    /// Linear understood it, and does not do it.
    Refused(String),
    Other(TrackerError),
}

impl From<Failure> for TrackerError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing(why) | Failure::Refused(why) => Self::Refused(why),
            Failure::Other(error) => error,
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

/// The data of a good answer. Data beside errors is a part, and a part is not an answer.
pub fn data_of(status: u16, headers: &HeaderMap, bytes: &[u8], kind: Kind) -> Result<Value, Failure> {
    let body: Option<Body> = serde_json::from_slice(bytes).ok();
    let (data, errors) = body.map_or((None, Vec::new()), |body| (body.data, body.errors));
    let complaint = errors.first();
    if status == 429 || complaint.is_some_and(|complaint| complaint.is("ratelimited")) {
        return Err(Failure::Other(TrackerError::RateLimited { retry_after: budget::wait_of(headers) }));
    }
    match (status, data, complaint.map(|complaint| complaint.meaning(kind))) {
        (401 | 403, _, _) => {
            let said = complaint.map_or_else(|| beginning(bytes), Complaint::words);
            Err(Failure::Other(TrackerError::Auth(format!("Linear answers {status}: {said}"))))
        }
        (500.., _, _) => Err(Failure::Other(match kind {
            Kind::Read => TrackerError::Status { status, detail: beginning(bytes) },
            Kind::Write => TrackerError::MaybeDone(format!("Linear answered {status}")),
        })),
        (_, _, Some(failure)) => Err(failure),
        (200, Some(data), None) if data.is_object() => Ok(data),
        (200, _, None) => Err(unreadable(kind, beginning(bytes))),
        (status, _, None) => Err(Failure::Other(TrackerError::Status { status, detail: beginning(bytes) })),
    }
}

/// An answer that came and says nothing.
pub fn unreadable(kind: Kind, what: String) -> Failure {
    Failure::Other(match kind {
        Kind::Read => TrackerError::Response(what),
        Kind::Write => TrackerError::MaybeDone(format!("the answer cannot be read: {what}")),
    })
}

impl Complaint {
    /// Linear has a code and a type that say the same in two spellings; either may be missing.
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

    fn meaning(&self, kind: Kind) -> Failure {
        let words = self.words();
        if self.is("authenticationerror") {
            return Failure::Other(TrackerError::Auth(words));
        }
        if self.message.to_lowercase().starts_with("entity not found") {
            return Failure::Missing(words);
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
            Kind::Read if self.is("forbidden") => Failure::Other(TrackerError::Auth(words)),
            Kind::Read => Failure::Other(TrackerError::Response(words)),
            Kind::Write if refused || not_understood => Failure::Refused(words),
            Kind::Write => Failure::Other(TrackerError::MaybeDone(words)),
        }
    }
}

/// Enough of a body to recognise what it is.
fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(160)]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "an empty answer".to_owned() } else { format!("`{text}`") }
}
