//! What browsers need: CORS, protection against cross-site requests, security headers.
//!
//! The outermost layer writes the headers, so errors have them too; without them a page could not
//! read why its request was refused (E-1). `tower-http`'s CORS layer does not fit: a preflight from
//! an origin that is not allowed would learn our methods and headers.
//!
//! Browsers send cookies with requests that a foreign page makes (D-14). A change that is authorised
//! by a cookie therefore needs the browser's statement of where it comes from: `Sec-Fetch-Site`, or
//! from older browsers `Origin` or `Referer`. A bearer token needs none of this, because a foreign
//! page cannot make a browser send one.

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use urr_service::ApiError;

use crate::Gateway;
use crate::authenticate::Credential;
use crate::headers::{cookies, single_value};
use crate::pipeline::EarlyResponse;
use crate::routes::Route;

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
pub fn write_cors_headers(origin: Option<HeaderValue>, headers: &mut HeaderMap) {
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

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
pub const REFRESH_COOKIE: &str = "refresh_token";

/// Refuses changes that a foreign page makes.
pub fn check_origin(
    gateway: &Gateway,
    route: &Route,
    credential: &Credential,
    request: &Request,
) -> Result<(), ApiError> {
    let headers = request.headers();
    if request.method().is_safe() || !is_authorised_by_cookie(route, credential, headers) {
        return Ok(());
    }
    if is_same_site(headers, |origin| gateway.allows_origin(origin)) {
        return Ok(());
    }
    let sentence = "This request did not come from a page of ours.";
    Err(ApiError::forbidden("CROSS_SITE_REQUEST", sentence))
}

/// Whether a cookie authorises the request: the access token, or at the auth service the refresh
/// token, which counts beside any other credential.
fn is_authorised_by_cookie(route: &Route, credential: &Credential, headers: &HeaderMap) -> bool {
    let has_refresh_cookie = || cookies(headers).any(|(name, _)| name == REFRESH_COOKIE);
    credential.is_from_cookie() || route.service == "auth" && has_refresh_cookie()
}

fn is_same_site(headers: &HeaderMap, is_allowed: impl Fn(&str) -> bool) -> bool {
    let Ok(site) = single_value(headers, SEC_FETCH_SITE) else { return false };
    if matches!(site, Some("same-origin" | "none")) {
        return true;
    }
    let Ok(origin) = single_value(headers, header::ORIGIN) else { return false };
    let Ok(referer) = single_value(headers, header::REFERER) else { return false };
    let Some(origin) = origin.or_else(|| referer.and_then(origin_of)) else { return false };
    // A browser that calls the request cross-site is right even if the host name is ours: the port
    // or the scheme differs.
    let host = single_value(headers, header::HOST).unwrap_or_default().filter(|_| site.is_none());
    is_allowed(origin) || host.is_some_and(|host| is_origin_of(origin, host))
}

/// Scheme and host of a URL.
fn origin_of(address: &str) -> Option<&str> {
    let host_at = address.find("://")? + 3;
    let end =
        address[host_at..].find(['/', '?', '#', '\\']).map_or(address.len(), |at| at + host_at);
    Some(&address[..end])
}

fn is_origin_of(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

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

/// Adds the security headers of every response. `is_api`: the response is the API's, not a page.
pub fn write_security_headers(is_api: bool, is_loopback: bool, headers: &mut HeaderMap) {
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
    fn only_a_browser_asking_first_is_a_preflight() {
        let origin = (header::ORIGIN, HeaderValue::from_static("https://a"));
        let asks = (header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("PUT"));
        let both: HeaderMap = [origin.clone(), asks].into_iter().collect();
        let one: HeaderMap = [origin].into_iter().collect();
        assert!(is_preflight(&Method::OPTIONS, &both));
        assert!(!is_preflight(&Method::OPTIONS, &one));
        assert!(!is_preflight(&Method::POST, &both));
    }

    fn own(pairs: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("host", "urr.kr".parse().unwrap());
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        is_same_site(&headers, |origin| origin == "https://web.urr.kr")
    }

    #[test]
    fn d_14_sec_fetch_site_decides() {
        assert!(own(&[("sec-fetch-site", "same-origin")]));
        assert!(own(&[("sec-fetch-site", "none")]));
        assert!(own(&[("sec-fetch-site", "same-site"), ("origin", "https://web.urr.kr")]));
        assert!(own(&[("sec-fetch-site", "cross-site"), ("origin", "https://web.urr.kr")]));
        for foreign in ["cross-site", "same-site", "", "Same-Origin", "same-origin, none"] {
            assert!(!own(&[("sec-fetch-site", foreign)]), "{foreign}");
            assert!(!own(&[("sec-fetch-site", foreign), ("origin", "https://evil.kr")]));
            assert!(!own(&[("sec-fetch-site", foreign), ("origin", "http://urr.kr")]));
        }
        assert!(!own(&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn d_14_older_browsers_name_the_origin() {
        assert!(own(&[("origin", "https://urr.kr")]));
        assert!(own(&[("origin", "https://web.urr.kr")]));
        assert!(own(&[("referer", "https://URR.kr/seats?x=1")]));
        assert!(own(&[("referer", "https://web.urr.kr")]));
        for (name, foreign) in [
            ("origin", "https://evil.kr"),
            ("origin", "null"),
            ("origin", "https://urr.kr.evil.kr"),
            ("origin", "https://urr.kr@evil.kr"),
            ("origin", "https://evil.kr/urr.kr"),
            ("origin", "ftp://urr.kr"),
            ("origin", "https://urr.kr:8443"),
            ("referer", "https://evil.kr/https://urr.kr/"),
            ("referer", "https://urr.kr@evil.kr/"),
            ("referer", "urr.kr"),
        ] {
            assert!(!own(&[(name, foreign)]), "{name}: {foreign}");
        }
        assert!(!own(&[]), "a request without these headers is refused");
        let both = [("origin", "https://evil.kr"), ("referer", "https://urr.kr/")];
        assert!(!own(&both), "the origin is preferred to the referer");
    }

    #[test]
    fn api_responses_may_do_nothing_and_pages_keep_their_own_policy() {
        let mut data = HeaderMap::new();
        write_security_headers(true, true, &mut data);
        assert_eq!(data[header::CONTENT_SECURITY_POLICY], API_POLICY);
        assert_eq!(data[header::CACHE_CONTROL], NO_STORE);
        assert_eq!(data[header::X_CONTENT_TYPE_OPTIONS], NOSNIFF);
        assert!(!data.contains_key(header::STRICT_TRANSPORT_SECURITY), "loopback has no TLS");
        let mut page = HeaderMap::new();
        page.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("own"));
        write_security_headers(false, false, &mut page);
        assert_eq!(page[header::CONTENT_SECURITY_POLICY], "own");
        assert_eq!(page[header::STRICT_TRANSPORT_SECURITY], HSTS);
        assert!(!page.contains_key(header::CACHE_CONTROL));
        let mut bare = HeaderMap::new();
        write_security_headers(false, false, &mut bare);
        assert_eq!(bare[header::CONTENT_SECURITY_POLICY], PAGE_POLICY);
    }
}
