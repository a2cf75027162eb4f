//! Whose turn it is, over HTTP: the gateway hands on the slot of the entry token.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use urr_kernel::{CallContext, Uuid};
use urr_service::ApiError;

use crate::TicketService;
use crate::reserve::slots::{SlotClaim, SlotError};

const ENTRY_SLOT: HeaderName = HeaderName::from_static("x-urr-entry-slot");

/// The waiting room may be back by then.
const ROOM_RETRY_AFTER: Duration = Duration::from_secs(2);

/// Extractor: the slot in the waiting room that the user's entry token names.
pub struct EntrySlot(Option<Uuid>);

impl<S: Sync> FromRequestParts<S> for EntrySlot {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<EntrySlot, ApiError> {
        let told = parts.headers.get(ENTRY_SLOT).and_then(|value| value.to_str().ok());
        Ok(EntrySlot(told.and_then(|text| text.parse().ok())))
    }
}

impl EntrySlot {
    /// Lets only those on whose turn it is. To be asked after what costs nothing and before
    /// anything is locked.
    pub async fn check(
        &self,
        ticket: &TicketService,
        event_id: Uuid,
        user_id: Uuid,
        context: CallContext,
    ) -> Result<(), ApiError> {
        let claim = SlotClaim { event_id, user_id, slot_id: self.0 };
        Ok(ticket.slots.check(claim, context).await?)
    }
}

impl From<SlotError> for ApiError {
    fn from(error: SlotError) -> ApiError {
        match error {
            // In the gateway's words: it says so when it can tell by itself.
            SlotError::NotLive => ApiError::forbidden(
                "ENTRY_TOKEN_INVALID",
                "Your turn is over or was never yours. Please join the queue again.",
            )
            .with("redirectTo", "/queue"),
            SlotError::QueueUnavailable => ApiError::unavailable(
                "QUEUE_UNAVAILABLE",
                "The waiting room does not answer at the moment. Please try again.",
                ROOM_RETRY_AFTER,
            ),
        }
    }
}
