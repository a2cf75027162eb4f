//! A handler that panics answers 500 like any other failure. The text goes to the log only.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use urr_kernel::panic_text;

use crate::ApiError;

/// The text of a panic, as the source of an error.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
struct Panicked(String);

/// Awaits `work`, or answers for it if it panics.
///
/// It is safe to continue: state that the panic left half-changed is behind poisoned mutexes or in
/// transactions that are rolled back.
pub(crate) fn caught(work: impl Future<Output = Response>) -> impl Future<Output = Response> {
    caught_or(work).map(IntoResponse::into_response)
}

/// The same for work of any kind.
pub(crate) fn caught_or<T>(
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, ApiError>> {
    let caught = AssertUnwindSafe(work).catch_unwind();
    caught.map(|answer| answer.map_err(|p| ApiError::internal(Panicked(panic_text(p.as_ref())))))
}
