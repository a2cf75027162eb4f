//! Reading and removing request headers.

use std::io::BufRead;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers that only the gateway may set: the user's identity, and what it tells services.
const RESERVED_PREFIXES: [&str; 2] = ["x-user-", "x-urr-"];

/// Removes the reserved headers that a client sent, before anything reads them.
pub fn remove_reserved(headers: &mut HeaderMap) {
    remove_matching(headers, is_reserved);
}

/// Treats `x_user_id` as `x-user-id`, because some servers do.
fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    let matches =
        |(expected, found): (u8, &u8)| expected == *found || expected == b'-' && *found == b'_';
    RESERVED_PREFIXES
        .iter()
        .any(|prefix| name.len() >= prefix.len() && prefix.bytes().zip(name).all(matches))
}

/// Removes every header whose name matches. Most requests have none, which costs no allocation.
pub fn remove_matching(headers: &mut HeaderMap, matches: impl Fn(&HeaderName) -> bool) {
    if headers.keys().any(&matches) {
        let names: Vec<HeaderName> = headers.keys().filter(|name| matches(name)).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
}

/// A header that must not occur twice, or that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmbiguousHeader;

/// The value of a header that may occur once. Two values could be read in two ways.
pub fn single_value(
    headers: &HeaderMap,
    name: HeaderName,
) -> Result<Option<&str>, AmbiguousHeader> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| AmbiguousHeader),
        (Some(_), Some(_)) => Err(AmbiguousHeader),
    }
}

/// All cookies in order. A value that is not UTF-8 is `None`.
pub fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, Option<&str>)> {
    let lines = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes);
    lines.flat_map(split_at_semicolons).filter_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let name = std::str::from_utf8(pair[..equals].trim_ascii()).ok()?;
        Some((name, std::str::from_utf8(pair[equals + 1..].trim_ascii()).ok()))
    })
}

/// Tokens are long: `skip_until` searches them many bytes at a time, a loop over bytes does not.
fn split_at_semicolons(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let line = rest;
        let length = rest.skip_until(b';').expect("bytes in memory can be read");
        let part = &line[..length];
        (length > 0).then(|| part.strip_suffix(b";").unwrap_or(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_say_who_it_is() {
        let mut headers = HeaderMap::new();
        for name in [
            "x-user-id",
            "X-User-Role",
            "x_user_role",
            "X_USER-ID",
            "x-urr-caller",
            "x-urr-credential",
            "x_urr_entry_event",
            "accept",
            "x-username",
            "x-users",
        ] {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), "x".parse().unwrap());
        }
        headers.append("x-user-id", "twice".parse().unwrap());
        remove_reserved(&mut headers);
        let mut kept: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["accept", "x-username", "x-users"]);
    }

    #[test]
    fn cookies_come_in_order_from_all_lines() {
        let mut headers = HeaderMap::new();
        for line in [&b"a=1; b = 2 ;;c;=d; e="[..], b"", b";a=\xff;f=g=h;"] {
            headers.append(header::COOKIE, HeaderValue::from_bytes(line).unwrap());
        }
        let expected = [
            ("a", Some("1")),
            ("b", Some("2")),
            ("", Some("d")),
            ("e", Some("")),
            ("a", None),
            ("f", Some("g=h")),
        ];
        assert_eq!(cookies(&headers).collect::<Vec<_>>(), expected);
    }
}
