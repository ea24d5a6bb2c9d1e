//! `GET /api/v1/events`: changes of the state as server-sent events. Each client reads at its own pace from a buffer that all share. A
//! client that is too far behind gets the whole state again; one that reads nothing is disconnected (see `patient_stream`).

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use http_body_util::channel::{Channel, Sender};
use tokio::sync::OwnedSemaphorePermit;

use super::Site;
use super::error::ApiError;
use super::listen::until_true;
use super::pictures::{Missed, Pictures, Rendered};

/// Limit of clients that follow events or logs at the same time. It is lower than the limit of connections.
pub const FOLLOWERS: usize = 1100;
/// Interval of keep-alive comments: proxies close connections that are silent for long.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub async fn events(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, ApiError> {
    let place = site.followers.clone().try_acquire_owned();
    let place = place.map_err(|_| ApiError::unavailable("too many follow the events already"))?;
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let seen = seen.and_then(|id| site.pictures.event_number(id));
    let (sender, body) = Channel::<Bytes>::new(1);
    tokio::spawn(tell(site.pictures.clone(), seen, sender, place));
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that buffer responses would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Sends events to one client until the client or the runner is gone.
async fn tell(pictures: Arc<Pictures>, mut seen: Option<u64>, mut client: Sender<Bytes>, place: OwnedSemaphorePermit) {
    let (mut changes, mut ended) = (pictures.changes(), pictures.ended());
    loop {
        let newest = changes.borrow_and_update().clone();
        let pieces = match seen.map_or(Missed::TooMuch, |seen| pictures.since(seen)) {
            Missed::Nothing => Vec::new(),
            Missed::Events(events, last) => {
                seen = Some(last);
                events
            }
            Missed::TooMuch => {
                seen = Some(newest.event);
                whole(&pictures.event_id(newest.event), &newest)
            }
        };
        for piece in pieces {
            if client.send_data(piece).await.is_err() {
                return;
            }
        }
        let next = tokio::select! {
            next = tokio::time::timeout(KEEP_ALIVE, changes.changed()) => next,
            () = until_true(&mut ended) => break,
        };
        if next.is_err() && client.send_data(Bytes::from_static(b":\n\n")).await.is_err() {
            break;
        }
    }
    drop(place);
}

/// Returns the event with the whole state. Its data is shared with all other clients.
fn whole(id: &str, newest: &Rendered) -> Vec<Bytes> {
    let head = format!("retry: 2000\nid: {id}\nevent: state\ndata: ");
    vec![Bytes::from(head), newest.state.clone(), Bytes::from_static(b"\n\n")]
}
