//! The table of all routes, and the handlers that are too small for a file of their own.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::{ApiError, nothing_here, wrong_method};
use super::events::events;
use super::shapes::{self, time};
use super::{Site, commands, guard, logs, metrics, openapi, page, webhooks, workspaces};
use crate::runtime::now;

/// How many lines of the story the field `recent_events` repeats. Symphony's specification has that field.
const RECENT_EVENTS: usize = 20;

pub fn all(site: Arc<Site>) -> Router {
    let open = Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz));
    let reads = Router::new()
        .route("/api/v1/runs/{run}/log", get(logs::log))
        .route("/api/v1/transcript/{run}", get(logs::transcript))
        .route("/openapi.json", get(openapi::serve))
        .route("/api/v1/workspaces", get(workspaces::list))
        .route("/api/v1/{key}/diff", get(workspaces::diff))
        .route("/api/v1/state", get(state))
        .route("/api/v1/events", get(events))
        .route("/api/v1/{key}", get(ticket));
    let reads = if site.serves_metrics { reads.route("/metrics", get(metrics::metrics)) } else { reads };
    let nudges = Router::new()
        .route("/api/v1/refresh", post(refresh))
        .route_layer(from_fn_with_state(site.clone(), guard::before_a_nudge));
    let changes = commands::routes()
        .route("/api/v1/workspaces/cleanup", post(workspaces::cleanup))
        .route_layer(from_fn_with_state(site.clone(), guard::before_a_change));
    Router::new()
        .merge(open)
        .merge(reads)
        .merge(nudges)
        .merge(changes)
        .merge(webhooks::routes(&site.webhooks))
        .merge(page::routes())
        .method_not_allowed_fallback(wrong_method)
        .fallback(nothing_here)
        .layer(map_response(enveloped))
        .layer(from_fn_with_state(site.clone(), guard::at_the_door))
        .with_state(site)
}

/// Turns the router's own plain-text refusals into the error envelope.
async fn enveloped(response: Response) -> Response {
    let is_bare = response.status().is_client_error()
        && response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !is_bare {
        return response;
    }
    ApiError::new(response.status(), "bad_request", "the address could not be understood").into_response()
}

/// Returns a response with `value` as JSON.
pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Response, ApiError> {
    let text = serde_json::to_string(value).map_err(|_| ApiError::internal("the answer could not be written"))?;
    Ok(json_text(status, text))
}

/// Returns a response whose text is JSON already.
pub fn json_text(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The response of `GET /healthz` and `GET /readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HealthAnswer {
    pub status: &'static str,
    /// What a person has to look at.
    pub why: Option<String>,
}

/// Reports that the runner is up.
async fn healthz() -> Result<Response, ApiError> {
    json(StatusCode::OK, &HealthAnswer { status: "ok", why: None })
}

/// Reports whether the runner can work: the board can be read and the ledger can be written.
async fn readyz(State(site): State<Arc<Site>>) -> Result<Response, ApiError> {
    let picture = site.handle.snapshot();
    let why = match (&picture.ledger_error, &picture.tracker.last_error, picture.tracker.last_ok) {
        (Some(_), _, _) => Some("the ledger cannot be written"),
        (None, Some(_), _) => Some("the board cannot be read"),
        (None, None, None) => Some("the board has not been read yet"),
        (None, None, Some(_)) => None,
    };
    match why {
        None => json(StatusCode::OK, &HealthAnswer { status: "ready", why: None }),
        Some(why) => {
            json(StatusCode::SERVICE_UNAVAILABLE, &HealthAnswer { status: "not ready", why: Some(why.to_owned()) })
        }
    }
}

async fn state(State(site): State<Arc<Site>>) -> Response {
    json_text(StatusCode::OK, site.pictures.latest().await.state.clone())
}

async fn ticket(State(site): State<Arc<Site>>, Path(key): Path<String>) -> Result<Response, ApiError> {
    let record = site.records.ticket(site.handle.snapshot(), &key).await?;
    let answer = shapes::ticket_answer(&record.job, &record.notes, &record.runs, RECENT_EVENTS);
    let text = serde_json::to_string(&answer).map_err(|_| ApiError::internal("the answer could not be written"))?;
    Ok(json_text(StatusCode::OK, site.clean.text(&text)))
}

/// The response of `POST /api/v1/refresh`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefreshAnswer {
    pub queued: bool,
    /// Whether the poll of an earlier request, which had not begun yet, answers this one, too.
    pub coalesced: bool,
    pub requested_at: String,
    pub operations: Vec<&'static str>,
}

/// Makes the poller read the board now. The request has no body; a body is not read.
async fn refresh(State(site): State<Arc<Site>>, _: Request) -> Result<Response, ApiError> {
    let requested_at = time(now());
    let coalesced = site.handle.refresh("api").await.map_err(ApiError::unavailable)?;
    let answer = RefreshAnswer { queued: true, coalesced, requested_at, operations: vec!["poll", "reconcile"] };
    json(StatusCode::ACCEPTED, &answer)
}
