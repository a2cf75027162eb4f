//! The cookies of sessions and social logins, which scripts cannot read and other sites cannot send.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, COOKIE, HOST, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use urr_kernel::Secret;

use crate::{AuthSettings, CookieSecurity, Session};

const CLIENT_HOST: HeaderName = HeaderName::from_static("x-urr-client-host");
const ACCESS: &str = "access_token";
const REFRESH: &str = "refresh_token";
/// Set while the user logs in at a social provider.
const SOCIAL_REDIRECT: &str = "urr_social";
/// Set while a page shows a provider's button.
const BUTTON: &str = "urr_button";
const ACCESS_PATH: &str = "/";
/// The common prefix of `/api/auth` and `/api/v1/auth`.
const REFRESH_PATH: &str = "/api";

/// The headers that set the cookies of a session.
pub fn session_cookies(
    settings: &AuthSettings,
    request: &HeaderMap,
    session: &Session,
) -> HeaderMap {
    let secure = is_secure(settings.cookie_security, request);
    let access = (session.access_token.as_str(), settings.access_lifetime);
    let refresh = (session.refresh_token.as_str(), settings.refresh_lifetime);
    set(secure, access, refresh)
}

/// The headers that delete the cookies of a session.
pub fn clear_session_cookies(settings: &AuthSettings, request: &HeaderMap) -> HeaderMap {
    let nothing = ("", Duration::ZERO);
    set(is_secure(settings.cookie_security, request), nothing, nothing)
}

/// The cookie of a social login that is under way.
#[derive(Clone, Copy, Debug)]
pub enum FlowCookie {
    /// The browser is redirected to the provider.
    Redirect,
    /// The page shows the provider's button.
    Button,
}

impl FlowCookie {
    const fn cookie(self) -> &'static str {
        match self {
            FlowCookie::Redirect => SOCIAL_REDIRECT,
            FlowCookie::Button => BUTTON,
        }
    }

    /// The headers that bind the login to this browser.
    pub fn give(self, settings: &AuthSettings, request: &HeaderMap, secret: &Secret) -> HeaderMap {
        self.set(settings, request, (secret.expose(), settings.social.attempt_lifetime))
    }

    /// The headers that delete the cookie.
    pub fn clear(self, settings: &AuthSettings, request: &HeaderMap) -> HeaderMap {
        self.set(settings, request, ("", Duration::ZERO))
    }

    /// `Lax` lets the browser send it when the provider redirects back.
    fn set(
        self,
        settings: &AuthSettings,
        request: &HeaderMap,
        value: (&str, Duration),
    ) -> HeaderMap {
        let secure = is_secure(settings.cookie_security, request);
        HeaderMap::from_iter([(SET_COOKIE, cookie(self.cookie(), REFRESH_PATH, value, secure))])
    }

    pub fn secret(self, headers: &HeaderMap) -> Option<Secret> {
        read(headers, self.cookie()).map(Secret::new)
    }
}

fn set(secure: bool, access: (&str, Duration), refresh: (&str, Duration)) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.append(SET_COOKIE, cookie(ACCESS, ACCESS_PATH, access, secure));
    headers.append(SET_COOKIE, cookie(REFRESH, REFRESH_PATH, refresh, secure));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
}

fn cookie(name: &str, path: &str, (value, age): (&str, Duration), secure: bool) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let age = age.as_secs();
    let text =
        format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&text).expect("tokens are ASCII")
}

pub fn access_token(headers: &HeaderMap) -> Option<&str> {
    read(headers, ACCESS)
}

pub fn refresh_token(headers: &HeaderMap) -> Option<&str> {
    read(headers, REFRESH)
}

/// The first cookie of this name that is not empty.
fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(found, value)| found.trim() == name && !value.trim().is_empty());
    found.map(|(_, value)| value.trim())
}

fn is_secure(security: CookieSecurity, request: &HeaderMap) -> bool {
    match security {
        CookieSecurity::Always => true,
        CookieSecurity::Never => false,
        CookieSecurity::Auto => {
            // The gateway passes on the host that the client called.
            let host = request.get(CLIENT_HOST).or_else(|| request.get(HOST));
            let host = host.and_then(|host| host.to_str().ok());
            !host.is_some_and(is_loopback)
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn cookies_travel_in_clear_only_to_this_machine() {
        for (host, secure) in [
            ("localhost", false),
            ("LocalHost:3001", false),
            ("shop.localhost:3001", false),
            ("127.0.0.1:3001", false),
            ("127.9.9.9", false),
            ("[::1]:3001", false),
            ("urr.example", true),
            ("localhost.evil.example", true),
            ("notlocalhost", true),
            ("127.0.0.1.evil.example", true),
            ("192.168.0.10:3001", true),
            ("[2001:db8::1]:443", true),
            ("", true),
        ] {
            let request = headers(&[("host", host)]);
            assert_eq!(is_secure(CookieSecurity::Auto, &request), secure, "{host}");
        }
        assert!(is_secure(CookieSecurity::Auto, &HeaderMap::new()));
        let local = headers(&[("host", "localhost")]);
        assert!(is_secure(CookieSecurity::Always, &local));
        assert!(!is_secure(CookieSecurity::Never, &headers(&[("host", "urr.example")])));
    }

    #[test]
    fn a_cookie_is_found_among_others_and_by_its_whole_name() {
        let sent = headers(&[("cookie", "a=1; xrefresh_token=no; refresh_token=; theme=dark")]);
        assert_eq!(refresh_token(&sent), None);
        let sent = headers(&[("cookie", "theme=dark"), ("cookie", "b=2;refresh_token=x.y.z")]);
        assert_eq!(refresh_token(&sent), Some("x.y.z"));
        assert_eq!(access_token(&sent), None);
    }

    #[test]
    fn d_1_the_refresh_cookie_is_sent_to_both_forms_of_the_address() {
        for path in ["/api/auth/refresh", "/api/v1/auth/refresh"] {
            let rest = path.strip_prefix(REFRESH_PATH).unwrap();
            assert!(rest.starts_with('/'), "cookie paths match whole segments");
        }
    }
}
