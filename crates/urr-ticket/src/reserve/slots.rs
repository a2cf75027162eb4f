//! Slots of the waiting room: checked before anything is booked, ended after a purchase.
//!
//! Before a booking the queue is asked whether the slot is live that the entry token names.
//! Requests that come while a check of the same event is under way are checked together.
//!
//! Deliberately absent: a cache of answers. A slot that was left, cleared or used is dead from that
//! moment on. If the queue does not answer, nobody books.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use tokio::time::timeout;
use urr_contracts::clients::QueueClient;
use urr_contracts::internal::queue::{CheckSlots, FinishSlot, SlotCheck};
use urr_kernel::{CallContext, Uuid};
use urr_service::ApiError;

use crate::TicketService;
use crate::batcher::Batcher;

/// A purchase is confirmed whether or not the queue has ended the slot: it also gets the event. It
/// usually has before the buyer gets the answer.
const FINISH_AWAITED: Duration = Duration::from_millis(300);

/// When a client should try again while the queue does not answer.
const QUEUE_RETRY_AFTER: Duration = Duration::from_secs(2);

const ENTRY_SLOT: HeaderName = HeaderName::from_static("x-urr-entry-slot");

/// Checks slots. Clones share the batches.
#[derive(Clone)]
pub enum SlotChecker {
    /// Admits everybody whom the gateway admits: for tests of the ticket service alone.
    AllowAll,
    Queue(QueueSlots),
}

/// Slots that the queue service checks.
#[derive(Clone)]
pub struct QueueSlots {
    queue: QueueClient,
    batcher: Batcher<PendingCheck, SlotResult>,
}

type SlotResult = Result<(), SlotError>;

struct PendingCheck {
    check: SlotCheck,
    context: CallContext,
}

/// A slot that a user claims to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotClaim {
    pub event_id: Uuid,
    pub user_id: Uuid,
    /// As the gateway read it from the entry token.
    pub slot_id: Option<Uuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    #[error("the slot is not live")]
    NotLive,
    #[error("the queue does not answer")]
    QueueUnavailable,
}

impl SlotChecker {
    pub fn new(queue: QueueClient) -> SlotChecker {
        let asked = queue.clone();
        let work = move |_, checks: Vec<PendingCheck>| check_together(asked.clone(), checks);
        SlotChecker::Queue(QueueSlots { queue, batcher: Batcher::new(work, |_| {}) })
    }

    /// Whether a user may book now.
    pub async fn check(&self, claim: SlotClaim, context: CallContext) -> Result<(), SlotError> {
        let SlotChecker::Queue(slots) = self else { return Ok(()) };
        let SlotClaim { event_id, user_id, slot_id } = claim;
        let slot_id = slot_id.ok_or(SlotError::NotLive)?;
        let check = PendingCheck { check: SlotCheck { event_id, user_id, slot_id }, context };
        slots.batcher.submit(event_id, check).await.unwrap_or(Err(SlotError::QueueUnavailable))
    }

    /// Ends the slot of a user who has bought. It waits only a moment, so that a slow queue does not
    /// slow down payments; if it fails, the queue learns of the purchase from the event.
    pub async fn finish(&self, purchase: FinishSlot, context: CallContext) {
        let SlotChecker::Queue(slots) = self else { return };
        let queue = slots.queue.clone();
        let finish = tokio::spawn(async move {
            if let Err(error) = queue.call(purchase, &context).await {
                tracing::warn!(%error, "the slot of a buyer was not ended; the event will end it");
            }
        });
        timeout(FINISH_AWAITED, finish).await.ok();
    }
}

/// One call for all checks, in the context of the first one.
async fn check_together(queue: QueueClient, pending: Vec<PendingCheck>) -> Vec<SlotResult> {
    let context = pending.first().expect("a batch is not empty").context;
    let checks: Vec<SlotCheck> = pending.iter().map(|pending| pending.check).collect();
    let count = checks.len();
    match queue.call(CheckSlots { checks }, &context).await.map(|answer| answer.live) {
        Ok(live) if live.len() == count => live
            .into_iter()
            .map(|is_live| is_live.then_some(()).ok_or(SlotError::NotLive))
            .collect(),
        Ok(live) => {
            tracing::error!(checks = count, answers = live.len(), "the queue skips slots");
            vec![Err(SlotError::QueueUnavailable); count]
        }
        Err(error) => {
            tracing::warn!(%error, checks = count, "slots cannot be checked: nobody can book");
            vec![Err(SlotError::QueueUnavailable); count]
        }
    }
}

/// Extractor: the slot that the user's entry token names, as the gateway says.
pub struct EntrySlot(Option<Uuid>);

impl<S: Sync> FromRequestParts<S> for EntrySlot {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<EntrySlot, ApiError> {
        let slot = parts.headers.get(ENTRY_SLOT).and_then(|value| value.to_str().ok());
        Ok(EntrySlot(slot.and_then(|text| text.parse().ok())))
    }
}

impl EntrySlot {
    /// Rejects users without a live slot. Call it after the cheap checks and before any lock.
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
            // The same code as the gateway's, which rejects tokens that it can judge by itself.
            SlotError::NotLive => ApiError::forbidden(
                "ENTRY_TOKEN_INVALID",
                "Your turn is over or was never yours. Please join the queue again.",
            )
            .with("redirectTo", "/queue"),
            SlotError::QueueUnavailable => ApiError::unavailable(
                "QUEUE_UNAVAILABLE",
                "The waiting room does not answer at the moment. Please try again.",
                QUEUE_RETRY_AFTER,
            ),
        }
    }
}
