//! The checks that every request to a service passes, in order.
//!
//! The steps are functions, not nested layers. What one step finds out is a value that later steps
//! need, so the compiler keeps most of the order, and a dozen nested layers would cost more than the
//! checks themselves. The steps share the request by reference, and those that few requests need are
//! boxed, which keeps the futures small.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use urr_service::{ApiError, CallMetadata, RouteLabel};

use crate::authenticate::{Credential, Requester, authenticate, authorize};
use crate::rate_limit::RateLimitSubject;
use crate::routes::{Route, find_request_route};
use crate::{
    Gateway, browsers, client_address, entry_token, forward, path, rate_limit, request_limits,
    stream_end, verified_email,
};

/// How many headers the pipeline and the call add. One allocation for all is cheaper than several.
const HEADERS_ADDED: usize = 12;

/// A response that a step gives instead of letting the request pass.
#[derive(Debug)]
pub struct EarlyResponse(Box<Response>);

impl From<ApiError> for EarlyResponse {
    fn from(error: ApiError) -> EarlyResponse {
        error.into_response().into()
    }
}

impl From<Response> for EarlyResponse {
    fn from(response: Response) -> EarlyResponse {
        EarlyResponse(Box::new(response))
    }
}

impl IntoResponse for EarlyResponse {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// A request whose route and sender are known.
struct RoutedRequest {
    route: &'static Route,
    /// The index of the route in the table.
    index: usize,
    requester: Requester,
    credential: Credential,
}

/// Answers a request for a service.
pub async fn run(gateway: Arc<Gateway>, mut request: Request) -> Result<Response, Infallible> {
    let response = check_and_forward(&gateway, &mut request).await;
    Ok(response.unwrap_or_else(EarlyResponse::into_response))
}

async fn check_and_forward(
    gateway: &Gateway,
    request: &mut Request,
) -> Result<Response, EarlyResponse> {
    let settings = &gateway.settings;
    browsers::answer_preflight(gateway, request)?;
    request_limits::check_headers(request.headers(), settings.header_bytes_max)?;
    request_limits::check_single_length(request.headers())?;
    path::normalise(request.uri_mut())?;
    path::remove_version(request.uri_mut())?;
    request.headers_mut().reserve(HEADERS_ADDED);
    let (index, route) = find_request_route(gateway, request.method(), request.uri().path())?;
    let response = check_sender(gateway, index, route, request).await;
    let mut response = response.unwrap_or_else(EarlyResponse::into_response);
    response.extensions_mut().insert(RouteLabel(route.pattern));
    Ok(response)
}

/// The steps up to the rate limit, whose headers are on every response from there on.
async fn check_sender(
    gateway: &Gateway,
    index: usize,
    route: &'static Route,
    request: &mut Request,
) -> Result<Response, EarlyResponse> {
    let credential = Credential::read(request.headers());
    let requester = authenticate(gateway, &credential, request.headers_mut());
    browsers::check_origin(gateway, route, &credential, request)?;
    let address = client_address::resolve_address(gateway, request);
    if !request.body().is_end_stream()
        && let Some(bytes_max) = request_limits::route_body_limit(gateway, route)
    {
        let whole = std::mem::take(request);
        *request = Box::pin(request_limits::limit_body(whole, bytes_max)).await?;
    }
    let subject = RateLimitSubject { requester, address };
    let decision = rate_limit::check(gateway, route.rate_class, subject, request).await?;
    let routed = RoutedRequest { route, index, requester, credential };
    let response = authorize_and_forward(gateway, &routed, request).await;
    let mut response = response.unwrap_or_else(EarlyResponse::into_response);
    response.headers_mut().reserve(HEADERS_ADDED);
    rate_limit::write_headers(&decision, &mut response);
    Ok(response)
}

/// Checks the login before the entry token: if a session expires in the middle of a booking, the
/// client refreshes it instead of joining the queue again.
async fn authorize_and_forward(
    gateway: &Gateway,
    routed: &RoutedRequest,
    request: &mut Request,
) -> Result<Response, EarlyResponse> {
    let RoutedRequest { route, index, requester, credential } = routed;
    let user_id = authorize(route.policy, *requester)?;
    verified_email::check(gateway, request.method(), request.uri().path(), *requester)?;
    entry_token::check(gateway, route.policy, user_id, request)?;
    forward::remove_credentials(request.headers_mut(), route, *requester, credential);
    request_limits::read_ahead(gateway, route, request).await?;
    let permit = gateway.overload.acquire_for(route);
    let permit = permit.inspect_err(|_| gateway.metrics.count_shed(route.priority))?;
    let call: CallMetadata = *request.extensions().get().expect("every request has a context");
    let request = std::mem::take(request);
    let response = forward::forward(gateway, route, &call.context, request).await;
    permit.complete(*index);
    Ok(stream_end::end_with_token(gateway, *requester, response?))
}
