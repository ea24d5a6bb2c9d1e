//! Sends requests to Linear. Nothing is repeated here, and a partial response to a read is an error. `refusals` defines what each
//! failure means.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use graphql_client::GraphQLQuery;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::agent_document::Sendable;
use super::budget::{self, Budget};
use super::refusals::{self, WriteFailure};
use crate::domain::loopback::is_loopback;
use crate::domain::time::Timestamp;
use crate::tracker::TrackerError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(30);
/// More than the largest page can have.
const LARGEST_ANSWER: usize = 64 << 20;

pub struct LinearClient {
    http: reqwest::Client,
    endpoint: String,
    budget: Mutex<Budget>,
}

/// Linear's response, with the time of the request by Linear's clock.
#[derive(Debug)]
pub struct DatedReply<T> {
    pub data: T,
    pub asked_at: Option<Timestamp>,
}

/// The kind of a request. It decides what a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Read,
    /// A read for an agent: a refusal is a response for the agent, and says nothing about the runner's access.
    AgentRead,
    Write,
}

impl LinearClient {
    pub fn new(endpoint: &str, key: &SecretString) -> Result<Self, TrackerError> {
        let invalid = |why: String| TrackerError::InvalidConfig(why);
        let address = reqwest::Url::parse(endpoint)
            .map_err(|error| invalid(format!("tracker.provider.endpoint `{endpoint}` is not an address: {error}")))?;
        let loopback = address.host_str().is_some_and(is_loopback);
        if address.scheme() != "https" && !(address.scheme() == "http" && loopback) {
            return Err(invalid(format!(
                "tracker.provider.endpoint `{endpoint}` is not https: the key would be read on its way"
            )));
        }
        let mut value = HeaderValue::from_str(&authorization(key.expose_secret().trim()))
            .map_err(|_| invalid("tracker.provider.api_key has characters that no key has".to_owned()))?;
        value.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        // An error means that the same provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .default_headers(headers)
            .user_agent(concat!("dirigent/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // The key is sent to the configured address only.
            .redirect(reqwest::redirect::Policy::none());
        if loopback {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| TrackerError::Request(words(&error)))?;
        Ok(Self { http, endpoint: endpoint.to_owned(), budget: Mutex::default() })
    }

    pub fn budget(&self) -> Budget {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a read whose response must be complete and fit the schema.
    pub async fn ask<Q: GraphQLQuery>(
        &self,
        variables: Q::Variables,
    ) -> Result<DatedReply<Q::ResponseData>, TrackerError>
    where
        Q::Variables: Serialize,
        Q::ResponseData: DeserializeOwned,
    {
        let DatedReply { data, asked_at } = self.ask_loosely::<Q>(variables).await?;
        let data = serde_json::from_value(data).map_err(|error| TrackerError::Response(error.to_string()))?;
        Ok(DatedReply { data, asked_at })
    }

    /// Sends a read and returns its response undecoded. The caller decodes the records one by one, so that a malformed one does not
    /// hide the others.
    pub async fn ask_loosely<Q: GraphQLQuery>(&self, variables: Q::Variables) -> Result<DatedReply<Value>, TrackerError>
    where
        Q::Variables: Serialize,
    {
        Ok(self.send(&Q::build_query(variables), CallKind::Read).await?)
    }

    /// Sends a write. A response with `success: false` is an error.
    pub async fn tell<Q: GraphQLQuery>(&self, variables: Q::Variables) -> Result<Q::ResponseData, WriteFailure>
    where
        Q::Variables: Serialize,
        Q::ResponseData: DeserializeOwned,
    {
        let DatedReply { data, .. } = self.send(&Q::build_query(variables), CallKind::Write).await?;
        let refused = data.as_object().is_some_and(|fields| fields.values().any(|field| field["success"] == false));
        if refused {
            return Err(WriteFailure::Refused("Linear says that it was not done, and not why".to_owned()));
        }
        // The write was done; only its response cannot be read.
        serde_json::from_value(data).map_err(|error| WriteFailure::Other(TrackerError::MaybeDone(error.to_string())))
    }

    /// Sends an agent's document.
    pub async fn relay(&self, document: &Sendable, kind: CallKind) -> Result<Value, WriteFailure> {
        let body = serde_json::json!({ "query": document.query, "variables": document.variables });
        Ok(self.send(&body, kind).await?.data)
    }

    /// Downloads a file. A file longer than `longest` bytes is an error.
    pub async fn download(&self, url: &str, longest: usize) -> Result<Vec<u8>, TrackerError> {
        let lost = |error: reqwest::Error| TrackerError::Request(words(&error));
        let mut response = self.http.get(url).send().await.map_err(lost)?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(TrackerError::Refused(format!("Linear answers {status}")));
        }
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(lost)? {
            if bytes.len() + part.len() > longest {
                return Err(TrackerError::Refused(format!("it is longer than {longest} bytes")));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    async fn send(&self, body: &impl Serialize, kind: CallKind) -> Result<DatedReply<Value>, WriteFailure> {
        let lost = |error: reqwest::Error| {
            let never_left = error.is_connect() || error.is_builder();
            WriteFailure::Other(match kind {
                CallKind::Write if !never_left => TrackerError::MaybeDone(words(&error)),
                _ => TrackerError::Request(words(&error)),
            })
        };
        let began = Instant::now();
        let mut response = self.http.post(&self.endpoint).json(body).send().await.map_err(lost)?;
        self.budget.lock().unwrap_or_else(PoisonError::into_inner).take_in(response.headers());
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        // The request was sent before the response was dated.
        let took = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let asked_at = budget::server_time(&headers).map(|at| Timestamp(at.0.saturating_sub(took)));
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(lost)? {
            if bytes.len() + part.len() > LARGEST_ANSWER {
                return Err(refusals::unreadable(kind, "it is larger than any answer should be".to_owned()));
            }
            bytes.extend_from_slice(&part);
        }
        let data = refusals::data_of(status, &headers, &bytes, kind)?;
        Ok(DatedReply { data, asked_at })
    }
}

/// Returns the value of the authorization header: a personal key as it is, the token of an OAuth application with `Bearer`.
fn authorization(key: &str) -> String {
    if key.starts_with("lin_oauth_") { format!("Bearer {key}") } else { key.to_owned() }
}

/// Formats an error with all its causes, because the outermost one only says that a request failed. The address is left out.
fn words(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() { "no answer in time".to_owned() } else { "the request failed".to_owned() };
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_sent_to_nobody_who_could_be_listened_in_on() {
        let key = SecretString::from("lin_api_test");
        for endpoint in ["https://api.linear.app/graphql", "http://127.0.0.1:4711/graphql", "http://localhost/graphql"]
        {
            assert!(LinearClient::new(endpoint, &key).is_ok(), "{endpoint}");
        }
        for endpoint in
            ["http://127.0.0.1.example.com/graphql", "http://linear.example.com/graphql", "ftp://127.0.0.1/"]
        {
            let refused = LinearClient::new(endpoint, &key).err().map(|error| error.to_string());
            assert!(refused.as_deref().is_some_and(|said| said.contains("is not https")), "{endpoint}: {refused:?}");
        }
    }
}
