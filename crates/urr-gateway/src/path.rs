//! Normalises paths, so that every rule and every router sees the same text (D-6).
//!
//! Escapes are decoded once. Whatever could be read in two ways is refused, never repaired: encoded
//! slashes and percent signs, `;` parameters, backslashes, dot segments, empty segments, control
//! characters, broken escapes. The rest is encoded again with the fewest escapes, which is what
//! rules, routes and services see. Case is kept: `/api/Seats` is another path, which does not exist.
//! For trailing slashes see [`crate::Route::matches`].

use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use urr_kernel::percent;
use urr_service::ApiError;

/// No client of ours sends longer URLs.
const CHARS_MAX: usize = 8 * 1024;
/// What a path segment may hold unescaped besides letters and digits (RFC 3986, 3.3), without `;`.
const UNESCAPED: &[u8] = b"-._~!$&'()*+,=:@";

/// Normalises the path of a URL, or refuses it.
pub fn normalise(uri: &mut Uri) -> Result<(), ApiError> {
    if uri.path().len() + uri.query().map_or(0, str::len) > CHARS_MAX {
        return Err(too_long());
    }
    if is_plain(uri.path()) && uri.authority().is_none() {
        return Ok(());
    }
    let path = canonical(uri.path()).ok_or_else(invalid)?;
    *uri = with_path(uri, &path).ok_or_else(invalid)?;
    Ok(())
}

/// `/api/v1/x` is `/api/x`.
pub fn remove_version(uri: &mut Uri) -> Result<(), ApiError> {
    if let Some(rest) = uri.path().strip_prefix("/api/v1/") {
        *uri = with_path(uri, &format!("/api/{rest}")).ok_or_else(invalid)?;
    }
    Ok(())
}

/// Replaces the path and keeps the query. A host in the URL is dropped.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let whole = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    Some(Uri::from(PathAndQuery::try_from(whole).ok()?))
}

/// Whether a path is obviously normal: only unreserved characters, no segment that begins with a dot
/// and no empty segment. Most paths are, which saves the allocation.
fn is_plain(path: &str) -> bool {
    let mut previous = 0;
    let plain = path.bytes().all(|byte| {
        let good = match byte {
            b'/' => previous != b'/',
            b'.' => previous != b'/',
            _ => is_unreserved(byte),
        };
        previous = byte;
        good
    });
    plain && path.starts_with('/')
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The canonical form of a path; `None` if it can be read in two ways.
fn canonical(path: &str) -> Option<String> {
    let segments = path.strip_prefix('/')?;
    if segments.is_empty() {
        return Some("/".to_owned());
    }
    let mut whole = String::with_capacity(path.len());
    let mut rest = segments.split('/').peekable();
    while let Some(segment) = rest.next() {
        whole.push('/');
        let is_last = rest.peek().is_none();
        if segment.is_empty() && is_last {
            break;
        }
        whole.push_str(&percent::encode_except(&decode_segment(segment)?, UNESCAPED));
    }
    Some(whole)
}

/// The text of a segment; `None` if it can be read in two ways.
fn decode_segment(segment: &str) -> Option<String> {
    let text = percent::decode(segment)?;
    let ambiguous = |c: char| matches!(c, '/' | '\\' | ';' | '%') || c.is_control();
    // Some file systems and proxies treat a segment of dots and blanks as a dot segment.
    let is_dots = text.trim_matches(|c: char| c == '.' || c.is_whitespace()).is_empty();
    (!is_dots && !text.contains(ambiguous)).then_some(text)
}

fn invalid() -> ApiError {
    ApiError::bad_request("INVALID_PATH", "The path of this address can be read in two ways.")
}

fn too_long() -> ApiError {
    let status = axum::http::StatusCode::URI_TOO_LONG;
    ApiError::new(status, "ADDRESS_TOO_LONG", "The address is too long.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_6_every_spelling_of_a_path_has_one_canonical_form() {
        for (given, expected) in [
            ("/", "/"),
            ("/api/seats/reserve", "/api/seats/reserve"),
            ("/api/%73eats/reserve", "/api/seats/reserve"),
            ("/api/%73%65%61%74%73/%72eserve", "/api/seats/reserve"),
            ("/api/seats/", "/api/seats/"),
            ("/api/Seats", "/api/Seats"),
            ("/api/a%3Ab", "/api/a:b"),
            ("/api/a:b", "/api/a:b"),
            ("/api/a%3fb", "/api/a%3Fb"),
            ("/api/%EC%98%88", "/api/%EC%98%88"),
            ("/api/%ec%98%88", "/api/%EC%98%88"),
            ("/api/예", "/api/%EC%98%88"),
            ("/api/a%20b", "/api/a%20b"),
            ("/api/..x/x..", "/api/..x/x.."),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(expected), "{given}");
            assert_eq!(canonical(expected).as_deref(), Some(expected), "{expected} is stable");
        }
    }

    #[test]
    fn d_6_paths_that_can_be_read_in_two_ways_are_refused() {
        for bad in [
            "",
            "*",
            "api/seats",
            "//",
            "//api/seats",
            "/api//seats",
            "/api/seats//",
            "/api/seats%2freserve",
            "/api/seats%2Freserve",
            "/api/seats%5creserve",
            "/api/seats\\reserve",
            "/api/seats;x/reserve",
            "/api/seats;/reserve",
            "/api/seats%3bx/reserve",
            "/api/./seats",
            "/api/../internal",
            "/api/..",
            "/api/.",
            "/api/%2e%2e/internal",
            "/api/.%2E/internal",
            "/api/...",
            "/api/..%20/internal",
            "/api/%20",
            "/api/%252e%252e/x",
            "/api/%2573eats",
            "/api/100%25",
            "/api/%",
            "/api/%7",
            "/api/%zz",
            "/api/%+1",
            "/api/seats%00",
            "/api/seats%0a",
            "/api/seats%7f",
            "/api/seats%c2%85",
            "/api/%c0%af",
            "/api/%ff",
        ] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }

    #[test]
    fn plain_paths_are_canonical() {
        for path in
            ["/", "/api/seats", "/api/seats/", "/a.b/c-d_e~f", "//", "/a//b", "/.", "/a/..", "/%41"]
        {
            if is_plain(path) {
                assert_eq!(canonical(path).as_deref(), Some(path));
            }
        }
        assert!(is_plain("/api/seats/0198b2f0-0000-7000-8000-000000000001"));
        assert!(!is_plain("/api/.hidden") && !is_plain("/a//b") && !is_plain("/a;b"));
    }

    #[test]
    fn the_version_is_removed_once_and_the_query_kept() {
        let check = |given: &str, expected: &str| {
            let mut uri = given.parse().unwrap();
            remove_version(&mut uri).unwrap();
            assert_eq!(uri.to_string(), expected);
        };
        check("/api/v1/artists?page=2", "/api/artists?page=2");
        check("/api/artists", "/api/artists");
        check("/api/v10/artists", "/api/v10/artists");
        check("/api/v1/v1/artists", "/api/v1/artists");
    }

    #[test]
    fn replacing_the_path_keeps_the_query_and_drops_the_host() {
        let check = |given: &str, path: &str, expected: &str| {
            assert_eq!(with_path(&given.parse().unwrap(), path).unwrap().to_string(), expected);
        };
        check("/a?page=2", "/b", "/b?page=2");
        check("http://elsewhere/a?x", "/b", "/b?x");
    }
}
