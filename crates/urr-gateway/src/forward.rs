//! Forwards a request to its service, and replaces errors that no service of ours wrote.
//!
//! A proxy between two processes answers for a service that it cannot reach, usually with an HTML
//! page. Clients are promised one error body, so the gateway answers with its own (E-7).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use tracing::warn;
use urr_kernel::CallContext;
use urr_service::{ApiError, CallPolicy, ErrorBody};

use crate::Gateway;
use crate::authenticate::{ACCESS_COOKIE, Credential, Requester};
use crate::headers::cookies;
use crate::routes::{BodySize, RateClass, Route};

/// The only service that gets credentials, because it issues them.
const AUTH: &str = "auth";
/// The host that the client called. `Host` itself is that of the service.
const CLIENT_HOST: HeaderName = HeaderName::from_static("x-urr-client-host");

/// Calls the service of the route.
///
/// Not an `async fn`, because the future of one holds its arguments twice and a request is large.
pub fn forward(
    gateway: &Gateway,
    route: &Route,
    context: &CallContext,
    request: Request,
) -> impl Future<Output = Result<Response, ApiError>> {
    let can_revoke = can_revoke(route, request.method());
    let method = request.method().clone();
    let timeout = gateway.settings.timeouts.of(route.timeout);
    let repeatable = [Method::GET, Method::HEAD].contains(request.method());
    let policy = match (repeatable, route.body) {
        (true, _) => CallPolicy::idempotent(timeout),
        (false, BodySize::Upload) => CallPolicy::once(timeout).streamed(),
        (false, BodySize::Normal | BodySize::Webhook) => CallPolicy::once(timeout),
    };
    let answer = gateway.upstream(route).call(request, context, policy);
    async move {
        let answer = answer.await;
        if can_revoke && let Some(feed) = &gateway.feed {
            // The next request with a token that this one revoked must be refused.
            if let Err(error) = Box::pin(feed.refresh()).await {
                warn!(%error, "cannot refresh revoked tokens now; the next poll will");
            }
        }
        replace_foreign_error(&method, answer?).await
    }
}

/// Removes credentials: services learn who the user is from the identity headers and need no token
/// that they could leak. Only auth keeps its cookies, with a valid access token as one of them
/// however it was sent, and gets the host, which decides the attributes of new cookies.
pub fn remove_credentials(
    headers: &mut HeaderMap,
    route: &Route,
    requester: Requester,
    credential: &Credential,
) {
    headers.remove(header::AUTHORIZATION);
    if route.service != AUTH {
        headers.remove(header::COOKIE);
        return;
    }
    let mut kept: Vec<String> = cookies(headers)
        .filter(|(name, _)| *name != ACCESS_COOKIE)
        .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
        .collect();
    if let (Requester::User { .. }, Credential::Header(token) | Credential::Cookie(token)) =
        (requester, credential)
    {
        kept.push(format!("{ACCESS_COOKIE}={}", token.0));
    }
    headers.remove(header::COOKIE);
    if !kept.is_empty()
        && let Ok(kept) = HeaderValue::try_from(kept.join("; "))
    {
        headers.insert(header::COOKIE, kept);
    }
    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.insert(CLIENT_HOST, host);
    }
}

/// Whether a request may revoke access tokens: every change at the auth service except logins and
/// registrations. A refused refresh can too, because a refresh token used twice ends its session.
fn can_revoke(route: &Route, method: &Method) -> bool {
    route.service == AUTH && route.rate_class != RateClass::Login && !method.is_safe()
}

/// Our own error bodies are far smaller.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A proxy cannot send clients away for longer.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The response unchanged, or our error if it is a failure that no service of ours wrote.
async fn replace_foreign_error(method: &Method, response: Response) -> Result<Response, ApiError> {
    match response.status().as_u16() {
        // Boxed, because it is rare and would enlarge the future of every request.
        502..=504 => Box::pin(replace_foreign_failure(method, response)).await,
        _ => Ok(response),
    }
}

async fn replace_foreign_failure(
    method: &Method,
    response: Response,
) -> Result<Response, ApiError> {
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
    use urr_kernel::{Timestamp, Uuid};
    use urr_service::UserRole;

    use super::*;
    use crate::authenticate::{LiveToken, TokenFault};
    use crate::routes::find_route;

    #[test]
    fn credentials_end_at_the_gateway() {
        let given = || {
            let cookie = "access_token=a; theme=dark; refresh_token=r";
            let pairs = [
                (header::AUTHORIZATION, "Bearer h"),
                (header::COOKIE, cookie),
                (header::HOST, "urr.example"),
            ];
            pairs.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter()
        };
        let (id, role) = (Uuid::from_u128(1), UserRole::User);
        let token = LiveToken { id, expires_at: Timestamp::MAX };
        let user = Requester::User { id, role, email_verified: true, token };
        let kept = |path, requester| {
            let mut headers: HeaderMap = given().collect();
            let credential = Credential::read(&headers);
            remove_credentials(&mut headers, find_route(path).unwrap(), requester, &credential);
            headers
        };
        let elsewhere = kept("/api/artists", user);
        assert_eq!(elsewhere.keys().collect::<Vec<_>>(), [header::HOST]);
        let auth = kept("/api/auth/logout", user);
        assert_eq!(auth[header::COOKIE], "theme=dark; refresh_token=r; access_token=h");
        assert_eq!(auth[CLIENT_HOST], "urr.example");
        let bad = kept("/api/auth/logout", Requester::InvalidToken(TokenFault::Revoked));
        assert_eq!(
            bad[header::COOKIE],
            "theme=dark; refresh_token=r",
            "a bad token is not passed on"
        );
    }

    #[test]
    fn only_changes_at_auth_can_revoke_tokens() {
        let can = |method, path| can_revoke(find_route(path).unwrap(), &method);
        assert!(can(Method::POST, "/api/auth/logout"));
        assert!(can(Method::POST, "/api/auth/refresh"));
        assert!(can(Method::DELETE, "/api/auth/sessions"));
        assert!(!can(Method::POST, "/api/auth/login"));
        assert!(!can(Method::GET, "/api/auth/me"));
        assert!(!can(Method::POST, "/api/payments/confirm"));
    }

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
