//! The HTTP client of a provider: one credential, one time limit and one breaker for all calls.
//!
//! A call is repeated only if nothing was sent, and then once, with the same headers. In any other
//! case the provider may have acted, and has to be queried.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde::Serialize;
use tokio::time::Instant;
use urr_kernel::{Clock, Timestamp, percent, truncate_to_micros};
use urr_outbound::{Outbound, OutboundError, OutboundRequest, OutboundResponse};
use urr_service::{Breaker, CallOutcome};
use urr_storage::storable_time;

use super::{CIRCUIT_OPEN, INTERRUPTED, ProviderOutcome, TIMEOUT, UNREACHABLE, UNREADABLE};

/// A provider's code is cut to this length.
const CODE_CHARS_MAX: usize = 64;
const LINK_BYTES_MAX: usize = 2_000;
/// The name of a payment method is cut to this length.
pub(super) const METHOD_CHARS_MAX: usize = 40;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A credential that cannot be sent: empty, or with characters that no credential has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credential of the payment provider is empty or has characters that cannot be sent")]
pub struct InvalidProviderCredential;

pub(super) struct ProviderHttp {
    outbound: Outbound,
    breaker: Breaker,
    endpoint: String,
    authorization: HeaderValue,
    timeout: Duration,
    /// Whether an answer shows that the provider itself is failing.
    is_failure: fn(&OutboundResponse) -> bool,
}

#[derive(Clone)]
pub(super) struct ProviderHttpOptions {
    pub outbound: Outbound,
    pub clock: Clock,
    pub endpoint: String,
    pub authorization: HeaderValue,
    pub timeout: Duration,
    pub is_failure: fn(&OutboundResponse) -> bool,
}

/// Why there is no answer, as a code.
pub(super) struct NoAnswer(pub &'static str);

impl NoAnswer {
    /// What it means for a call that moves money.
    pub fn outcome<T>(self) -> ProviderOutcome<T> {
        let code = self.0.to_owned();
        match self.0 {
            UNREACHABLE | CIRCUIT_OPEN => ProviderOutcome::Unsent { code },
            _ => ProviderOutcome::Unknown { code },
        }
    }
}

impl ProviderHttp {
    pub fn new(options: ProviderHttpOptions) -> ProviderHttp {
        let ProviderHttpOptions { outbound, clock, endpoint, authorization, timeout, is_failure } =
            options;
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let breaker = Breaker::new(clock);
        ProviderHttp { outbound, breaker, endpoint, authorization, timeout, is_failure }
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub async fn get(&self, path: &str) -> Result<OutboundResponse, NoAnswer> {
        self.call(Method::GET, path, HeaderMap::new(), Bytes::new()).await
    }

    /// `key` is the idempotency header in the provider's format.
    pub async fn post(
        &self,
        path: &str,
        key: HeaderValue,
        body: &impl Serialize,
    ) -> Result<OutboundResponse, NoAnswer> {
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json), (IDEMPOTENCY_KEY, key)]);
        let body = serde_json::to_vec(body).expect("what is sent can be written as JSON");
        self.call(Method::POST, path, headers, body.into()).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<OutboundResponse, NoAnswer> {
        headers.insert(AUTHORIZATION, self.authorization.clone());
        let url = format!("{}{path}", self.endpoint);
        let started = Instant::now();
        let request = OutboundRequest { method, url, headers, body, timeout: self.timeout };
        let answer = self.attempt(request.clone()).await;
        match answer {
            Err(CallFailure::Unsent) => {
                let timeout = self.timeout.saturating_sub(started.elapsed());
                let again = self.attempt(OutboundRequest { timeout, ..request }).await;
                again.map_err(CallFailure::silence)
            }
            answer => answer.map_err(CallFailure::silence),
        }
    }

    async fn attempt(&self, request: OutboundRequest) -> Result<OutboundResponse, CallFailure> {
        let Ok(permit) = self.breaker.admit() else {
            return Err(CallFailure::Told(CIRCUIT_OPEN));
        };
        let answer = self.outbound.send(request).await;
        permit.settle(match &answer {
            // A rate limit says nothing about the provider's health.
            Ok(answer) if answer.status == StatusCode::TOO_MANY_REQUESTS => CallOutcome::Nothing,
            Ok(answer) if (self.is_failure)(answer) => CallOutcome::Failure,
            Ok(_) => CallOutcome::Success,
            Err(_) => CallOutcome::Failure,
        });
        answer.map_err(|error| match error {
            error if error.is_unsent() => CallFailure::Unsent,
            OutboundError::Timeout => CallFailure::Told(TIMEOUT),
            OutboundError::TooLarge => CallFailure::Told(UNREADABLE),
            _ => CallFailure::Told(INTERRUPTED),
        })
    }
}

