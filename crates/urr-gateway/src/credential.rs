//! The credential of a request: a bearer token, or the cookie `access_token` in its place.
//!
//! The `Authorization` header wins. Two headers, two cookies of the name, or another scheme are
//! not chosen from: they are a malformed credential.

use axum::http::{HeaderMap, header};

const COOKIE_NAME: &str = "access_token";

/// What a request brings to show who it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    None,
    /// From the header, which no page of a stranger can make a browser send.
    Header(String),
    /// From the cookie, which browsers send by themselves.
    Cookie(String),
    /// More than one, or none that can be read.
    Malformed {
        from_cookie: bool,
    },
}

impl Credential {
    /// Whether a browser may have sent it without its page wanting to.
    pub fn is_from_cookie(&self) -> bool {
        matches!(self, Credential::Cookie(_) | Credential::Malformed { from_cookie: true })
    }

    pub fn read(headers: &HeaderMap) -> Credential {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        match (values.next(), values.next()) {
            (None, _) => from_cookies(headers),
            (Some(value), None) => {
                let token = value.to_str().ok().and_then(bearer);
                let malformed = Credential::Malformed { from_cookie: false };
                token.map_or(malformed, |token| Credential::Header(token.to_owned()))
            }
            (Some(_), Some(_)) => Credential::Malformed { from_cookie: false },
        }
    }
}

/// The token of `Bearer <token>`. The name of the scheme has no case (RFC 9110, 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let is_one_word = !token.contains(|c: char| c.is_whitespace() || c == ',');
    (scheme.eq_ignore_ascii_case("bearer") && is_one_word).then_some(token)
}

fn from_cookies(headers: &HeaderMap) -> Credential {
    let malformed = Credential::Malformed { from_cookie: true };
    let mut found = Credential::None;
    for (name, value) in cookies(headers) {
        if name != COOKIE_NAME {
            continue;
        }
        found = match (found, value) {
            (Credential::None, Some(token)) => Credential::Cookie(token.to_owned()),
            (_, _) => return malformed,
        };
    }
    match found {
        // A log-out leaves an empty cookie for a moment.
        Credential::Cookie(token) if token.is_empty() => Credential::None,
        found => found,
    }
}

/// All cookies in order; a value that is not text is none.
pub fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, Option<&str>)> {
    let lines = headers.get_all(header::COOKIE).iter().map(|line| line.as_bytes());
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.filter_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let name = std::str::from_utf8(pair[..equals].trim_ascii()).ok()?;
        Some((name, std::str::from_utf8(pair[equals + 1..].trim_ascii()).ok()))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, axum::http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn the_header_wins_over_the_cookie() {
        let cookie = (header::COOKIE, "theme=dark; access_token=c; refresh_token=r");
        let bearer = |value| (header::AUTHORIZATION, value);
        let check = |pairs: &[(HeaderName, &str)], expected: Credential| {
            assert_eq!(Credential::read(&headers(pairs)), expected, "{pairs:?}");
        };
        let from_header = Credential::Malformed { from_cookie: false };
        check(&[], Credential::None);
        check(std::slice::from_ref(&cookie), Credential::Cookie("c".to_owned()));
        check(&[cookie.clone(), bearer("Bearer h")], Credential::Header("h".to_owned()));
        check(&[bearer("bearer h")], Credential::Header("h".to_owned()));
        check(&[cookie.clone(), bearer("Basic h")], from_header.clone());
        check(&[cookie, bearer("h")], from_header.clone());
        check(&[bearer("Bearer a"), bearer("Bearer a")], from_header);
    }

    #[test]
    fn two_cookies_of_the_name_are_none_of_them() {
        let cookie = |value| (header::COOKIE, value);
        for two in [
            vec![cookie("access_token=a; access_token=b")],
            vec![cookie("access_token=a"), cookie("access_token=a")],
            vec![cookie("access_token=; access_token=b")],
        ] {
            assert_eq!(
                Credential::read(&headers(&two)),
                Credential::Malformed { from_cookie: true }
            );
        }
        let similar = [cookie("xaccess_token=a; access_token2=b; Access_Token=c; access_token")];
        assert_eq!(Credential::read(&headers(&similar)), Credential::None);
        assert_eq!(Credential::read(&headers(&[cookie("access_token=")])), Credential::None);
    }
}
