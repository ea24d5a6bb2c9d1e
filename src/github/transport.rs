//! One exchange with the server. Uses octocrab's connection pool and TLS, but none of its retries.

use std::error::Error;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH};
use http::{Method, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use octocrab::{OctoBody, Octocrab};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use tokio::sync::OnceCell;

use super::access::Addresses;
use super::answer::Exchanged;
use super::error::GithubError;

/// The version of the API that the types here are written for.
const VERSION: &str = "2022-11-28";
/// The most bytes of an API response; a longer one is an error.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;
pub const MOST_REDIRECTS: usize = 4;

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    place: Place,
    body: Option<Vec<u8>>,
    etag: Option<String>,
    longest: usize,
    mutates: bool,
}

#[derive(Debug, Clone)]
enum Place {
    /// A path of GitHub's documentation.
    Rest(String),
    Graphql,
    /// A complete address of another host. No credential is sent there.
    Foreign(String),
}

impl Ask {
    fn new(method: Method, place: Place) -> Self {
        let mutates = method != Method::GET;
        Self { method, place, body: None, etag: None, longest: LONGEST_ANSWER, mutates }
    }

    pub fn get(path: &str, etag: Option<&str>) -> Self {
        Self { etag: etag.map(str::to_owned), ..Self::new(Method::GET, Place::Rest(path.to_owned())) }
    }

    pub fn foreign(url: &str) -> Self {
        Self::new(Method::GET, Place::Foreign(url.to_owned()))
    }

    pub fn write(method: Method, path: &str, body: Option<&(impl Serialize + ?Sized)>) -> Result<Self, GithubError> {
        let body = body.map(encoded).transpose()?;
        Ok(Self { body, ..Self::new(method, Place::Rest(path.to_owned())) })
    }

    pub fn graphql(body: &impl Serialize, mutates: bool) -> Result<Self, GithubError> {
        Ok(Self { body: Some(encoded(body)?), mutates, ..Self::new(Method::POST, Place::Graphql) })
    }

    pub fn no_longer_than(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    pub fn at(self, path: String) -> Self {
        Self { place: Place::Rest(path), ..self }
    }

    pub fn path(&self) -> &str {
        match &self.place {
            Place::Rest(path) | Place::Foreign(path) => path,
            Place::Graphql => "/graphql",
        }
    }

    pub fn writes(&self) -> bool {
        self.mutates
    }

    pub fn is_graphql(&self) -> bool {
        matches!(self.place, Place::Graphql)
    }

    pub fn is_foreign(&self) -> bool {
        matches!(self.place, Place::Foreign(_))
    }
}

fn encoded(body: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, GithubError> {
    serde_json::to_vec(body).map_err(|error| GithubError::Config(format!("a request cannot be written: {error}")))
}

pub struct Transport {
    origin: String,
    timeout: Duration,
    /// Created with the first request: it needs a running event loop, and reads the system's certificates.
    crab: OnceCell<Octocrab>,
}

impl Transport {
    pub fn new(addresses: &Addresses, timeout: Duration) -> Self {
        Self { origin: addresses.origin.clone(), timeout, crab: OnceCell::new() }
    }

    async fn crab(&self) -> Result<&Octocrab, GithubError> {
        let make = async || {
            let builder = Octocrab::builder().base_uri(self.origin.as_str())?;
            builder.set_connect_timeout(Some(self.timeout.min(Duration::from_secs(10)))).build()
        };
        let made = self.crab.get_or_try_init(make).await;
        made.map_err(|error| GithubError::Config(format!("no connection can be made: {}", chain(&error))))
    }

    /// Sends a request once and reads the response to its end.
    pub async fn exchange(
        &self,
        addresses: &Addresses,
        question: &Ask,
        credential: Option<&SecretString>,
    ) -> Result<Exchanged, GithubError> {
        let crab = self.crab().await?;
        let request = request(addresses, question, credential)?;
        let asked = tokio::time::timeout(self.timeout, async {
            let response = crab.send(request).await.map_err(|error| no_answer(question, &error))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, question.longest).collect().await;
            let body = body.map_err(|error| broken_off(question, error.as_ref()))?.to_bytes().to_vec();
            Ok(Exchanged { status: parts.status.as_u16(), headers: parts.headers, body })
        });
        asked.await.unwrap_or_else(|_| {
            let detail = format!("no answer within {} s", self.timeout.as_secs_f32());
            Err(if question.writes() { GithubError::MaybeDone(detail) } else { GithubError::Unreachable(detail) })
        })
    }
}

fn request(
    addresses: &Addresses,
    question: &Ask,
    credential: Option<&SecretString>,
) -> Result<Request<OctoBody>, GithubError> {
    let uri = match &question.place {
        Place::Rest(path) => addresses.rest(path),
        Place::Graphql => addresses.graphql().to_owned(),
        Place::Foreign(url) => url.clone(),
    };
    let mut request = Request::builder().method(question.method.clone()).uri(uri);
    if !question.is_foreign() {
        request = request.header(ACCEPT, "application/vnd.github+json").header("x-github-api-version", VERSION);
    }
    if let Some(credential) = credential {
        let header = HeaderValue::from_str(&format!("Bearer {}", credential.expose_secret()));
        let mut header = header.map_err(|_| GithubError::Config("the token cannot be sent".to_owned()))?;
        header.set_sensitive(true);
        request = request.header(AUTHORIZATION, header);
    }
    if let Some(etag) = &question.etag {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let body = match &question.body {
        Some(body) => {
            request = request.header(CONTENT_TYPE, "application/json");
            OctoBody::from(body.clone())
        }
        None => OctoBody::empty(),
    };
    request.body(body).map_err(|error| GithubError::Config(format!("{} cannot be asked: {error}", question.path())))
}

/// Returns the error for a request that could not be sent or got no response.
fn no_answer(question: &Ask, error: &octocrab::Error) -> GithubError {
    let detail = chain(error);
    match question.writes() && !never_left(error) {
        true => GithubError::MaybeDone(detail),
        false => GithubError::Unreachable(detail),
    }
}

fn broken_off(question: &Ask, error: &(dyn Error + 'static)) -> GithubError {
    let detail = match error.is::<LengthLimitError>() {
        true => format!("the answer is longer than {} bytes", question.longest),
        false => format!("the answer breaks off: {}", chain(error)),
    };
    if question.writes() { GithubError::MaybeDone(detail) } else { GithubError::Unreadable(detail) }
}

/// Whether the request was certainly not sent, because no connection was made.
fn never_left(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return error.is_connect();
        }
        next = error.source();
    }
    false
}

/// Formats an error with its causes. A cause whose text is already contained is left out.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
        next = error.source();
    }
    words
}
