//! The routes that change something. Each sends the same request as the control socket takes, in the name of the token's owner.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::guard::Bearer;
use super::records::find;
use super::routes::json;
use super::{Site, body};
use crate::runtime::{self, Reply, Request as Wish};

pub fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/api/v1/pause", post(pause_all))
        .route("/api/v1/resume", post(resume_all))
        .route("/api/v1/{key}/pause", post(pause))
        .route("/api/v1/{key}/resume", post(resume))
        .route("/api/v1/{key}/stop", post(stop))
        .route("/api/v1/{key}/retry", post(retry))
        .route("/api/v1/{key}/approve", post(approve))
        .route("/api/v1/{key}/reject", post(reject))
        .route("/api/v1/{key}/answer", post(answer))
        .route("/api/v1/{key}/message", post(message))
}

/// What was done, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoneAnswer {
    pub message: String,
}

/// The body of a request that needs no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoWords {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalWords {
    /// The commit that was looked at. No other commit is approved.
    pub head: String,
    /// The remarks that this approval overrules, by the names that the ticket shows.
    #[serde(default)]
    pub overrule: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Words {
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageWords {
    pub text: String,
    /// Whether to interrupt what the agent is doing.
    #[serde(default)]
    pub urgent: bool,
}

type Asked = Result<Response, ApiError>;

async fn pause_all(State(site): State<Arc<Site>>, request: Request) -> Asked {
    let (by, NoWords {}) = heard(request).await?;
    told(&site, Wish::PauseAll, &by).await
}

async fn resume_all(State(site): State<Arc<Site>>, request: Request) -> Asked {
    let (by, NoWords {}) = heard(request).await?;
    told(&site, Wish::ResumeAll, &by).await
}

async fn pause(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, NoWords {}) = heard(request).await?;
    told(&site, Wish::Pause { ticket: known(&site, &key)? }, &by).await
}

async fn resume(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, NoWords {}) = heard(request).await?;
    told(&site, Wish::Resume { ticket: known(&site, &key)? }, &by).await
}

async fn stop(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, NoWords {}) = heard(request).await?;
    told(&site, Wish::Stop { ticket: known(&site, &key)? }, &by).await
}

async fn retry(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, NoWords {}) = heard(request).await?;
    told(&site, Wish::Retry { ticket: known(&site, &key)? }, &by).await
}

async fn approve(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, ApprovalWords { head, overrule }) = heard(request).await?;
    let is_commit = (7..=64).contains(&head.len()) && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_commit {
        return Err(ApiError::bad_request("`head` is not a commit: name the one that was looked at"));
    }
    let ticket = known(&site, &key)?;
    told(&site, Wish::Approve { ticket, head: Some(head), anyway: false, overrule }, &by).await
}

async fn reject(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, Words { text }) = heard(request).await?;
    let text = said(text)?;
    told(&site, Wish::Reject { ticket: known(&site, &key)?, text }, &by).await
}

/// Answers an agent's question. The answer is a normal message: a live agent gets it at once, otherwise the next prompt contains it.
async fn answer(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, Words { text }) = heard(request).await?;
    let text = said(text)?;
    told(&site, Wish::Message { ticket: known(&site, &key)?, text, urgent: false }, &by).await
}

async fn message(State(site): State<Arc<Site>>, Path(key): Path<String>, request: Request) -> Asked {
    let (by, MessageWords { text, urgent }) = heard(request).await?;
    let text = said(text)?;
    told(&site, Wish::Message { ticket: known(&site, &key)?, text, urgent }, &by).await
}

/// Returns the token's name, as the guard found it, and the parsed body.
async fn heard<T: DeserializeOwned>(request: Request) -> Result<(String, T), ApiError> {
    let (parts, body): (_, Body) = request.into_parts();
    let Some(Bearer(by)) = parts.extensions.get().cloned() else {
        return Err(ApiError::unauthorized("it is not known who asks"));
    };
    Ok((by, body::object(&parts.headers, body).await?))
}

fn said(text: String) -> Result<String, ApiError> {
    if text.trim().is_empty() { Err(ApiError::bad_request("`text` says nothing")) } else { Ok(text) }
}

/// Finds a ticket by its exact key or id. Similar keys are not accepted here, because a program cannot be asked which one it meant.
fn known(site: &Site, key: &str) -> Result<String, ApiError> {
    let picture = site.handle.snapshot();
    find(&picture, key).map(|job| job.id.clone()).ok_or_else(|| ApiError::unknown_ticket(&site.clean.text(key)))
}

async fn told(site: &Site, wish: Wish, by: &str) -> Asked {
    match runtime::carry_out(wish, &site.handle, by).await {
        Reply::Done { text } => json(StatusCode::OK, &DoneAnswer { message: site.clean.text(&text) }),
        Reply::Refused { error } => Err(ApiError::conflict(site.clean.text(&error))),
        Reply::Snapshot { .. } => Err(ApiError::internal("the runner gave another answer than was asked for")),
    }
}
