//! The waiting rooms over HTTP.

mod admin;
mod answer;
mod crowd;
mod draw;
mod fans;
mod internal;
mod mine;
mod reminders;
mod stream;

use std::time::Duration;

pub use answer::{ViewDetail, fingerprint, render};
pub use crowd::Document;
use urr_kernel::Timestamp;
use urr_service::ApiError;
use utoipa_axum::router::OpenApiRouter;

use crate::status::QueueError;
use crate::{JoinRejection, QueueService};
use urr_room::RoomError;

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .merge(fans::routes())
        .merge(mine::routes())
        .merge(reminders::routes())
        .merge(crowd::routes())
        .merge(stream::routes())
        .merge(draw::routes())
        .merge(internal::routes())
        .merge(admin::routes())
}

/// Those who find a room full come back when some have gone.
const FULL_AGAIN_AFTER: Duration = Duration::from_secs(30);
const UNAVAILABLE_AGAIN_AFTER: Duration = Duration::from_secs(2);

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> ApiError {
        match error {
            QueueError::JoinRejection(error) => error.into(),
            QueueError::Room(error) => room_error(error),
            QueueError::TierLookupError(error) => unavailable().caused_by(error),
        }
    }
}

fn room_error(error: RoomError) -> ApiError {
    match error {
        RoomError::Full => {
            let sentence = "As many wait as we can hold a place for. Please try again later.";
            ApiError::unavailable("QUEUE_FULL", sentence, FULL_AGAIN_AFTER)
        }
        RoomError::TooManyQueues => ApiError::conflict(
            "TOO_MANY_QUEUES",
            "You wait for as many events as you may. Please leave one of the lines first.",
        ),
        RoomError::Unavailable => unavailable().caused_by(error),
    }
}

impl From<JoinRejection> for ApiError {
    fn from(error: JoinRejection) -> ApiError {
        let time = |time: Timestamp| time.to_string();
        match error {
            JoinRejection::UnknownEvent => {
                ApiError::not_found("EVENT_NOT_FOUND", "There is no event with this id on sale.")
            }
            JoinRejection::Cancelled => {
                ApiError::conflict("EVENT_CANCELLED", "This event was cancelled.")
            }
            JoinRejection::SaleEnded => ApiError::conflict("SALE_ENDED", "The sale is over."),
            JoinRejection::NotOpen { gathers_at } => {
                ApiError::conflict("QUEUE_NOT_OPEN", "The waiting room is not open yet.")
                    .with("opensAt", time(gathers_at))
            }
            JoinRejection::MembersOnly { opens_at } => ApiError::forbidden(
                "PRESALE_MEMBERS_ONLY",
                "At the moment only members of a higher tier may come.",
            )
            .with("opensAt", time(opens_at)),
        }
    }
}

fn unavailable() -> ApiError {
    let sentence = "The waiting room does not answer. Your place is kept; please try again.";
    ApiError::unavailable("QUEUE_UNAVAILABLE", sentence, UNAVAILABLE_AGAIN_AFTER)
}
