//! The limit on request bodies, for those that announce their size and those that do not.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use urr_kernel::causes;

use crate::ApiError;
use crate::extract::too_large;

/// How much of a refused body is read and thrown away, as a multiple of the limit. A client that
/// is still sending when the connection closes sees a reset instead of the answer.
const DRAINED_MAX: usize = 4;

/// A request that the layer refused, and the rest of its body.
pub(crate) struct RefusedRequest {
    error: ApiError,
    rest: Option<Box<Limited<Body>>>,
}

impl From<ApiError> for RefusedRequest {
    fn from(error: ApiError) -> RefusedRequest {
        RefusedRequest { error, rest: None }
    }
}

impl RefusedRequest {
    pub async fn answer(self) -> Result<Response, Infallible> {
        if let Some(mut rest) = self.rest {
            while let Some(Ok(_)) = rest.frame().await {}
        }
        Ok(self.error.into_response())
    }
}

/// Gives the request a body that cannot grow beyond `bytes_max`.
pub(crate) fn limit_body(bytes_max: usize, request: &mut Request) -> Result<(), RefusedRequest> {
    if request.body().is_end_stream() {
        return Ok(());
    }
    let announced = request.body().size_hint().lower();
    if announced > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        let body = std::mem::take(request.body_mut());
        let rest = Limited::new(body, bytes_max.saturating_mul(DRAINED_MAX));
        return Err(RefusedRequest { error: too_large(), rest: Some(Box::new(rest)) });
    }
    // A body of known size, as all calls inside the process have, cannot grow.
    if request.body().size_hint().exact().is_none() {
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(Limited::new(body, bytes_max));
    }
    // axum's own extractors have another default limit.
    DefaultBodyLimit::disable().apply(request);
    Ok(())
}

/// Whether reading a body failed because it was larger than a limit.
pub(crate) fn is_limit(error: &(dyn std::error::Error + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<LengthLimitError>())
}
