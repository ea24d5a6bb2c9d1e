//! What comes in: read with a limit and a deadline, and taken for nothing but what it is.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// Of what people send: words to an agent are the longest.
pub const LARGEST: usize = 64 << 10;
/// Whoever needs longer for it is not a person's program.
const TIME: Duration = Duration::from_secs(10);

/// All of it, or why not.
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

/// A JSON object. Nothing at all is an empty one.
pub async fn object<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, ApiError> {
    let bytes = read(headers, body, LARGEST).await?;
    let bytes = if bytes.is_empty() { &b"{}"[..] } else { &bytes };
    let unclear =
        |error: serde_json::Error| ApiError::bad_request(format!("the body could not be understood: {error}"));
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(unclear)?;
    // A list would be taken for the fields in their order.
    if !value.is_object() {
        return Err(ApiError::bad_request("the body has to be a JSON object"));
    }
    serde_json::from_value(value).map_err(unclear)
}
