//! A body larger than the service takes is refused, whether it announces its size or not.

use axum::body::Body;
use axum::extract::Request;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;

use crate::ApiError;
use crate::extract::too_large;

/// How much of a refused body is read and thrown away, as a multiple of the limit. A client that
/// is still sending when the connection closes sees a reset instead of the answer.
const DRAINED_MAX: usize = 4;

/// The request with a body that cannot grow beyond `bytes_max`.
pub(crate) async fn limit_body(bytes_max: usize, request: Request) -> Result<Request, ApiError> {
    if request.body().is_end_stream() {
        return Ok(request);
    }
    let announced = request.body().size_hint().lower();
    if announced > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        drain(request.into_body(), bytes_max.saturating_mul(DRAINED_MAX)).await;
        return Err(too_large());
    }
    Ok(request.map(|body| Body::new(Limited::new(body, bytes_max))))
}

async fn drain(body: Body, bytes_max: usize) {
    let mut body = Limited::new(body, bytes_max);
    while let Some(Ok(_)) = body.frame().await {}
}

/// Whether reading a body failed because it was larger than a limit.
pub(crate) fn is_limit(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<LengthLimitError>() {
            return true;
        }
        next = error.source();
    }
    false
}
