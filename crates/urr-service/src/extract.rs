//! `Json`, `Path` and `Query` as axum has them, but a rejection is an `ApiError` with status 4xx that
//! names the wrong field.

use std::error::Error;

use axum::body::Bytes;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use urr_kernel::Language;

use crate::ApiError;
use crate::field_error::{FieldError, RequestPart};
use crate::paced_body::body_refused;

/// A JSON body, in or out.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

/// A body as it came, for handlers that check a signature over its bytes.
#[derive(Clone, Debug)]
pub struct RawBody(pub Bytes);

/// The parameters in the path.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

/// The parameters after the question mark.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Json<T>, ApiError> {
        if !has_json_type(request.headers()) {
            return Err(not_json());
        }
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        Json::read(&bytes)
    }
}

impl<T: DeserializeOwned> Json<T> {
    /// Reads a body that was taken as bytes.
    pub fn read(bytes: &[u8]) -> Result<Json<T>, ApiError> {
        if has_nul(bytes) {
            let sentence = "The body has the character U+0000, which no text may have.";
            return Err(ApiError::bad_request("INVALID_BODY", sentence));
        }
        axum::Json::<T>::from_bytes(bytes)
            .map(|axum::Json(value)| Json(value))
            .map_err(json_refused)
    }
}

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<RawBody, ApiError> {
        let bytes = Bytes::from_request(request, state).await;
        bytes.map(RawBody).map_err(|rejection| bytes_refused(&rejection))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let json = HeaderValue::from_static("application/json");
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => ([(header::CONTENT_TYPE, json)], bytes).into_response(),
            Err(error) => ApiError::internal(error).into_response(),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError> {
        refuse_nul(Some(parts.uri.path()), "INVALID_PATH")?;
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Path(value)),
            Err(rejection) => Err(path_refused(rejection)),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>, ApiError> {
        refuse_nul(parts.uri.query(), "INVALID_QUERY")?;
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Query(value)),
            Err(rejection) => Err(query_refused(&rejection)),
        }
    }
}

/// The answer to parameters that cannot be read.
pub(crate) fn query_refused(rejection: &QueryRejection) -> ApiError {
    let error = FieldError::read(&innermost_text(rejection));
    wrong_field("INVALID_QUERY", RequestPart::Query, &error)
}

/// The answer to a body that is larger than the service takes.
pub(crate) fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "BODY_TOO_LARGE",
        "The body of the request is too large.",
    )
}

fn json_refused(rejection: JsonRejection) -> ApiError {
    match rejection {
        JsonRejection::JsonSyntaxError(_) => {
            ApiError::bad_request("INVALID_JSON", "The body is not valid JSON.")
        }
        JsonRejection::JsonDataError(_) => {
            let error = FieldError::read(&innermost_text(&rejection));
            wrong_field("INVALID_BODY", RequestPart::Body, &error)
        }
        JsonRejection::MissingJsonContentType(_) => not_json(),
        JsonRejection::BytesRejection(rejection) => bytes_refused(&rejection),
        _ => ApiError::bad_request("INVALID_BODY", "The body could not be read."),
    }
}

/// A mistake in a field, in both languages.
fn wrong_field(code: &'static str, part: RequestPart, error: &FieldError) -> ApiError {
    ApiError::bad_request(code, error.sentence(Language::English, part))
        .in_korean(error.sentence(Language::Korean, part))
}

fn not_json() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_MEDIA_TYPE",
        "The body must be JSON, with the header Content-Type: application/json.",
    )
}

/// `application/json`, or a format that is JSON with a name of its own.
fn has_json_type(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    let lower = essence.to_ascii_lowercase();
    lower == "application/json" || (lower.starts_with("application/") && lower.ends_with("+json"))
}

