//! Entity tags: whether a client has an answer already.

use std::fmt::Display;

use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use urr_kernel::hex;

/// As many bytes of a hash make two answers differ.
const HASH_BYTES: usize = 12;

/// The tag of an answer. It is sent as a weak one: whoever stands between may compress the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ETag(String);

impl ETag {
    /// The tag of these bytes.
    pub fn of_bytes(body: &[u8]) -> ETag {
        ETag::of_version(hex::encode(&Sha256::digest(body)[..HASH_BYTES]))
    }

    /// The tag of an answer that changes with a version, for example a number or a hash. The text
    /// has visible ASCII characters and no quotes.
    pub fn of_version(version: impl Display) -> ETag {
        ETag(format!("\"{version}\""))
    }

    /// Whether the client says that it has the answer. For reading, weak tags are as good as
    /// strong ones.
    pub fn matches(&self, headers: &HeaderMap) -> bool {
        has_etag(headers, &self.0)
    }

    pub fn header(&self) -> HeaderValue {
        let text = format!("W/{}", self.0);
        HeaderValue::from_str(&text).expect("a version has visible ASCII characters")
    }

    /// 304: the client has it.
    pub fn not_modified(&self) -> Response {
        (StatusCode::NOT_MODIFIED, [(ETAG, self.header())]).into_response()
    }
}

/// Whether the client says that it has the answer with this tag, which is given with its quotes and
/// without `W/`.
pub fn has_etag(headers: &HeaderMap, etag: &str) -> bool {
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
        let etag = ETag::of_version("ab");
        let asks = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, value.parse().unwrap());
            etag.matches(&headers)
        };
        assert!(asks("\"ab\"") && asks("W/\"ab\"") && asks("\"x\", W/\"ab\"") && asks("*"));
        assert!(!asks("\"abc\"") && !asks("ab") && !asks(""));
        assert!(!etag.matches(&HeaderMap::new()));
        assert_eq!(etag.not_modified().headers()[ETAG], "W/\"ab\"");
    }

    #[test]
    fn tags_may_be_in_several_headers() {
        let mut headers = HeaderMap::new();
        headers.append(IF_NONE_MATCH, "\"x\"".parse().unwrap());
        headers.append(IF_NONE_MATCH, "\"ab\"".parse().unwrap());
        assert!(ETag::of_version("ab").matches(&headers));
    }

    #[test]
    fn other_bytes_have_another_tag() {
        assert_eq!(ETag::of_bytes(b"a"), ETag::of_bytes(b"a"));
        assert_ne!(ETag::of_bytes(b"a"), ETag::of_bytes(b"b"));
    }
}
