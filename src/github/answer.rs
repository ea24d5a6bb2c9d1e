//! One response of the server, and how it is read.

use http::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;

use super::error::{GithubError, classify};
use crate::domain::time::Timestamp;

/// A response as it was received.
#[derive(Debug)]
pub struct Exchanged {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A successful response, with the headers that are needed for the next request.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    pub body: Vec<u8>,
    pub etag: Option<String>,
    /// The address of the next page, as the server sent it.
    pub next: Option<String>,
    /// The time by the server's clock.
    pub date: Option<Timestamp>,
    /// The scopes of a classic token. `None` for other tokens, for which GitHub does not send them.
    pub scopes: Option<Vec<String>>,
}

impl Fetched {
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, GithubError> {
        read_json(&self.body)
    }
}

/// The result of a request with an etag.
#[derive(Debug)]
pub enum Unless {
    /// The response that belongs to the etag is still current.
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

    /// Returns the target of a redirect. `None` for any other response.
    pub fn redirect(&self) -> Option<String> {
        self.location().filter(|_| matches!(self.status, 301 | 302 | 303 | 307 | 308))
    }

    /// Returns the response if it is a success or 304, otherwise the error that it means.
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

/// Returns the address with `rel="next"`.
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

/// Reads the response to a write. The server confirmed the write, so a response that cannot be understood is `MaybeDone`.
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
