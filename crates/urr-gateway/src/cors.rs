//! CORS: which pages of other origins may call the API.
//!
//! The outermost layer writes the headers, so errors have them too; without them a page could not
//! read why its request was refused (E-1). `tower-http`'s layer does not fit: a preflight from an
//! origin that is not allowed would learn our methods and headers.

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;

use crate::Gateway;
use crate::pipeline::EarlyResponse;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, traceparent, x-bot-check-token, x-proof-of-work, \
     x-queue-entry-token, x-request-id",
);
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, x-request-id",
);
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("3600");
const TRUE: HeaderValue = HeaderValue::from_static("true");
const ORIGIN: HeaderValue = HeaderValue::from_static("origin");

/// The origin of the calling page, if it is allowed.
pub fn allowed_origin(gateway: &Gateway, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    gateway.allows_origin(text).then(|| origin.clone())
}

/// Allows the page to read the response.
pub fn write_headers(origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    headers.append(header::VARY, ORIGIN);
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

/// Answers a preflight request before any rate limit. An origin that is not allowed learns neither
/// methods nor headers.
pub fn answer_preflight(gateway: &Gateway, request: &Request) -> Result<(), EarlyResponse> {
    if !is_preflight(request.method(), request.headers()) {
        return Ok(());
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    if allowed_origin(gateway, request.headers()).is_some() {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS);
    }
    Err(response.into())
}

fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    let has = |name: HeaderName| headers.contains_key(name);
    *method == Method::OPTIONS && has(header::ORIGIN) && has(header::ACCESS_CONTROL_REQUEST_METHOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_browser_asking_first_is_a_preflight() {
        let origin = (header::ORIGIN, HeaderValue::from_static("https://a"));
        let asks = (header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("PUT"));
        let both: HeaderMap = [origin.clone(), asks].into_iter().collect();
        let one: HeaderMap = [origin].into_iter().collect();
        assert!(is_preflight(&Method::OPTIONS, &both));
        assert!(!is_preflight(&Method::OPTIONS, &one));
        assert!(!is_preflight(&Method::POST, &both));
    }
}