/// Whether a text in the document has the character U+0000: PostgreSQL cannot store it.
fn has_nul(json: &[u8]) -> bool {
    const ESCAPED: &[u8] = b"\\u0000";
    if !json.windows(ESCAPED.len()).any(|window| window == ESCAPED) {
        return false;
    }
    // The backslash may itself be escaped, so the document is parsed. This is rare.
    serde_json::from_slice(json).is_ok_and(|document| value_has_nul(&document))
}

fn value_has_nul(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(value_has_nul),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || value_has_nul(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// In an address the character can only be written `%00`.
pub(crate) fn refuse_nul(part: Option<&str>, code: &'static str) -> Result<(), ApiError> {
    match part {
        Some(text) if text.contains("%00") => Err(ApiError::bad_request(
            code,
            "The address has the character U+0000, which no text may have.",
        )),
        _ => Ok(()),
    }
}

fn bytes_refused(rejection: &BytesRejection) -> ApiError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        _ => body_refused(rejection),
    }
}

/// The answer to a body that breaks off.
pub(crate) fn unreadable() -> ApiError {
    ApiError::bad_request("INVALID_BODY", "The body could not be read to its end.")
}

fn path_refused(rejection: PathRejection) -> ApiError {
    // A 5xx here means that the handler asks for parameters its route does not have.
    if rejection.status().is_server_error() {
        return ApiError::internal(rejection);
    }
    let PathRejection::FailedToDeserializePathParams(failed) = rejection else {
        return ApiError::bad_request("INVALID_PATH", "The path of this address is not valid.");
    };
    let expected = |name: &str| format!("invalid value, expected {name}");
    let error = match failed.kind() {
        ErrorKind::ParseErrorAtKey { key, expected_type, .. } => {
            FieldError::at(Some(key), &expected(expected_type))
        }
        ErrorKind::DeserializeError { key, message, .. } => FieldError::at(Some(key), message),
        ErrorKind::ParseErrorAtIndex { expected_type, .. }
        | ErrorKind::ParseError { expected_type, .. } => {
            FieldError::at(None, &expected(expected_type))
        }
        ErrorKind::Message(message) => FieldError::at(None, message),
        _ => FieldError::at(None, ""),
    };
    wrong_field("INVALID_PATH", RequestPart::Path, &error)
}

/// What serde says, with the path to the field.
fn innermost_text(rejection: &dyn Error) -> String {
    let source = rejection.source();
    source.map_or_else(|| rejection.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only whether it can be read matters")]
    struct HoldBody {
        seat_ids: Vec<u32>,
    }

    async fn refusal(content_type: &str, body: &'static str) -> String {
        let request = Request::builder().header("content-type", content_type);
        let request = request.body(Body::from(body)).unwrap();
        let refused = Json::<HoldBody>::from_request(request, &()).await;
        refused.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_refused_body_says_where_it_is_wrong() {
        let json = "application/json";
        for (body, expected) in [
            ("{", "400 INVALID_JSON: The body is not valid JSON."),
            ("{}", "400 INVALID_BODY: The field `seatIds` is missing."),
            (
                r#"{"seatIds":[1,"x"]}"#,
                "400 INVALID_BODY: `seatIds[1]` must be a whole number from 0 to 4294967295.",
            ),
            (r#"{"seatIds":3}"#, "400 INVALID_BODY: `seatIds` must be a list."),
            ("[]", "400 INVALID_BODY: The body must be an object."),
            ("3", "400 INVALID_BODY: The body must be an object."),
        ] {
            assert_eq!(refusal(json, body).await, expected);
        }
        assert!(refusal("text/plain", "{}").await.starts_with("415 UNSUPPORTED_MEDIA_TYPE"));
    }

    #[tokio::test]
    async fn a_refused_query_says_where_it_is_wrong() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only whether it can be read matters")]
        struct Filter {
            year: u16,
        }
        let request = Request::builder().uri("/?year=soon").body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let refused = Query::<Filter>::from_request_parts(&mut parts, &()).await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "400 INVALID_QUERY: `year` must be a whole number."
        );
    }
}
