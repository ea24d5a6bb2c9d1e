//! The routes of the pages. Pages are rendered on blocking threads, so that they do not delay other requests.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::diff::DiffText;
use super::templates::{PageDraft, PageError};
use super::ticket::TicketSources;
use super::{assets, dashboard, ticket};
use crate::domain::ids::TicketId;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::http::{ApiError, Site};
use crate::runtime::now;

/// How many lines of a session a ticket's page shows.
const PEEKED: usize = 80;

/// The content security policy: only files from this server, and no inline script or style. So text of a ticket never runs as code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/", get(front))
        .route("/phases/{phase}", get(of_phase))
        .route("/tickets/{key}", get(of_ticket))
        .route("/login", get(login))
        .route("/assets/{name}", get(asset))
}

async fn front(State(site): State<Arc<Site>>) -> Response {
    let picture = picture(&site).await;
    let name = repository(&site);
    shown(&site, StatusCode::OK, move || dashboard::dashboard(&picture, &name)).await
}

async fn of_phase(State(site): State<Arc<Site>>, Path(phase): Path<String>) -> Response {
    let Some(phase) = Phase::from_name(&phase) else {
        return missing(&site, &ApiError::not_found("there is no such phase")).await;
    };
    let (picture, name) = (picture(&site).await, repository(&site));
    shown(&site, StatusCode::OK, move || dashboard::phase(&picture, &name, phase)).await
}

async fn login(State(site): State<Arc<Site>>) -> Response {
    let name = repository(&site);
    shown(&site, StatusCode::OK, move || dashboard::login(&name)).await
}

async fn of_ticket(State(site): State<Arc<Site>>, Path(key): Path<String>) -> Response {
    match ticket_page(&site, &key).await {
        Ok(response) => response,
        Err(error) => missing(&site, &error).await,
    }
}

async fn ticket_page(site: &Arc<Site>, key: &str) -> Result<Response, ApiError> {
    let picture = picture(site).await;
    let record = site.records.ticket(site.handle.snapshot(), key).await?;
    let id = TicketId::new(record.job.id.clone());
    let written = site.records.ask(move |ledger| ledger.jobs(&[id])).await?.pop();
    let diff = diff(site, &record.job).await;
    let last = record.runs.last().map(|finished| finished.run.id.to_string());
    let peek = match record.job.run.as_ref().map(|run| run.id.clone()).or(last) {
        // A run that has printed nothing yet has no transcript.
        Some(run) => site.transcript(&run, PEEKED).await.map(|told| told.lines).unwrap_or_default(),
        None => Vec::new(),
    };
    let name = repository(site);
    let page = move || {
        ticket::ticket(&TicketSources {
            picture: &picture,
            repository: &name,
            job: &record.job,
            record: written.as_ref(),
            notes: &record.notes,
            runs: &record.runs,
            peek: &peek,
            diff: &diff,
        })
    };
    Ok(shown(site, StatusCode::OK, page).await)
}

async fn diff(site: &Site, job: &JobView) -> DiffText {
    if job.head.is_none() {
        return DiffText::Nothing;
    }
    match site.diff(job).await {
        Ok(answer) => DiffText::There { base: answer.base, head: answer.head, text: answer.patch, cut: answer.cut },
        Err(error) => DiffText::Unknown { why: error.message },
    }
}

/// Returns the newest picture with the current time: an idle runner publishes rarely.
async fn picture(site: &Site) -> Snapshot {
    let mut picture = (*site.pictures.latest().await.picture).clone();
    picture.at = now();
    picture
}

/// Returns the repository's name. The runner's folder is called by it, followed by a hash that is left out.
fn repository(site: &Site) -> String {
    let folder = site.records.state_dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    folder.rsplit_once('-').map_or(folder.clone(), |(name, _)| name.to_owned())
}

async fn missing(site: &Arc<Site>, error: &ApiError) -> Response {
    let (name, why) = (repository(site), error.message.clone());
    shown(site, error.status, move || dashboard::missing(&name, &why)).await
}

async fn shown(
    site: &Arc<Site>,
    status: StatusCode,
    page: impl FnOnce() -> Result<PageDraft, PageError> + Send + 'static,
) -> Response {
    let clean = site.clean.clone();
    let made = tokio::task::spawn_blocking(move || page()?.html(|text| clean.text(text))).await;
    match made {
        Ok(Ok(html)) => answer(status, "text/html; charset=utf-8", html),
        Ok(Err(error)) => {
            tracing::error!(%error, "the dashboard cannot be made");
            ApiError::internal("the page could not be made").into_response()
        }
        Err(_) => ApiError::internal("the page could not be made").into_response(),
    }
}

async fn asset(Path(name): Path<String>) -> Response {
    let Some((kind, text)) = assets::file(&name) else {
        return ApiError::not_found("there is no such file").into_response();
    };
    let mut response = answer(StatusCode::OK, kind, text);
    // A changed file has another address.
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, for_ever);
    response
}

fn answer(status: StatusCode, kind: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let alone = HeaderValue::from_static("same-origin");
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), alone.clone());
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), alone);
    response
}