enum CallFailure {
    Unsent,
    Told(&'static str),
}

impl CallFailure {
    fn silence(self) -> NoAnswer {
        match self {
            CallFailure::Unsent => NoAnswer(UNREACHABLE),
            CallFailure::Told(code) => NoAnswer(code),
        }
    }
}

/// A credential without the spaces, line ends and byte order mark that editors leave.
pub(super) fn trim_credential(text: &str) -> Result<&str, InvalidProviderCredential> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text),
        false => Err(InvalidProviderCredential),
    }
}

pub(super) fn sensitive(text: &str) -> Result<HeaderValue, InvalidProviderCredential> {
    let mut value = HeaderValue::from_str(text).map_err(|_| InvalidProviderCredential)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A text as one segment of a path. Dots are encoded too: `..` would leave the path.
pub(super) fn path_segment(text: &str) -> String {
    percent::encode_except(text, b"-_~")
}

/// The provider's code, or the HTTP status if there is none, in a form that fits a column and a log.
pub(super) fn error_code(code: Option<&str>, status: StatusCode) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let code: String = code.unwrap_or_default().chars().take(CODE_CHARS_MAX).collect();
    match !code.is_empty() && code.chars().all(|c| is_plain(&c)) {
        true => code,
        false => format!("HTTP_{}", status.as_u16()),
    }
}

/// Whether our credential is refused. It counts as a failure of the provider, because no payment gets
/// through until an operator has looked at it. The refusal of one payment is not meant (M-12).
pub(super) fn is_refused(status: StatusCode, code: &str) -> bool {
    status == StatusCode::UNAUTHORIZED
        || status.is_client_error() && super::is_about_credential(code)
}

/// A provider's text as one line of limited length.
pub(super) fn one_line(text: Option<String>, chars_max: usize) -> String {
    let text = text.unwrap_or_default();
    text.chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

/// A provider's URL that is safe to show as a link.
pub(super) fn link(url: Option<String>) -> Option<String> {
    let is_link = |url: &String| {
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
        url.starts_with("https://") && url.len() <= LINK_BYTES_MAX && is_plain
    };
    url.filter(is_link)
}

/// A provider's time in the range and precision of both databases.
pub(super) fn time(time: Option<Timestamp>) -> Option<Timestamp> {
    time.map(|time| truncate_to_micros(storable_time(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_loses_what_an_editor_left_and_nothing_else() {
        assert_eq!(trim_credential("\u{feff}test_sk_a\r\n"), Ok("test_sk_a"));
        for bad in ["", " \n", "test sk", "test_sk_é", "a\u{feff}b"] {
            assert_eq!(trim_credential(bad), Err(InvalidProviderCredential), "{bad:?}");
        }
    }

    #[test]
    fn a_text_cannot_leave_its_part_of_the_path() {
        assert_eq!(path_segment("../cancel?x#y"), "%2E%2E%2Fcancel%3Fx%23y");
        assert_eq!(path_segment("ORD_1-a~"), "ORD_1-a~");
    }

    #[test]
    fn a_foreign_code_is_a_short_word_or_the_status() {
        let status = StatusCode::BAD_REQUEST;
        assert_eq!(error_code(Some("REJECT_CARD_PAYMENT"), status), "REJECT_CARD_PAYMENT");
        assert_eq!(error_code(Some(&"A".repeat(100)), status), "A".repeat(CODE_CHARS_MAX));
        for code in [None, Some(""), Some("two words"), Some("<b>"), Some("거절")] {
            assert_eq!(error_code(code, status), "HTTP_400", "{code:?}");
        }
    }

    #[test]
    fn foreign_texts_links_and_times_are_kept_only_as_far_as_they_can_be() {
        let odd = Some("card\u{0}\r\n".to_owned() + &"x".repeat(100));
        assert_eq!(one_line(odd, 8), "cardxxxx");
        assert_eq!(one_line(None, 8), "");
        let good = Some("https://receipt.example/1?a=b".to_owned());
        assert_eq!(link(good.clone()), good);
        let long = format!("https://receipt.example/{}", "x".repeat(LINK_BYTES_MAX));
        for bad in ["", "javascript:alert(1)", "http://a/", "https://a/\u{0}", "https://a b", &long]
        {
            assert_eq!(link(Some(bad.to_owned())), None, "{bad:?}");
        }
        assert_eq!(time(Some(Timestamp::MAX)), Some(urr_storage::TIME_MAX));
        let fine = Timestamp::from_nanosecond(1_700_000_000_123_456_789).unwrap();
        assert_eq!(time(Some(fine)).unwrap().as_nanosecond() % 1_000, 0);
    }
}
