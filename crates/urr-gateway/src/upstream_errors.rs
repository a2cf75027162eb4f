//! Replaces errors that no service of ours wrote.
//!
//! A proxy between two processes answers for a service that it cannot reach, usually with an HTML
//! page. Clients are promised one error body, so the gateway answers with its own (E-7).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use urr_service::{ApiError, ErrorBody};

/// Our own error bodies are far smaller.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A proxy cannot send clients away for longer.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The response unchanged, or our error if it is a failure that no service of ours wrote.
pub async fn replace_foreign_error(
    method: &Method,
    response: Response,
) -> Result<Response, ApiError> {
    if !matches!(response.status().as_u16(), 502..=504) {
        return Ok(response);
    }
    let failure = failure(&response);
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.to_str().is_ok_and(|kind| kind.trim_start().starts_with("application/json"))
    });
    if !is_json {
        return Err(failure);
    }
    // A response to HEAD has no body to check.
    if method == Method::HEAD {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, ERROR_BYTES_MAX).await else { return Err(failure) };
    match serde_json::from_slice::<ErrorBody>(&bytes) {
        Ok(_ours) => Ok(Response::from_parts(parts, Body::from(bytes))),
        Err(_) => Err(failure),
    }
}

/// Our error: a timeout or an unavailable service, with the proxy's `Retry-After` up to a maximum.
fn failure(response: &Response) -> ApiError {
    let seconds = response.headers().get(header::RETRY_AFTER);
    let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.trim().parse().ok());
    let retry_after = seconds.map_or(RETRY_AFTER, Duration::from_secs).min(RETRY_AFTER_MAX);
    let cause = format!("a proxy before the service answered {}", response.status());
    let error = match response.status() {
        StatusCode::GATEWAY_TIMEOUT => {
            let sentence = "A part of the service did not answer in time. Please try again.";
            ApiError::timeout("UPSTREAM_TIMEOUT", sentence).retry_after(retry_after)
        }
        _ => {
            let sentence = "A part of the service is not available. Please try again.";
            ApiError::unavailable("SERVICE_UNAVAILABLE", sentence, retry_after)
        }
    };
    error.caused_by(cause)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    async fn outcome(status: u16, kind: &'static str, body: &'static str) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        match replace_foreign_error(&Method::GET, answer).await {
            Ok(response) => format!("{} unchanged", response.status().as_u16()),
            Err(error) => format!("{} {}", error.status().as_u16(), error.code()),
        }
    }

    #[tokio::test]
    async fn e_7_errors_that_no_service_of_ours_wrote_are_replaced() {
        let ours = r#"{"error":"Busy.","code":"BUSY","traceId":"x","retryAfter":1}"#;
        for (status, kind, body, expected) in [
            (502, "text/html", "<html>", "503 SERVICE_UNAVAILABLE"),
            (503, "text/html; charset=utf-8", "<html>", "503 SERVICE_UNAVAILABLE"),
            (504, "text/html", "<html>", "504 UPSTREAM_TIMEOUT"),
            (503, "text/plain", "no healthy upstream", "503 SERVICE_UNAVAILABLE"),
            (503, "text/plain", ours, "503 SERVICE_UNAVAILABLE"),
            (503, "application/json", r#"{"message":"no"}"#, "503 SERVICE_UNAVAILABLE"),
            (504, "application/json", "<html>", "504 UPSTREAM_TIMEOUT"),
            (503, "application/json", "", "503 SERVICE_UNAVAILABLE"),
            // Controls: our own errors, and statuses that no proxy makes up.
            (503, "application/json", ours, "503 unchanged"),
            (504, "application/json; charset=utf-8", ours, "504 unchanged"),
            (500, "text/html", "<html>", "500 unchanged"),
            (404, "text/html", "<html>", "404 unchanged"),
            (200, "text/html", "<html>", "200 unchanged"),
        ] {
            assert_eq!(outcome(status, kind, body).await, expected, "{status} {kind} {body}");
        }
    }

    #[tokio::test]
    async fn retry_after_of_a_proxy_is_kept_within_bounds() {
        for (told, expected) in [("7", "7"), ("9999", "60"), ("", "1"), ("Sun, 15 Nov", "1")] {
            let headers = [(header::RETRY_AFTER, told)];
            let answer = (StatusCode::BAD_GATEWAY, headers).into_response();
            let error = replace_foreign_error(&Method::GET, answer).await.unwrap_err();
            assert_eq!(error.into_response().headers()[header::RETRY_AFTER], expected, "{told}");
        }
    }

    #[tokio::test]
    async fn a_failure_with_a_large_body_is_not_held_in_memory() {
        let much = vec![b' '; ERROR_BYTES_MAX + 1];
        let kind = [(header::CONTENT_TYPE, "application/json")];
        let answer = (StatusCode::SERVICE_UNAVAILABLE, kind, much).into_response();
        assert!(replace_foreign_error(&Method::GET, answer).await.is_err());
    }
}
