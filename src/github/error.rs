//! Everything that can go wrong between Dirigent and GitHub, distinguished by what has to happen next.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use super::answer::{Exchanged, looks_like_html};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GithubError {
    #[error("{0}")]
    Config(String),
    /// No request was sent.
    #[error("GitHub could not be reached: {0}")]
    Unreachable(String),
    /// A write was not sent: its permit no longer held when its turn came.
    #[error("it was stopped before its turn came")]
    Withdrawn,
    /// A write was sent, and its result is not known.
    #[error("GitHub's answer was lost: {0}")]
    MaybeDone(String),
    /// No request gets through until a person repairs the access.
    #[error("GitHub refuses our access: {0}")]
    Auth(String),
    #[error("{by} for {} s", wait.as_secs())]
    RateLimited { wait: Duration, by: LimitKind },
    /// It does not exist or is not visible to this credential: GitHub responds 404 in both cases.
    #[error("GitHub does not show it: {0}")]
    NotFound(String),
    /// It existed and was deleted.
    #[error("it was deleted: {0}")]
    Gone(String),
    /// It is at another address now, and Dirigent was not configured for that address.
    #[error("it was moved to {0}")]
    Moved(String),
    #[error("GitHub refuses: {0}")]
    Refused(Rejection),
    /// A read that failed in the server.
    #[error("GitHub answered {status}: {detail}")]
    Server { status: u16, detail: String },
    #[error("GitHub's answer could not be understood: {0}")]
    Unreadable(String),
    #[error("a page of GitHub's answer is missing: {0}")]
    Pages(String),
}

/// The limit that stops requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// GitHub's number of requests per hour.
    Primary,
    /// GitHub's limit on too many requests at once.
    Secondary,
    /// Dirigent's own limit: the last requests of the hour are reserved for stopping and landing.
    Reserve,
    /// Dirigent's own limit on writes, just below GitHub's.
    OwnPace,
}

impl LimitKind {
    /// Whether the limit is Dirigent's own. GitHub would still respond, and requests that may use the reserve go on.
    pub fn is_our_own(self) -> bool {
        matches!(self, Self::Reserve | Self::OwnPace)
    }
}

impl Display for LimitKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Primary => "GitHub's requests of this hour are used up; nothing is asked",
            Self::Secondary => "GitHub finds us too fast; nothing is asked",
            Self::Reserve => {
                "the last of this hour's requests are kept for stopping and landing; nothing else is asked"
            }
            Self::OwnPace => "we have written as much as GitHub lets anybody write; nothing is written",
        })
    }
}

/// A refusal that does not change until a person changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub status: u16,
    pub message: String,
    pub fields: Vec<FieldFault>,
    /// The permissions or scopes that the operation needs, where GitHub lists them.
    pub needs: Option<String>,
}

impl Display for Rejection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.message, self.status)?;
        for fault in &self.fields {
            write!(out, "; {fault}")?;
        }
        match &self.needs {
            Some(needs) => write!(out, "; it takes a token with {needs}"),
            None => Ok(()),
        }
    }
}

/// What is wrong with one field of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FieldFault {
    pub resource: String,
    pub field: String,
    pub code: String,
    pub message: String,
}

impl Display for FieldFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = [self.resource.as_str(), self.field.as_str()].into_iter().filter(|part| !part.is_empty());
        let place = place.collect::<Vec<_>>().join(".");
        match (place.is_empty(), self.message.is_empty()) {
            (true, _) => out.write_str(&self.message),
            (false, true) => write!(out, "{place}: {}", self.code),
            (false, false) => write!(out, "{place}: {}", self.message),
        }
    }
}

/// The body of GitHub's error responses.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words {
    message: String,
    errors: Vec<serde_json::Value>,
}

/// The wait after a limit for which GitHub sends no end. GitHub requires at least a minute.
const UNNAMED_WAIT: Duration = Duration::from_secs(60);

/// Turns a response that is not a success into an error.
pub fn classify(answer: &Exchanged, writes: bool) -> GithubError {
    let words: Words = serde_json::from_slice(&answer.body).unwrap_or_default();
    let message = match words.message.as_str() {
        "" if looks_like_html(&answer.body) => "a page for people, and no reason".to_owned(),
        "" => "no reason".to_owned(),
        words => words.trim_end_matches('.').to_owned(),
    };
    match answer.status {
        401 => GithubError::Auth(format!("{message} (401); the token is wrong, expired or revoked")),
        403 | 429 => limited(answer, &message).unwrap_or_else(|| forbidden(answer, message, &words)),
        404 => GithubError::NotFound(message),
        410 => GithubError::Gone(message),
        408 | 500.. if writes => GithubError::MaybeDone(format!("{message} ({})", answer.status)),
        408 | 500.. => GithubError::Server { status: answer.status, detail: message },
        _ => refused(answer, message, &words),
    }
}

/// Returns the limit behind a 403 or a 429. `None` if the cause is not a limit.
fn limited(answer: &Exchanged, message: &str) -> Option<GithubError> {
    let lower = message.to_lowercase();
    let secondary = lower.contains("secondary rate limit") || lower.contains("abuse detection");
    let used_up = answer.number("x-ratelimit-remaining") == Some(0);
    let by = if used_up && !secondary { LimitKind::Primary } else { LimitKind::Secondary };
    if let Some(seconds) = answer.number("retry-after") {
        return Some(GithubError::RateLimited { wait: Duration::from_secs(seconds), by });
    }
    if used_up && !secondary {
        return Some(GithubError::RateLimited { wait: until_reset(answer).unwrap_or(UNNAMED_WAIT), by });
    }
    let named = secondary || answer.status == 429 || lower.contains("rate limit exceeded");
    named.then_some(GithubError::RateLimited { wait: UNNAMED_WAIT, by })
}

/// Returns the time until the limit is reset, by the server's clock, because the local clock may be wrong.
pub fn until_reset(answer: &Exchanged) -> Option<Duration> {
    let reset = i64::try_from(answer.number("x-ratelimit-reset")?).ok()?;
    let now = answer.date().map_or_else(|| jiff::Timestamp::now().as_second(), |date| date.0 / 1000);
    Some(Duration::from_secs(u64::try_from(reset - now).unwrap_or(0).max(1)))
}

fn forbidden(answer: &Exchanged, message: String, words: &Words) -> GithubError {
    match answer.header("x-github-sso") {
        Some(sso) => GithubError::Auth(format!(
            "the organisation wants the token to be authorised for its single sign-on ({})",
            sso.trim_start_matches("required; url=")
        )),
        None => refused(answer, message, words),
    }
}

fn refused(answer: &Exchanged, message: String, words: &Words) -> GithubError {
    let fields = words.errors.iter().map(|one| match one.as_str() {
        Some(text) => FieldFault { message: text.to_owned(), ..FieldFault::default() },
        None => FieldFault::deserialize(one).unwrap_or_default(),
    });
    let needs = ["x-accepted-github-permissions", "x-accepted-oauth-scopes"];
    let needs = needs.into_iter().filter_map(|name| answer.header(name)).find(|needs| !needs.trim().is_empty());
    GithubError::Refused(Rejection {
        status: answer.status,
        message,
        fields: fields.collect(),
        needs: needs.filter(|_| answer.status == 403).map(str::to_owned),
    })
}
