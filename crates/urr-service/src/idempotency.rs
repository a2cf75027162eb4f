//! Where a request says that it may be a repetition.

use axum::http::{HeaderMap, HeaderName};
use urr_kernel::IdempotencyKey;

use crate::ApiError;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// The key of a request: in its body or in the header `Idempotency-Key`.
pub fn idempotency_key(
    headers: &HeaderMap,
    in_body: Option<&str>,
) -> Result<Option<IdempotencyKey>, ApiError> {
    let invalid = |sentence: String| ApiError::bad_request("INVALID_IDEMPOTENCY_KEY", sentence);
    let parse =
        |text: &str| IdempotencyKey::parse(text).map_err(|error| invalid(error.to_string()));
    let in_header = match headers.get(HEADER) {
        None => None,
        Some(value) => Some(parse(value.to_str().unwrap_or_default())?),
    };
    let in_body = in_body.map(parse).transpose()?;
    match (in_header, in_body) {
        (Some(header), Some(body)) if header != body => {
            Err(invalid("The keys in the header and in the body differ.".to_owned()))
        }
        (header, body) => Ok(header.or(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_from_the_header_or_the_body_but_not_two_of_them() {
        let key = |header: Option<&str>, body: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(HEADER, header.parse().unwrap());
            }
            idempotency_key(&headers, body).map(|key| key.map(|key| key.as_str().to_owned())).ok()
        };
        let found = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(key(None, None), Some(None));
        assert_eq!((key(Some("a"), None), key(None, Some("b"))), (found("a"), found("b")));
        assert_eq!((key(Some("a"), Some("a")), key(Some("a"), Some("b"))), (found("a"), None));
        assert_eq!((key(Some(""), None), key(None, Some("a b"))), (None, None));
    }
}
