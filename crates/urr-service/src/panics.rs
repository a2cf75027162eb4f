//! A handler that panics answers 500 like any other failure; the text stays in our log.

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
/// State that the panic left half-changed is behind mutexes, which tell by poisoning, or in
/// transactions, which are rolled back: it is safe to go on serving.
pub(crate) fn caught(work: impl Future<Output = Response>) -> impl Future<Output = Response> {
    AssertUnwindSafe(work).catch_unwind().map(|answer| match answer {
        Ok(response) => response,
        Err(panic) => ApiError::internal(Panicked(panic_text(panic.as_ref()))).into_response(),
    })
}
