//! Cached responses over HTTP, with the headers for caches of clients and proxies.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_service::ApiError;

use super::CachedResponse;

/// For lists: five seconds of age hurt no reader, and spare us most requests of a crowd.
pub const CACHED_BRIEFLY: HeaderValue = HeaderValue::from_static("public, max-age=5");
/// For one event: clients ask every time, and usually get "not modified".
pub const REVALIDATED: HeaderValue = HeaderValue::from_static("public, no-cache");

/// A view as the bytes to cache.
pub fn render(view: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(view).map_err(ApiError::internal)
}

/// The response, or 304 if the client has it already.
pub fn respond(
    headers: &HeaderMap,
    cached: &CachedResponse,
    cache_control: HeaderValue,
) -> Response {
    let etag = cached.etag.header();
    if cached.etag.matches(headers) {
        let headers = [(ETAG, etag), (CACHE_CONTROL, cache_control)];
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let content_type = HeaderValue::from_static(cached.content_type);
    let headers = [(CONTENT_TYPE, content_type), (ETAG, etag), (CACHE_CONTROL, cache_control)];
    (headers, cached.body.clone()).into_response()
}
