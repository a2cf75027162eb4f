//! Why a call to another service has no answer, or not the one that was asked for.

use std::error::Error;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Map, Value};

use crate::paced_body::request_timeout;
use crate::{ApiError, extract};

type Source = Box<dyn Error + Send + Sync>;

/// How a call failed. `target` is the service that was called.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The service has failed too often lately; it was not called.
    #[error("{target} has failed too often and is not called for {retry_after:?}")]
    Open { target: &'static str, retry_after: Duration },
    /// No connection: the service has not seen the call.
    #[error("{target} cannot be reached")]
    Unreachable { target: &'static str, source: Source },
    /// The connection broke: the service may or may not have done what was asked.
    #[error("the connection to {target} broke")]
    Interrupted { target: &'static str, source: Source },
    /// No answer in time: the service may or may not have done what was asked.
    #[error("{target} did not answer in time")]
    Timeout { target: &'static str },
    /// The body to be sent on could not be read, or was too large. Not the service's fault.
    #[error("the body for {target} could not be read to its end")]
    RequestBody { target: &'static str, source: Source, too_large: bool },
    /// The client was too slow in sending its body. Not the service's fault.
    #[error("the body for {target} did not arrive in time")]
    RequestStalled { target: &'static str },
    /// The service answered, but not with success. Only the typed helpers say this.
    #[error("{target} answered {} {}", .refusal.status.as_u16(), .refusal.code)]
    Refused { target: &'static str, refusal: Box<UpstreamRefusal> },
    /// The service answered with success, but not with what it promised.
    #[error("the answer of {target} cannot be understood")]
    Unreadable { target: &'static str, source: Source },
    /// The call could not even be made: a mistake of the caller's code.
    #[error("the call to {target} is malformed")]
    Malformed { target: &'static str, source: Source },
}

/// What another service said when it refused or failed.
#[derive(Clone, Debug)]
pub struct UpstreamRefusal {
    pub status: StatusCode,
    /// The code of its error body; empty if it had none.
    pub code: String,
    /// The sentence for the client.
    pub sentence: String,
    /// The other fields of the body, without the trace id.
    pub extra: Map<String, Value>,
}

impl UpstreamRefusal {
    pub(crate) fn read(status: StatusCode, body: &[u8]) -> UpstreamRefusal {
        let mut extra: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
        let mut text = |field: &str| match extra.remove(field) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (sentence, code) = (text("error"), text("code"));
        extra.remove("traceId");
        UpstreamRefusal { status, code, sentence, extra }
    }
}

impl From<&ApiError> for UpstreamRefusal {
    /// As the error would arrive over the network.
    fn from(error: &ApiError) -> UpstreamRefusal {
        let (code, sentence, extra) = error.parts();
        let status = error.status();
        UpstreamRefusal { status, code: code.to_owned(), sentence: sentence.to_owned(), extra }
    }
}

impl UpstreamError {
    /// The refusal, if the service answered with one: what a service client branches on.
    pub fn refusal(&self) -> Option<&UpstreamRefusal> {
        match self {
            UpstreamError::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// Whether the service surely did not do what was asked, so that asking again is harmless.
    pub fn was_surely_not_done(&self) -> bool {
        match self {
            UpstreamError::Open { .. }
            | UpstreamError::Unreachable { .. }
            | UpstreamError::Malformed { .. } => true,
            UpstreamError::Refused { refusal, .. } => refusal.status.is_client_error(),
            UpstreamError::Interrupted { .. }
            | UpstreamError::Timeout { .. }
            | UpstreamError::RequestBody { .. }
            | UpstreamError::RequestStalled { .. }
            | UpstreamError::Unreadable { .. } => false,
        }
    }
}

/// The error for the client when no operation handled it. A client that expects a refusal looks at
/// [`UpstreamError::refusal`] first.
impl From<UpstreamError> for ApiError {
    fn from(error: UpstreamError) -> ApiError {
        match error {
            UpstreamError::Open { retry_after, .. } => unavailable(retry_after, error),
            UpstreamError::Unreachable { .. } | UpstreamError::Interrupted { .. } => {
                unavailable(Duration::from_secs(1), error)
            }
            UpstreamError::Timeout { .. } => ApiError::timeout(
                "UPSTREAM_TIMEOUT",
                "A part of the service did not answer in time. Please try again.",
            )
            .caused_by(error),
            UpstreamError::RequestBody { too_large: true, .. } => extract::too_large(),
            UpstreamError::RequestBody { .. } => extract::unreadable(),
            UpstreamError::RequestStalled { .. } => request_timeout(),
            UpstreamError::Refused { ref refusal, .. } => match passed_on(refusal) {
                Some(refused) => refused,
                None if refusal.status.is_server_error() => {
                    unavailable(Duration::from_secs(1), error)
                }
                None => ApiError::internal(error),
            },
            UpstreamError::Unreadable { .. } | UpstreamError::Malformed { .. } => {
                ApiError::internal(error)
            }
        }
    }
}

fn unavailable(retry_after: Duration, error: UpstreamError) -> ApiError {
    ApiError::unavailable(
        "SERVICE_UNAVAILABLE",
        "A part of the service is not available. Please try again.",
        retry_after,
    )
    .caused_by(error)
}

/// A refusal that concerns the user is passed on as it is. One that concerns the call itself (our
/// credential, our path, our method) is our mistake.
fn passed_on(refusal: &UpstreamRefusal) -> Option<ApiError> {
    let concerns_user = matches!(refusal.status.as_u16(), 400 | 404 | 409 | 410 | 422 | 423 | 429);
    let unknown_path = refusal.code.is_empty() || refusal.code == "NOT_FOUND";
    if !concerns_user || unknown_path {
        return None;
    }
    let (code, sentence) = (refusal.code.clone(), refusal.sentence.clone());
    let mut error = ApiError::new(refusal.status, code, sentence);
    error.extend(refusal.extra.clone());
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> ApiError {
        let status = StatusCode::from_u16(status).unwrap();
        let refusal = Box::new(UpstreamRefusal::read(status, body.as_bytes()));
        ApiError::from(UpstreamError::Refused { target: "ticket", refusal })
    }

    #[test]
    fn a_refusal_for_the_user_is_passed_on_as_it_is() {
        let body = r#"{"error":"Gone.","code":"HOLD_EXPIRED","traceId":"x","redirectTo":"/"}"#;
        let error = refused(409, body);
        assert_eq!(error.to_string(), "409 HOLD_EXPIRED: Gone.");
        assert!(format!("{error:?}").contains("redirectTo"));
    }

    #[test]
    fn trouble_between_the_services_is_not_blamed_on_the_user() {
        for (status, expected) in [(401, 500), (403, 500), (404, 500), (405, 500), (500, 503)] {
            assert_eq!(refused(status, "{}").status().as_u16(), expected);
        }
        assert_eq!(refused(503, "<html>").code(), "SERVICE_UNAVAILABLE");
    }
}
