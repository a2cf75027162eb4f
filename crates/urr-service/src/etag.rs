//! Whether a client has an answer already.

use axum::http::HeaderMap;
use axum::http::header::IF_NONE_MATCH;

/// Whether the client says that it has the answer with this tag, which is given with its quotes and
/// without `W/`: for reading, weak tags are as good as strong ones.
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
        let asks = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, value.parse().unwrap());
            has_etag(&headers, "\"ab\"")
        };
        assert!(asks("\"ab\"") && asks("W/\"ab\"") && asks("\"x\", W/\"ab\"") && asks("*"));
        assert!(!asks("\"abc\"") && !asks("ab") && !asks(""));
        assert!(!has_etag(&HeaderMap::new(), "\"ab\""));
    }

    #[test]
    fn tags_may_be_in_several_headers() {
        let mut headers = HeaderMap::new();
        headers.append(IF_NONE_MATCH, "\"x\"".parse().unwrap());
        headers.append(IF_NONE_MATCH, "\"ab\"".parse().unwrap());
        assert!(has_etag(&headers, "\"ab\""));
    }
}
