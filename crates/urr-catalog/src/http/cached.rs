//! Answers from the cache, with what a client needs to keep them too.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_service::ApiError;

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
    if knows(headers, &entry.etag) {
        let headers = [(ETAG, etag), (CACHE_CONTROL, cache_control)];
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let content_type = HeaderValue::from_static(entry.content_type);
    let headers = [(CONTENT_TYPE, content_type), (ETAG, etag), (CACHE_CONTROL, cache_control)];
    (headers, entry.body.clone()).into_response()
}

/// Whether the client says that it has this one.
pub fn knows(headers: &HeaderMap, etag: &str) -> bool {
    let mut tags = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_knows_an_answer_by_any_of_its_tags() {
        let asks = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, value.parse().unwrap());
            knows(&headers, "\"ab\"")
        };
        assert!(asks("\"ab\"") && asks("W/\"ab\"") && asks("\"x\", W/\"ab\"") && asks("*"));
        assert!(!asks("\"abc\"") && !asks("ab") && !asks(""));
        assert!(!knows(&HeaderMap::new(), "\"ab\""));
    }
}
