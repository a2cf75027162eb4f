//! Failures that somebody between us and a service tells in their own words.
//!
//! A proxy between two processes answers for a service that it cannot reach, most often with a page
//! of HTML. Clients are promised one form of error, so it is told again in ours (E-7).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use urr_service::{ApiError, ErrorBody};

/// Errors of ours are far smaller. What is longer is somebody else's.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Nobody is sent away for longer on the word of a stranger.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(60);

/// The answer as it is, or our error in the place of one that no service of ours has written.
pub async fn translate(method: &Method, response: Response) -> Result<Response, ApiError> {
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
    // The answer to HEAD has no body to look at.
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

/// What we say instead: too late, or not there. When to come back is taken over if it is sensible.
fn failure(response: &Response) -> ApiError {
    let told = response.headers().get(header::RETRY_AFTER);
    let told = told.and_then(|seconds| seconds.to_str().ok()?.trim().parse().ok());
    let again = told.map_or(AGAIN_AFTER, Duration::from_secs).min(AGAIN_AFTER_MAX);
    let cause = format!("something before the service answered {}", response.status());
    let error = match response.status() {
        StatusCode::GATEWAY_TIMEOUT => {
            let sentence = "A part of the service did not answer in time. Please try again.";
            ApiError::timeout("UPSTREAM_TIMEOUT", sentence).retry_after(again)
        }
        _ => {
            let sentence = "A part of the service is not available. Please try again.";
            ApiError::unavailable("SERVICE_UNAVAILABLE", sentence, again)
        }
    };
    error.caused_by(cause)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    async fn told(status: u16, kind: &'static str, body: &'static str) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        match translate(&Method::GET, answer).await {
            Ok(response) => format!("{} as it is", response.status().as_u16()),
            Err(error) => format!("{} {}", error.status().as_u16(), error.code()),
        }
    }

    #[tokio::test]
    async fn e_7_what_no_service_of_ours_has_written_is_told_in_our_words() {
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
            // Controls: what is ours, and what is no failure of the way.
            (503, "application/json", ours, "503 as it is"),
            (504, "application/json; charset=utf-8", ours, "504 as it is"),
            (500, "text/html", "<html>", "500 as it is"),
            (404, "text/html", "<html>", "404 as it is"),
            (200, "text/html", "<html>", "200 as it is"),
        ] {
            assert_eq!(told(status, kind, body).await, expected, "{status} {kind} {body}");
        }
    }

    #[tokio::test]
    async fn the_time_to_come_back_is_taken_over_if_it_is_sensible() {
        for (told, expected) in [("7", "7"), ("9999", "60"), ("", "1"), ("Sun, 15 Nov", "1")] {
            let headers = [(header::RETRY_AFTER, told)];
            let answer = (StatusCode::BAD_GATEWAY, headers).into_response();
            let error = translate(&Method::GET, answer).await.unwrap_err();
            assert_eq!(error.into_response().headers()[header::RETRY_AFTER], expected, "{told}");
        }
    }

    #[tokio::test]
    async fn a_failure_whose_body_does_not_end_is_not_held_in_memory() {
        let much = vec![b' '; ERROR_BYTES_MAX + 1];
        let kind = [(header::CONTENT_TYPE, "application/json")];
        let answer = (StatusCode::SERVICE_UNAVAILABLE, kind, much).into_response();
        assert!(translate(&Method::GET, answer).await.is_err());
    }
}
