//! The way of a request to its service: every check, in order.
//!
//! The steps are functions and not layers around layers. What a step finds out is a value that the
//! later ones need, so most of the order is kept by the compiler; and a dozen nested layers cost
//! more than all they do. They share one request by reference: futures that hold it would be large.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;
use tower::Service;
use urr_kernel::CallContext;
use urr_service::RouteLabel;

use crate::credential::Credential;
use crate::rate_limit::Client;
use crate::refused::Refused;
use crate::routes::Route;
use crate::visitor::Visitor;
use crate::{
    Gateway, client_address, cors, csrf, entry, find, forward, path, policy, rate_limit, sizes,
    visitor,
};

/// From the door to the service.
#[derive(Clone)]
pub struct Way(pub Arc<Gateway>);

impl Service<Request> for Way {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let gateway = Arc::clone(&self.0);
        Box::pin(async move {
            let passed = pass(&gateway, &mut request).await;
            Ok(passed.unwrap_or_else(Refused::into_response))
        })
    }
}

/// Who asks for what.
struct Asked {
    route: &'static Route,
    position: usize,
    visitor: Visitor,
    credential: Credential,
}

/// How many headers the way and the call add. Room for all of them at once is cheaper than growing.
const HEADERS_ADDED: usize = 12;

async fn pass(gateway: &Gateway, request: &mut Request) -> Result<Response, Refused> {
    let settings = &gateway.settings;
    cors::answer_preflight(gateway, request)?;
    sizes::bound_headers(request.headers(), settings.header_bytes_max)?;
    sizes::one_length(request.headers())?;
    path::normalise(request.uri_mut())?;
    path::remove_version(request.uri_mut())?;
    request.headers_mut().reserve(HEADERS_ADDED);
    let (position, route) = find::find(gateway, request.method(), request.uri().path())?;
    let found = pass_found(gateway, position, route, request).await;
    let mut response = found.unwrap_or_else(Refused::into_response);
    response.extensions_mut().insert(RouteLabel(route.pattern));
    Ok(response)
}

/// The way once it is known what is asked for.
async fn pass_found(
    gateway: &Gateway,
    position: usize,
    route: &'static Route,
    request: &mut Request,
) -> Result<Response, Refused> {
    let credential = Credential::read(request.headers());
    let visitor = visitor::identify(gateway, &credential, request.headers_mut());
    csrf::check_origin(gateway, route, &credential, request)?;
    let address = client_address::find_address(gateway, request);
    if !request.body().is_end_stream()
        && let Some(bytes_max) = sizes::own_bound(gateway, route)
    {
        let whole = std::mem::take(request);
        *request = sizes::bound_body(whole, bytes_max).await?;
    }
    let client = Client { visitor, address };
    let counted = rate_limit::count(gateway, route.rate_class, client, request).await?;
    let asked = Asked { route, position, visitor, credential };
    let mut response =
        pass_counted(gateway, &asked, request).await.unwrap_or_else(Refused::into_response);
    response.headers_mut().reserve(HEADERS_ADDED);
    rate_limit::write_decision(&counted, &mut response);
    Ok(response)
}

/// The rest of the way. Who someone is comes before whether they have waited: a session that has
/// expired in the middle of a booking is renewed, not sent back to the queue.
async fn pass_counted(
    gateway: &Gateway,
    asked: &Asked,
    request: &mut Request,
) -> Result<Response, Refused> {
    let Asked { route, position, visitor, credential } = asked;
    let user_id = policy::keep_policy(route.policy, *visitor)?;
    entry::check_entry(gateway, route.policy, user_id, request)?;
    forward::keep_credentials(request.headers_mut(), route, *visitor, credential);
    let place = gateway.overload.enter(route.service, route.priority);
    let place = place.inspect_err(|_| gateway.figures.shed(route.priority))?;
    let context: CallContext = *request.extensions().get().expect("every request has a context");
    let begun = Instant::now();
    let request = std::mem::take(request);
    let response = forward::forward(gateway, route, &context, request).await;
    place.answered(*position, begun.elapsed());
    Ok(response?)
}
