//! Webhooks: deliveries that report that something has changed. Each delivery is verified by its signature, processed once and answered at
//! once. It becomes hints: the ticket or pull request in it is read again, and nothing else in it is trusted.

mod github;
mod linear;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use ring::hmac;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::error::ApiError;
use super::routes::json;
use super::{Site, body};
use crate::config::Settings;
use crate::config::tracker::TrackerKind;
use crate::domain::hint::Hint;
use crate::runtime::{DeliverySource, Handle, assembly};

/// Limit of a delivery in bytes. GitHub's are larger only for events that are not used here.
const LARGEST: usize = 2 << 20;
/// How many delivery ids are remembered, to recognise repeated deliveries.
const REMEMBERED: usize = 4096;
/// How many deliveries may wait for the runner. Further ones are dropped; the next poll finds their changes.
const WAITING: usize = 256;
/// How many deliveries are accepted at once, and per second. Forged ones have a separate limit of the same size.
const BURST: f64 = 300.0;
const PER_SECOND: f64 = 50.0;

pub fn routes(webhooks: &Webhooks) -> Router<Arc<Site>> {
    let mut routes = Router::new();
    if webhooks.github.is_some() {
        routes = routes.route("/webhooks/github", post(from_github));
    }
    if webhooks.linear.is_some() {
        routes = routes.route("/webhooks/linear", post(from_linear));
    }
    routes
}

/// The secrets of the senders, and the deliveries that have come already.
#[derive(Debug)]
pub struct Webhooks {
    github: Option<hmac::Key>,
    linear: Option<hmac::Key>,
    /// The repositories of the board and of the pull requests on GitHub, as `owner/name`.
    repositories: assembly::GithubRepositories,
    board: TrackerKind,
    seen: Mutex<Seen>,
    hints: mpsc::Sender<(DeliverySource, Vec<Hint>)>,
}

#[derive(Debug, Default)]
struct Seen {
    order: VecDeque<String>,
    ids: BTreeSet<String>,
}

/// What was done with a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryAnswer {
    /// `taken`, `repeated` or `ignored`.
    pub status: &'static str,
}

impl Webhooks {
    /// Starts a task that passes the hints on, so that no sender waits for the runner.
    pub fn new(settings: &Settings, handle: &Handle) -> Self {
        let webhook = settings.polling.webhook.as_ref();
        let key = |secret: Option<&SecretString>| {
            secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes()))
        };
        let (hints, mut waiting) = mpsc::channel::<(DeliverySource, Vec<Hint>)>(WAITING);
        let handle = handle.clone();
        tokio::spawn(async move {
            while let Some((source, hints)) = waiting.recv().await {
                handle.deliveries.arrived(source);
                handle.hint(hints).await;
            }
        });
        Self {
            github: key(webhook.and_then(|webhook| webhook.github.secret.as_ref())),
            linear: key(webhook.and_then(|webhook| webhook.linear.secret.as_ref())),
            repositories: assembly::github_repositories(settings),
            board: settings.tracker.kind,
            seen: Mutex::default(),
            hints,
        }
    }

    /// Whether a delivery is new. One without an id always counts as new.
    fn is_new(&self, id: &str) -> bool {
        let id: String = id.chars().take(128).collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if id.is_empty() {
            return true;
        }
        if !seen.ids.insert(id.clone()) {
            return false;
        }
        seen.order.push_back(id);
        if seen.order.len() > REMEMBERED {
            let oldest = seen.order.pop_front().unwrap_or_default();
            seen.ids.remove(&oldest);
        }
        true
    }

    fn hand_on(&self, source: DeliverySource, hints: Vec<Hint>) -> Result<Response, ApiError> {
        let status = if hints.is_empty() { "ignored" } else { "taken" };
        if !hints.is_empty() && self.hints.try_send((source, hints)).is_err() {
            tracing::warn!("more webhook deliveries than the runner can look into; the next poll finds what they told");
        }
        json(StatusCode::OK, &DeliveryAnswer { status })
    }
}

/// Returns the body if its signature is valid. The comparison takes constant time.
async fn signed(
    site: &Site,
    key: Option<&hmac::Key>,
    headers: &HeaderMap,
    name: &str,
    prefix: &str,
    body: Body,
) -> Result<Bytes, ApiError> {
    let forged = || ApiError::unauthorized("the signature is missing or does not belong to this delivery");
    let key = key.ok_or_else(forged)?;
    let signature =
        headers.get(name).and_then(|signature| signature.to_str().ok()?.strip_prefix(prefix)).and_then(bytes);
    let proved = match signature {
        Some(signature) => {
            let body = body::read(headers, body, LARGEST).await?;
            hmac::verify(key, &body, &signature).is_ok().then_some(body)
        }
        None => None,
    };
    // Forged deliveries have their own limit, so that they do not use up the limit of genuine ones.
    let Some(body) = proved else {
        site.pace.take("forged deliveries", BURST, PER_SECOND)?;
        return Err(forged());
    };
    site.pace.take("deliveries", BURST, PER_SECOND)?;
    Ok(body)
}

/// Decodes hexadecimal digits. `None` if the text is anything else.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_hex = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    if is_hex { digits.chunks(2).map(pair).collect() } else { None }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn understood(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body)
        .map_err(|_| ApiError::bad_request("the delivery is not JSON; choose `application/json` as its content type"))
}

async fn from_github(State(site): State<Arc<Site>>, request: Request) -> Result<Response, ApiError> {
    let webhooks = &site.webhooks;
    let (parts, sent) = request.into_parts();
    let headers = &parts.headers;
    let body = signed(&site, webhooks.github.as_ref(), headers, "x-hub-signature-256", "sha256=", sent).await?;
    let payload = understood(&body)?;
    if !webhooks.is_new(header(headers, "x-github-delivery")) {
        return json(StatusCode::OK, &DeliveryAnswer { status: "repeated" });
    }
    let picture = site.handle.snapshot();
    let event = header(headers, "x-github-event");
    let board = webhooks.repositories.board.as_deref();
    let (source, hints) = github::hints(event, &payload, board, webhooks.repositories.forge.as_deref(), &picture);
    webhooks.hand_on(source, hints)
}

async fn from_linear(State(site): State<Arc<Site>>, request: Request) -> Result<Response, ApiError> {
    let webhooks = &site.webhooks;
    let (parts, sent) = request.into_parts();
    let headers = &parts.headers;
    let body = signed(&site, webhooks.linear.as_ref(), headers, "linear-signature", "", sent).await?;
    let payload = understood(&body)?;
    if !linear::is_fresh(&payload, crate::runtime::now()) {
        let message =
            "the delivery is older than a minute, or says it comes from the future: check this machine's clock";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, "too_old", message));
    }
    if !webhooks.is_new(header(headers, "linear-delivery")) {
        return json(StatusCode::OK, &DeliveryAnswer { status: "repeated" });
    }
    let hints = if webhooks.board == TrackerKind::Linear { linear::hints(&payload) } else { Vec::new() };
    webhooks.hand_on(DeliverySource::Board, hints)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn only_pairs_of_digits_are_bytes() {
        assert_eq!(bytes("00ff"), Some(vec![0, 255]));
        for wrong in ["0", "0g", "+1", "0x", "é0", "ab c"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(bytes(""), Some(Vec::new()));
    }
}
