//! Security headers for browsers, on every response.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// For pages without a policy of their own.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);
/// For API responses: opened as a page, they may load and run nothing.
const API_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");
const COOP: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const REFERRER: HeaderValue = HeaderValue::from_static("strict-origin-when-cross-origin");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Adds the headers. `is_api`: the response is the API's, not a page.
pub fn write_headers(is_api: bool, is_loopback: bool, headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    if !is_loopback {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    let policy = if is_api { API_POLICY } else { PAGE_POLICY };
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    if is_api {
        // A shared cache must not keep a user's data. A service whose data is public sets its own.
        headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    } else {
        // API responses have no links to follow and open no windows.
        headers.insert(header::REFERRER_POLICY, REFERRER);
        headers.insert(COOP, SAME_ORIGIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_responses_may_do_nothing_and_pages_keep_their_own_policy() {
        let mut data = HeaderMap::new();
        write_headers(true, true, &mut data);
        assert_eq!(data[header::CONTENT_SECURITY_POLICY], API_POLICY);
        assert_eq!(data[header::CACHE_CONTROL], NO_STORE);
        assert_eq!(data[header::X_CONTENT_TYPE_OPTIONS], NOSNIFF);
        assert!(!data.contains_key(header::STRICT_TRANSPORT_SECURITY), "loopback has no TLS");
        let mut page = HeaderMap::new();
        page.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("own"));
        write_headers(false, false, &mut page);
        assert_eq!(page[header::CONTENT_SECURITY_POLICY], "own");
        assert_eq!(page[header::STRICT_TRANSPORT_SECURITY], HSTS);
        assert!(!page.contains_key(header::CACHE_CONTROL));
        let mut bare = HeaderMap::new();
        write_headers(false, false, &mut bare);
        assert_eq!(bare[header::CONTENT_SECURITY_POLICY], PAGE_POLICY);
    }
}
