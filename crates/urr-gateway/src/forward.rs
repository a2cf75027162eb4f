//! Forwards a request to its service.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use tracing::warn;
use urr_kernel::CallContext;
use urr_service::{ApiError, CallPolicy};

use crate::Gateway;
use crate::authenticate::{ACCESS_COOKIE, Credential, Requester};
use crate::headers::cookies;
use crate::routes::{RateClass, Route};
use crate::upstream_errors::replace_foreign_error;

/// The only service that gets credentials, because it issues them.
const AUTH: &str = "auth";
/// The host that the client called. `Host` itself is that of the service.
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
        // The next request with a token that this one revoked must be refused.
        if let Err(error) = Box::pin(feed.refresh()).await {
            warn!(%error, "cannot refresh revoked tokens now; the next poll will");
        }
    }
    replace_foreign_error(&method, answer?).await
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

/// Whether a request may revoke access tokens: every change at the auth service except logins and
/// registrations. A refused refresh can too, because a refresh token used twice ends its session.
fn can_revoke(route: &Route, method: &Method) -> bool {
    route.service == AUTH && route.rate_class != RateClass::Login && !method.is_safe()
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;
    use urr_service::UserRole;

    use super::*;
    use crate::authenticate::TokenFault;
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
        let user = Requester::User { id: Uuid::from_u128(1), role: UserRole::User };
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
}
