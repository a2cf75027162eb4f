//! The ticket office, as mails see it: what was booked.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;
use urr_kernel::{CallContext, Uuid};
use urr_service::{CallPolicy, Upstream, UpstreamError};

use crate::domain::facts::Summary;

const DEADLINE: Duration = Duration::from_secs(5);

/// Who knows what was booked.
#[derive(Clone, Debug)]
pub struct Office(Upstream);

#[derive(Deserialize)]
struct Answer {
    reservation: Summary,
}

impl Office {
    pub fn new(upstream: Upstream) -> Office {
        Office(upstream)
    }

    /// None: there is no such reservation.
    pub async fn summary(
        &self,
        reservation_id: Uuid,
        context: &CallContext,
    ) -> Result<Option<Summary>, UpstreamError> {
        let path = format!("/internal/ticket/reservations/{reservation_id}/summary");
        match self.0.get_json(&path, context, CallPolicy::idempotent(DEADLINE)).await {
            Ok(Answer { reservation }) => Ok(Some(reservation)),
            Err(error) if is_unknown(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A path that it does not have is no word about a reservation.
fn is_unknown(error: &UpstreamError) -> bool {
    error.refusal().is_some_and(|refusal| {
        refusal.status == StatusCode::NOT_FOUND && refusal.code == "RESERVATION_NOT_FOUND"
    })
}
