//! Passing a request on to its service.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use tracing::warn;
use urr_kernel::CallContext;
use urr_service::{ApiError, CallPolicy};

use crate::credential::{Credential, cookies};
use crate::routes::{RateClass, Route};
use crate::visitor::Visitor;
use crate::{Gateway, foreign};

/// Credentials end here, but for the service that issues them.
const AUTH: &str = "auth";
const ACCESS_COOKIE: &str = "access_token";
/// The host that the client asked for. `Host` itself is that of the service.
const CLIENT_HOST: HeaderName = HeaderName::from_static("x-urr-client-host");

/// Calls the service of the route.
pub async fn forward(
    gateway: &Gateway,
    route: &Route,
    context: &CallContext,
    request: Request,
) -> Result<Response, ApiError> {
    let can_revoke = can_revoke(route, request.method());
    let method = request.method().clone();
    let timeout = gateway.settings.timeouts.of(route.timeout);
    let repeatable = [Method::GET, Method::HEAD].contains(request.method());
    let policy = match repeatable {
        true => CallPolicy::idempotent(timeout),
        false => CallPolicy::once(timeout),
    };
    let answer = gateway.upstream(route).call(request, context, policy).await;
    if can_revoke && let Some(feed) = &gateway.feed {
        // Whoever logs out and asks again sees that they are logged out.
        if let Err(error) = Box::pin(feed.refresh()).await {
            warn!(%error, "a revocation takes effect with the next look at the list");
        }
    }
    foreign::translate(&method, answer?).await
}

/// Services learn who the user is from the identity headers and need no token that they could
/// leak. Only auth gets its cookies, the access token as one of them if it is good, however it
/// came; and the host, which decides how its cookies are made.
pub fn keep_credentials(
    headers: &mut HeaderMap,
    route: &Route,
    visitor: Visitor,
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
    if let (Visitor::User { .. }, Credential::Header(token) | Credential::Cookie(token)) =
        (visitor, credential)
    {
        kept.push(format!("{ACCESS_COOKIE}={token}"));
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

/// Whether a request may end the life of access tokens: whatever changes something at the auth
/// service, but for log-ins and registrations. A refresh can, also when it is refused: a token
/// that is used twice ends its session.
fn can_revoke(route: &Route, method: &Method) -> bool {
    route.service == AUTH && route.rate_class != RateClass::Login && !method.is_safe()
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;
    use urr_service::Role;

    use super::*;
    use crate::routes::find_route;
    use crate::visitor::TokenFault;

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
        let fan = Visitor::User { id: Uuid::from_u128(1), role: Role::User };
        let kept = |path, visitor| {
            let mut headers: HeaderMap = given().collect();
            let credential = Credential::read(&headers);
            keep_credentials(&mut headers, find_route(path).unwrap(), visitor, &credential);
            headers
        };
        let elsewhere = kept("/api/artists", fan);
        assert_eq!(elsewhere.keys().collect::<Vec<_>>(), [header::HOST]);
        let auth = kept("/api/auth/logout", fan);
        assert_eq!(auth[header::COOKIE], "theme=dark; refresh_token=r; access_token=h");
        assert_eq!(auth[CLIENT_HOST], "urr.example");
        let bad = kept("/api/auth/logout", Visitor::Invalid(TokenFault::Revoked));
        assert_eq!(
            bad[header::COOKIE],
            "theme=dark; refresh_token=r",
            "a bad token is not passed on"
        );
    }

    #[test]
    fn only_some_requests_can_end_sessions() {
        let can = |method, path| can_revoke(find_route(path).unwrap(), &method);
        assert!(can(Method::POST, "/api/auth/logout"));
        assert!(can(Method::POST, "/api/auth/refresh"));
        assert!(can(Method::DELETE, "/api/auth/sessions"));
        assert!(!can(Method::POST, "/api/auth/login"));
        assert!(!can(Method::GET, "/api/auth/me"));
        assert!(!can(Method::POST, "/api/payments/confirm"));
    }
}
