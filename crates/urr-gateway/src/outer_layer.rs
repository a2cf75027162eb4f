//! The outermost layer: sees every request first and every response last.
//!
//! It gives every body a least pace, whatever reads it later.
//!
//! It also closes the connection after a request with chunked encoding, so that nothing can be
//! smuggled in behind it. Hyper drops a `Content-Length` that follows `Transfer-Encoding`, so we
//! cannot tell an ambiguous request from a harmless one. Browsers do not send chunked requests.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::TryFutureExt;
use tower::{Layer, Service};
use urr_service::PacedBody;

use crate::compression::ResponseCompression;
use crate::{Gateway, browsers, headers};

#[derive(Clone)]
pub struct OuterLayer(pub Arc<Gateway>);

#[derive(Clone)]
pub struct OuterService<S> {
    gateway: Arc<Gateway>,
    inner: S,
}

impl<S> Layer<S> for OuterLayer {
    type Service = OuterService<S>;

    fn layer(&self, inner: S) -> OuterService<S> {
        OuterService { gateway: Arc::clone(&self.0), inner }
    }
}

impl<S> Service<Request> for OuterService<S>
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
        headers::remove_reserved(request.headers_mut());
        let pace = self.gateway.settings.body_pace;
        if !request.body().is_end_stream() {
            request = request.map(|body| Body::new(PacedBody::new(body, pace)));
        }
        let compression = ResponseCompression::for_request(&self.gateway.encoders, &request);
        let origin = browsers::allowed_origin(&self.gateway, request.headers());
        let is_api = request.uri().path().starts_with("/api/");
        let is_loopback = self.gateway.settings.is_loopback;
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let response = self.inner.call(request);
        Box::pin(response.map_ok(move |mut response| {
            browsers::write_cors_headers(origin, response.headers_mut());
            browsers::write_security_headers(is_api, is_loopback, response.headers_mut());
            if is_chunked {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            compression.apply(response)
        }))
    }
}
