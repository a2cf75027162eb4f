//! Passing a request on to its service.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, Uri};
use axum::response::Response;
use urr_service::{ApiError, CallPolicy, Context, unknown_path};

use crate::{Gateway, find_route};

/// What a client may not say itself: who it is, and that it is one of our services.
const RESERVED_PREFIXES: [&str; 2] = ["x-user-", "x-urr-"];

pub async fn forward(
    State(gateway): State<Arc<Gateway>>,
    Context(context): Context,
    mut request: Request,
) -> Result<Response, ApiError> {
    *request.uri_mut() = without_version(request.uri());
    let Some(route) = find_route(request.uri().path()) else {
        return Err(unknown_path().await);
    };
    let upstream = &gateway.upstreams[route.service];
    let repeatable = [Method::GET, Method::HEAD].contains(request.method());
    let policy = if repeatable {
        CallPolicy::idempotent(gateway.timeout)
    } else {
        CallPolicy::once(gateway.timeout)
    };
    Ok(upstream.call(request, &context, policy).await?)
}

/// `/api/v1/x` is `/api/x`.
fn without_version(uri: &Uri) -> Uri {
    let whole = uri.path_and_query().map_or("/", |path| path.as_str());
    let Some(rest) = whole.strip_prefix("/api/v1/") else { return uri.clone() };
    format!("/api/{rest}").parse().expect("a part of a valid path is a valid path")
}

/// Layer: removes what only we may say.
pub async fn without_reserved(mut request: Request) -> Request {
    remove_reserved(request.headers_mut());
    request
}

fn remove_reserved(headers: &mut HeaderMap) {
    let is_reserved =
        |name: &&HeaderName| RESERVED_PREFIXES.iter().any(|p| name.as_str().starts_with(p));
    let reserved: Vec<HeaderName> = headers.keys().filter(is_reserved).cloned().collect();
    for name in reserved {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_removed_and_the_query_kept() {
        let check = |given: &str, expected: &str| {
            let uri = without_version(&given.parse().unwrap());
            assert_eq!(uri.to_string(), expected);
        };
        check("/api/v1/artists?page=2", "/api/artists?page=2");
        check("/api/artists", "/api/artists");
        check("/api/v10/artists", "/api/v10/artists");
    }

    #[test]
    fn a_client_cannot_say_who_it_is() {
        let mut headers = HeaderMap::new();
        for name in ["x-user-id", "X-User-Role", "x-urr-caller", "x-urr-credential", "accept"] {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), "x".parse().unwrap());
        }
        headers.append("x-user-id", "twice".parse().unwrap());
        remove_reserved(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
    }
}
