//! Protection against cross-site request forgery (D-14).
//!
//! Browsers send cookies with requests that a foreign page makes. A change that is authorised by a
//! cookie therefore needs the browser's statement of where it comes from: `Sec-Fetch-Site`, or from
//! older browsers `Origin` or `Referer`. A bearer token needs none of this, because a foreign page
//! cannot make a browser send one.

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName};
use urr_service::ApiError;

use crate::Gateway;
use crate::authenticate::Credential;
use crate::headers::{cookies, single_value};
use crate::routes::Route;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
