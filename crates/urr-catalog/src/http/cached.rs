//! Answers from the cache, with what a client needs to keep them too.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_service::{ApiError, has_etag};

use crate::cache::Entry;

/// Lists: a page that is a few seconds old hurts nobody, and spares us most of a crowd.
pub const BRIEFLY: HeaderValue = HeaderValue::from_static("public, max-age=5");
/// One event: asked for again every time, usually answered by "not modified".
pub const REVALIDATED: HeaderValue = HeaderValue::from_static("public, no-cache");

/// The bytes of a view.
pub fn render(view: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(view).map_err(ApiError::internal)
}

/// The answer, or that the client has it already.
pub fn answer(headers: &HeaderMap, entry: &Entry, cache_control: HeaderValue) -> Response {
    // Weak: whoever stands between may compress it.
    let etag = HeaderValue::from_str(&format!("W/{}", entry.etag)).expect("it is hexadecimal");
    if has_etag(headers, &entry.etag) {
        let headers = [(ETAG, etag), (CACHE_CONTROL, cache_control)];
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let content_type = HeaderValue::from_static(entry.content_type);
    let headers = [(CONTENT_TYPE, content_type), (ETAG, etag), (CACHE_CONTROL, cache_control)];
    (headers, entry.body.clone()).into_response()
}
