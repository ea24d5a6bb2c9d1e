//! Reads request bodies, with limits for size and time.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// Limit of a body in bytes. The longest ones are messages to an agent.
pub const LARGEST: usize = 64 << 10;
/// Time limit for a body to arrive.
const TIME: Duration = Duration::from_secs(10);

/// Reads the whole body. Fails if it is too large, too slow or incomplete.
pub async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if said.is_some_and(|length| length > limit) {
        return Err(ApiError::too_large(limit));
    }
    match tokio::time::timeout(TIME, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(ApiError::too_large(limit)),
        Ok(Err(_)) => Err(ApiError::bad_request("the body did not arrive whole")),
        Err(_) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive in time")),
    }
}

/// Reads the body as a JSON object. An empty body counts as an empty object.
pub async fn object<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, ApiError> {
    let bytes = read(headers, body, LARGEST).await?;
    let bytes = if bytes.is_empty() { &b"{}"[..] } else { &bytes };
    let unclear =
        |error: serde_json::Error| ApiError::bad_request(format!("the body could not be understood: {error}"));
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(unclear)?;
    // serde would accept an array as the fields in their order.
    if !value.is_object() {
        return Err(ApiError::bad_request("the body has to be a JSON object"));
    }
    serde_json::from_value(value).map_err(unclear)
}
