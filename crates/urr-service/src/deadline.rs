//! Deadlines: the caller says how long it will wait, and the service stops working after that.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tokio::time::Instant;

use crate::ApiError;
use crate::context::CallMetadata;

pub(crate) const DEADLINE_MS: HeaderName = HeaderName::from_static("x-urr-deadline-ms");

/// Extractor: the time after which nobody waits for the answer to this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(pub Instant);

impl Deadline {
    pub fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    /// How long is left; zero if it has passed.
    pub fn remaining(self) -> Duration {
        self.remaining_at(Instant::now())
    }

    /// The same for a caller that has just looked at the clock.
    pub(crate) fn remaining_at(self, now: Instant) -> Duration {
        self.0.saturating_duration_since(now)
    }

    /// Tells the next service how long is left.
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        let millis = u64::try_from(self.remaining().as_millis()).unwrap_or(u64::MAX);
        headers.insert(DEADLINE_MS, HeaderValue::from(millis));
    }
}

/// How long the work on a request may take. The caller can only shorten the time that the service
/// gives itself.
pub(crate) fn time_allowed(longest: Duration, now: Instant, request: &mut Request) -> Duration {
    if let Some(call) = request.extensions().get::<CallMetadata>() {
        return call.deadline.remaining_at(now).min(longest);
    }
    let told = request.headers_mut().remove(DEADLINE_MS);
    let told: Option<u64> = told.and_then(|millis| millis.to_str().ok()?.parse().ok());
    told.map_or(longest, |millis| Duration::from_millis(millis).min(longest))
}

/// Ends work whose time runs out.
pub(crate) fn keep_deadline(
    deadline: Deadline,
    work: impl Future<Output = Result<Response, Infallible>>,
) -> impl Future<Output = Response> {
    tokio::time::timeout_at(deadline.0, work).map(|answer| match answer {
        Ok(Ok(response)) => response,
        Err(_) => exceeded().into_response(),
    })
}

pub(crate) fn exceeded() -> ApiError {
    ApiError::timeout("DEADLINE_EXCEEDED", "The answer took too long. Please try again.")
}

impl<S: Sync> FromRequestParts<S> for Deadline {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Deadline, ApiError> {
        let call = parts.extensions.get::<CallMetadata>();
        call.map(|call| call.deadline).ok_or_else(|| ApiError::internal("no deadline layer"))
    }
}
