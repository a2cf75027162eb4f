//! The address, user agent and language of a client.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use urr_kernel::{Language, fits_in_line};

/// Set by the gateway, which removes it from what clients send.
const CLIENT_ADDRESS: &str = "x-urr-client-address";
const ADDRESS_CHARS_MAX: usize = 64;
const USER_AGENT_CHARS_MAX: usize = 256;
const LANGUAGES_CHARS_MAX: usize = 256;

/// The client of a request, as far as it is known. Unknown texts are empty. As an extractor it never
/// rejects a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientInfo {
    pub address: String,
    pub user_agent: String,
    /// By `Accept-Language`.
    pub language: Option<Language>,
}

impl<S: Sync> FromRequestParts<S> for ClientInfo {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(ClientInfo::read(&parts.headers))
    }
}

impl ClientInfo {
    pub fn read(headers: &HeaderMap) -> ClientInfo {
        let languages = text(headers, "accept-language", LANGUAGES_CHARS_MAX);
        ClientInfo {
            address: text(headers, CLIENT_ADDRESS, ADDRESS_CHARS_MAX),
            user_agent: text(headers, "user-agent", USER_AGENT_CHARS_MAX),
            language: Language::preferred([languages.as_str()]),
        }
    }
}

fn text(headers: &HeaderMap, name: &str, chars_max: usize) -> String {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let value = value.unwrap_or_default();
    value.chars().filter(|c| fits_in_line(*c)).take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_and_cleaned() {
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", "a\tb\u{c7}".repeat(200).parse().unwrap());
        let agent = text(&headers, "user-agent", 5);
        assert_eq!(agent, "ab\u{c7}ab");
        assert_eq!(text(&headers, CLIENT_ADDRESS, 5), "");
    }
}
