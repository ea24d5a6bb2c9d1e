//! One answer of the server, and what can be read from it.

use http::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;

use super::error::{GithubError, classify};
use crate::domain::time::Timestamp;

/// An answer as it came.
#[derive(Debug)]
pub struct Exchanged {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// An answer that was given, with what is needed to ask again or to go on.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    pub body: Vec<u8>,
    pub etag: Option<String>,
    /// The address of the next page, as the server says it.
    pub next: Option<String>,
    /// The server's clock.
    pub date: Option<Timestamp>,
    /// What a classic token may do; other tokens do not tell.
    pub scopes: Option<Vec<String>>,
}

impl Fetched {
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, GithubError> {
        read_json(&self.body)
    }
}

/// What became of a question that was asked with a tag.
#[derive(Debug)]
pub enum Unless {
    /// The answer that the tag stands for still holds.
    Unchanged {
        date: Option<Timestamp>,
    },
    Fetched(Fetched),
}

impl Exchanged {
    pub fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.get(HeaderName::from_static(name))?.to_str().ok()
    }

    pub fn number(&self, name: &'static str) -> Option<u64> {
        self.header(name)?.trim().parse().ok()
    }

    pub fn date(&self) -> Option<Timestamp> {
        let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(self.header("date")?).ok()?;
        Some(Timestamp(date.as_millisecond()))
    }

    pub fn location(&self) -> Option<String> {
        self.header("location").map(str::to_owned)
    }

    /// Where a redirect leads; nothing for any other answer.
    pub fn redirect(&self) -> Option<String> {
        self.location().filter(|_| matches!(self.status, 301 | 302 | 303 | 307 | 308))
    }

    /// The answer, if it is one and not a refusal.
    pub fn checked(self, writes: bool) -> Result<Self, GithubError> {
        match self.status {
            200..=299 | 304 => Ok(self),
            _ => Err(classify(&self, writes)),
        }
    }
}

impl From<Exchanged> for Fetched {
    fn from(answer: Exchanged) -> Self {
        let next = answer.header("link").and_then(next_link);
        let scopes = answer.header("x-oauth-scopes").map(|scopes| {
            scopes.split(',').map(|scope| scope.trim().to_owned()).filter(|scope| !scope.is_empty()).collect()
        });
        let etag = answer.header("etag").map(str::to_owned);
        Self { etag, next, date: answer.date(), scopes, body: answer.body }
    }
}

/// The address after `rel="next"`.
fn next_link(link: &str) -> Option<String> {
    link.split(',').find_map(|part| {
        let (address, rest) = part.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = rest.split(';').any(|one| matches!(one.trim(), "rel=\"next\"" | "rel=next"));
        is_next.then(|| address.to_owned())
    })
}

pub fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, GithubError> {
    serde_json::from_slice(body).map_err(|error| GithubError::Unreadable(unreadable(body, &error)))
}

/// A write that was confirmed in words that nobody understands: it may be done.
pub fn read_written<T: DeserializeOwned>(body: &[u8]) -> Result<T, GithubError> {
    serde_json::from_slice(body).map_err(|error| GithubError::MaybeDone(unreadable(body, &error)))
}

fn unreadable(body: &[u8], error: &serde_json::Error) -> String {
    match looks_like_html(body) {
        true => "a page for people came instead of JSON".to_owned(),
        false if error.is_eof() => format!("the answer breaks off after {} bytes", body.len()),
        false => format!("the answer is not what the API describes: {error}"),
    }
}

pub fn looks_like_html(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_the_links() {
        let link = "<https://h/repositories/1/issues?page=1>; rel=\"prev\", <https://h/repositories/1/issues?page=3>; rel=\"next\"";
        assert_eq!(next_link(link).as_deref(), Some("https://h/repositories/1/issues?page=3"));
        assert_eq!(next_link("<https://h/x?page=1>; rel=\"first\""), None);
        assert_eq!(next_link("nonsense"), None);
    }
}
