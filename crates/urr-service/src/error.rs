//! `ApiError`: the answer to a request that is refused or fails, and the cause for the log.
//!
//! The error does not know the trace it belongs to. It travels in the extensions of the response
//! to the request layer, which writes the body with the trace id, in the language of the client, and
//! logs the source once.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use urr_kernel::{Language, error_chain};

use crate::log_throttle::LogThrottle;
use crate::messages;

/// Of the whole process, as the log is.
static UNAVAILABLE: LogThrottle = LogThrottle::new();

/// A refusal or failure with its status, its code for programs and its sentence for people.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    code: Cow<'static, str>,
    sentence: Cow<'static, str>,
    /// Set if it says more than the Korean sentence of the code.
    korean: Option<Box<str>>,
    extra: Map<String, Value>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The body of every error. A case may add fields, for example `redirectTo`.
#[derive(Debug, serde::Deserialize, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// A sentence for people.
    #[schema(example = "This seat is held by someone else.")]
    pub error: String,
    /// A word for programs.
    #[schema(example = "SEAT_ALREADY_HELD")]
    pub code: String,
    /// The trace to quote when asking for help.
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    pub trace_id: Option<String>,
    /// After how many seconds another attempt makes sense.
    pub retry_after: Option<u64>,
}

impl ApiError {
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        sentence: impl Into<Cow<'static, str>>,
    ) -> ApiError {
        ApiError {
            status,
            code: code.into(),
            sentence: sentence.into(),
            korean: None,
            extra: Map::new(),
            source: None,
        }
    }

    pub fn bad_request(code: &'static str, sentence: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, code, sentence)
    }

    pub fn unauthorized(code: &'static str, sentence: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, code, sentence)
    }

    pub fn forbidden(code: &'static str, sentence: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, code, sentence)
    }

    pub fn not_found(code: &'static str, sentence: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, code, sentence)
    }

    pub fn conflict(code: &'static str, sentence: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, code, sentence)
    }

    pub fn unprocessable(code: &'static str, sentence: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, sentence)
    }

    pub fn too_many(
        code: &'static str,
        sentence: impl Into<Cow<'static, str>>,
        retry_after: Duration,
    ) -> ApiError {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, sentence).retry_after(retry_after)
    }

    pub fn unavailable(
        code: &'static str,
        sentence: impl Into<Cow<'static, str>>,
        retry_after: Duration,
    ) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, sentence).retry_after(retry_after)
    }

    pub fn timeout(code: &'static str, sentence: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, code, sentence)
    }

    /// Our own mistake. The client gets the trace id only; the source is logged.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> ApiError {
        let sentence = "Something went wrong on our side. Please try again.";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", sentence)
            .caused_by(source)
    }

    /// Adds a field to the body. `error`, `code` and `traceId` are taken.
    pub fn with(mut self, field: &'static str, value: impl Into<Value>) -> ApiError {
        let taken = ["error", "code", "traceId"].contains(&field);
        assert!(!taken, "{field} belongs to every error body");
        self.extra.insert(field.to_owned(), value.into());
        self
    }

    /// Says in Korean more than the sentence that the code has there.
    pub fn in_korean(mut self, sentence: impl Into<String>) -> ApiError {
        self.korean = Some(sentence.into().into_boxed_str());
        self
    }

    fn sentence_in(&self, language: Language) -> &str {
        let korean = match language {
            Language::English => None,
            Language::Korean => self.korean.as_deref().or_else(|| messages::korean(&self.code)),
        };
        korean.unwrap_or(&self.sentence)
    }

    /// Code, English sentence and further fields.
    pub(crate) fn parts(&self) -> (&str, &str, Map<String, Value>) {
        (&self.code, &self.sentence, self.extra.clone())
    }

    /// Adds the fields of another service's refusal.
    pub(crate) fn extend(&mut self, fields: Map<String, Value>) {
        self.extra.extend(fields);
    }

    /// Says when another attempt makes sense: in the body, and as the `Retry-After` header.
    pub fn retry_after(self, after: Duration) -> ApiError {
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.with("retryAfter", seconds.max(1))
    }

    /// What led to this. It is logged if the status is 5xx and never sent.
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> ApiError {
        self.source = Some(Arc::from(source.into()));
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    /// Writes the error over a response whose headers (for example `Allow`) are kept.
    pub(crate) fn write_into(
        &self,
        response: &mut Response,
        trace_id: Option<&str>,
        language: Language,
    ) {
        let mut body = self.extra.clone();
        body.insert("error".to_owned(), Value::from(self.sentence_in(language)));
        body.insert("code".to_owned(), Value::from(self.code.as_ref()));
        if let Some(trace_id) = trace_id {
            body.insert("traceId".to_owned(), Value::from(trace_id));
        }
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // The first time it is written the language of the client is not known yet.
        if headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language.as_str())).is_none() {
            headers.append(VARY, HeaderValue::from_static("accept-language"));
        }
        if let Some(seconds) = self.extra.get("retryAfter").and_then(Value::as_u64) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        *response.status_mut() = self.status;
        *response.body_mut() = Value::Object(body).to_string().into();
    }

    /// Logs a failure of ours with its sources. Refusals are not logged. A dependency that is down or
    /// slow is a warning, because alerts count errors and every request would raise one. Then many
    /// requests fail alike, so only some of them are logged.
    pub(crate) fn log(&self) {
        if !self.status.is_server_error() {
            return;
        }
        let cause = self.source.as_deref().map(|error| error_chain(error)).unwrap_or_default();
        let (status, code) = (self.status.as_u16(), self.code.as_ref());
        match status {
            503 | 504 => {
                if let Some(left_out) = UNAVAILABLE.allow(code) {
                    tracing::warn!(status, code, cause, left_out, "{}", self.sentence);
                }
            }
            _ => tracing::error!(status, code, cause, "{}", self.sentence),
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status.as_u16(), self.code, self.sentence)
    }
}

impl Error for ApiError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl IntoResponse for ApiError {
    /// A complete answer but for the trace id and the language, which the request layer adds.
    fn into_response(self) -> Response {
        let mut response = Response::default();
        self.write_into(&mut response, None, Language::English);
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer to a path that no route has.
pub async fn unknown_path() -> ApiError {
    ApiError::not_found("NOT_FOUND", "There is nothing at this address.")
}

/// The answer to a method that the route does not have; axum adds the `Allow` header.
pub(crate) async fn wrong_method() -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "METHOD_NOT_ALLOWED",
        "This address does not answer to this method.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds() {
        let wait = |millis| {
            let after = Duration::from_millis(millis);
            let error = ApiError::unavailable("BUSY", "Busy.", after);
            error.into_response().headers()[RETRY_AFTER].clone()
        };
        assert_eq!(wait(0), "1");
        assert_eq!(wait(1_000), "1");
        assert_eq!(wait(1_001), "2");
    }

    #[test]
    fn the_source_is_never_in_what_the_client_gets() {
        let error = ApiError::internal("the password is hunter2");
        assert!(!error.to_string().contains("hunter2"));
        assert_eq!(error.source().unwrap().to_string(), "the password is hunter2");
    }

    #[test]
    #[should_panic(expected = "code belongs to every error body")]
    fn an_extra_field_cannot_replace_the_code() {
        drop(ApiError::bad_request("X", "X.").with("code", "Y"));
    }
}
