//! What browsers are told to be careful with, on every answer.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// For pages that do not bring a policy of their own: only what is ours.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);
/// An answer of the interface is data. Opened as a page it may do nothing.
const DATA_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");
const COOP: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const REFERRER: HeaderValue = HeaderValue::from_static("strict-origin-when-cross-origin");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Adds the headers. `is_data`: it is an answer of the interface, not a page.
pub fn protect(is_data: bool, is_loopback: bool, headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    if !is_loopback {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    let policy = if is_data { DATA_POLICY } else { PAGE_POLICY };
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    if is_data {
        // What is somebody's must not be kept by a cache in between. A service that knows better
        // says so.
        headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    } else {
        // Data has no links to follow and opens no windows.
        headers.insert(header::REFERRER_POLICY, REFERRER);
        headers.insert(COOP, SAME_ORIGIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_may_do_nothing_and_pages_keep_their_own_policy() {
        let mut data = HeaderMap::new();
        protect(true, true, &mut data);
        assert_eq!(data[header::CONTENT_SECURITY_POLICY], DATA_POLICY);
        assert_eq!(data[header::CACHE_CONTROL], NO_STORE);
        assert_eq!(data[header::X_CONTENT_TYPE_OPTIONS], NOSNIFF);
        assert!(!data.contains_key(header::STRICT_TRANSPORT_SECURITY), "loopback has no TLS");
        let mut page = HeaderMap::new();
        page.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("own"));
        protect(false, false, &mut page);
        assert_eq!(page[header::CONTENT_SECURITY_POLICY], "own");
        assert_eq!(page[header::STRICT_TRANSPORT_SECURITY], HSTS);
        assert!(!page.contains_key(header::CACHE_CONTROL));
        let mut bare = HeaderMap::new();
        protect(false, false, &mut bare);
        assert_eq!(bare[header::CONTENT_SECURITY_POLICY], PAGE_POLICY);
    }
}
