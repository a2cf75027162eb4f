//! Limits on the size of headers and bodies, checked before any work is done.
//!
//! Small bodies are read to their end here, before the request takes a permit and before the breaker
//! of the service sees it. So a client that never ends its body occupies its connection and nothing
//! else. Only uploads of administrators are passed on while they arrive.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body as _;
use tokio::sync::Semaphore;
use urr_service::{ApiError, body_refused};

use crate::Gateway;
use crate::overload::overloaded;
use crate::routes::{BodySize, Route};

/// What providers send is far smaller.
const WEBHOOK_BYTES_MAX: usize = 64 * 1024;
/// A body up to this size needs none of the places for large bodies.
const SMALL_BYTES: usize = 16 * 1024;
/// How many larger bodies may be in memory at once.
pub const LARGE_BODIES_MAX: usize = 64;
/// When a client with a large body comes back that found no place.
const LARGE_BODY_RETRY: Duration = Duration::from_secs(2);

/// How much of a refused body is read and discarded, as a multiple of the limit. A client that is
/// still sending when the connection closes sees a reset instead of the response.
const DRAINED_MAX: usize = 4;

/// Includes the headers that proxies add. Hyper takes twice as many, so that the error is ours.
const HEADERS_MAX: usize = 64;

/// Refuses too many headers, and headers that are too large.
pub fn check_headers(headers: &HeaderMap, bytes_max: usize) -> Result<(), ApiError> {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    if headers.len() > HEADERS_MAX {
        let sentence = "The request has too many headers.";
        return Err(ApiError::new(status, "TOO_MANY_HEADERS", sentence));
    }
    if header_bytes(headers) > bytes_max {
        let sentence = "The headers of the request are too large.";
        return Err(ApiError::new(status, "HEADERS_TOO_LARGE", sentence));
    }
    Ok(())
}

/// Refuses a body whose length is stated twice: a proxy in front of us may use the other one.
pub fn check_single_length(headers: &HeaderMap) -> Result<(), ApiError> {
    let in_chunks = headers.contains_key(header::TRANSFER_ENCODING);
    if in_chunks && headers.contains_key(header::CONTENT_LENGTH) {
        let sentence = "The length of the body is stated in two ways.";
        return Err(ApiError::bad_request("AMBIGUOUS_LENGTH", sentence));
    }
    Ok(())
}

/// The size of the headers on the wire, as `name: value\r\n`.
fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// The body limit of a route, if it is narrower than that of the router, which admits uploads.
pub fn route_body_limit(gateway: &Gateway, route: &Route) -> Option<usize> {
    match (route.service, route.body) {
        ("auth", _) => Some(gateway.settings.auth_body_bytes_max),
        (_, BodySize::Webhook) => Some(WEBHOOK_BYTES_MAX.min(gateway.body_bytes_max)),
        (_, BodySize::Normal) => Some(gateway.body_bytes_max),
        (_, BodySize::Upload) => None,
    }
}

/// The request with a body that fails beyond `bytes_max`.
pub async fn limit_body(request: Request, bytes_max: usize) -> Result<Request, ApiError> {
    let announced = request.body().size_hint().lower();
    if announced > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        let mut rest = Limited::new(request.into_body(), bytes_max.saturating_mul(DRAINED_MAX));
        while let Some(Ok(_)) = rest.frame().await {}
        return Err(body_too_large());
    }
    Ok(request.map(|body| Body::new(Limited::new(body, bytes_max))))
}

/// Reads the body to its end and puts it back, if it is not one that is passed on while it arrives.
pub async fn read_ahead(
    gateway: &Gateway,
    route: &Route,
    request: &mut Request,
) -> Result<(), ApiError> {
    if route.body != BodySize::Upload && !request.body().is_end_stream() {
        read_whole(&gateway.large_bodies, request).await?;
    }
    Ok(())
}

/// Reads a body, which has its limit already, and puts it back.
pub async fn read_whole(large: &Semaphore, request: &mut Request) -> Result<Bytes, ApiError> {
    let mut body = std::mem::take(request.body_mut());
    let (mut read, mut place) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| body_refused(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > SMALL_BYTES && place.is_none() {
            place = Some(large.try_acquire().map_err(|_| overloaded(LARGE_BODY_RETRY))?);
        }
        read.extend_from_slice(&data);
    }
    let bytes = Bytes::from(read);
    *request.body_mut() = Body::from(bytes.clone());
    Ok(bytes)
}

pub fn body_too_large() -> ApiError {
    let sentence = "The body of the request is too large.";
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_measured_as_on_the_wire() {
        let mut headers = HeaderMap::new();
        assert_eq!(header_bytes(&headers), 0);
        headers.append("cookie", "a=b".parse().unwrap());
        headers.append("cookie", "c=d".parse().unwrap());
        assert_eq!(header_bytes(&headers), 2 * "cookie: a=b\r\n".len());
    }

    #[tokio::test]
    async fn few_bodies_may_be_large_at_once() {
        let large = Semaphore::new(1);
        let request = |parts: usize| {
            let parts = (0..parts).map(|_| Ok::<_, std::io::Error>(vec![7; SMALL_BYTES]));
            Request::new(Body::from_stream(futures_util::stream::iter(parts)))
        };
        let read = read_whole(&large, &mut request(3)).await.unwrap();
        assert_eq!(read.len(), 3 * SMALL_BYTES);
        let _held = large.try_acquire().unwrap();
        assert_eq!(read_whole(&large, &mut request(3)).await.unwrap_err().code(), "OVERLOADED");
        assert_eq!(read_whole(&large, &mut request(1)).await.unwrap().len(), SMALL_BYTES);
        assert!(read_whole(&large, &mut request(0)).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_body_is_refused_by_its_announced_length_or_cut_at_the_limit() {
        let post = |body: Body| Request::new(body);
        assert!(limit_body(post(Body::from(vec![0; 11])), 10).await.is_err());
        let fits = limit_body(post(Body::from(vec![0; 10])), 10).await.unwrap();
        assert!(fits.into_body().collect().await.is_ok());
        let silent = futures_util::stream::iter([Ok::<_, std::io::Error>(vec![0; 11])]);
        let silent = limit_body(post(Body::from_stream(silent)), 10).await.unwrap();
        assert!(silent.into_body().collect().await.is_err());
    }
}
