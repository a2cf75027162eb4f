//! The outermost layer: what must see every request first and every answer last.
//!
//! It also ends connections whose framing somebody in front of us may have read in another way: a
//! request in chunks is the last of its connection, so that nothing can be smuggled in behind it.
//! The server under us forgets a `Content-Length` that follows `Transfer-Encoding`, so we cannot
//! tell the harmless ones from the others. Browsers do not send requests in chunks.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::TryFutureExt;
use tower::{Layer, Service};

use crate::compress::Wish;
use crate::{Gateway, cors, reserved, security_headers};

#[derive(Clone)]
pub struct Frame(pub Arc<Gateway>);

#[derive(Clone)]
pub struct Framed<S> {
    gateway: Arc<Gateway>,
    inner: S,
}

impl<S> Layer<S> for Frame {
    type Service = Framed<S>;

    fn layer(&self, inner: S) -> Framed<S> {
        Framed { gateway: Arc::clone(&self.0), inner }
    }
}

impl<S> Service<Request> for Framed<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        reserved::remove(request.headers_mut());
        let wish = Wish::read(&self.gateway.encoders, &request);
        let origin = cors::allowed_origin(&self.gateway, request.headers());
        let is_data = request.uri().path().starts_with("/api/");
        let is_loopback = self.gateway.settings.is_loopback;
        let is_last = request.headers().contains_key(header::TRANSFER_ENCODING);
        let answer = self.inner.call(request);
        Box::pin(answer.map_ok(move |mut response| {
            cors::allow(origin, response.headers_mut());
            security_headers::protect(is_data, is_loopback, response.headers_mut());
            if is_last {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            wish.fulfil(response)
        }))
    }
}
