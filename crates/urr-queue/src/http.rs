//! The waiting rooms over HTTP.

mod admin;
mod crowd;
mod draw;
pub(crate) mod internal;
mod live;
mod queue;
mod status_view;
mod stream;

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
pub use crowd::CrowdDocument;
pub use live::live_message;
pub use stream::{PER_USER_MAX, Streams};
use urr_kernel::{Timestamp, Uuid};
use urr_room::RoomError;
use urr_service::{ApiError, Errors, Path, User};
use utoipa_axum::router::OpenApiRouter;

use crate::status::QueueError;
use crate::{JoinRejection, QueueService};

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .merge(queue::routes())
        .merge(crowd::routes())
        .merge(stream::routes())
        .merge(live::routes())
        .merge(draw::routes())
        .merge(admin::routes())
}

const FULL_RETRY_AFTER: Duration = Duration::from_secs(30);
const UNAVAILABLE_RETRY_AFTER: Duration = Duration::from_secs(2);
const NOT_READY_RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> ApiError {
        match error {
            QueueError::Rejected(error) => error.into(),
            QueueError::Room(error) => room_error(error),
            QueueError::RoomNotReady => room_not_ready(),
            QueueError::TierUnknown(error) => unavailable().caused_by(error),
        }
    }
}

fn room_error(error: RoomError) -> ApiError {
    match error {
        RoomError::Full => {
            let sentence = "The waiting room is full. Please try again later.";
            ApiError::unavailable("QUEUE_FULL", sentence, FULL_RETRY_AFTER)
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
            JoinRejection::UnknownEvent => event_not_found(),
            JoinRejection::Cancelled => {
                ApiError::conflict("EVENT_CANCELLED", "This event was cancelled.")
            }
            JoinRejection::SaleEnded => ApiError::conflict("SALE_ENDED", "The sale has ended."),
            JoinRejection::NotOpen { gathers_at } => {
                ApiError::conflict("SALE_NOT_OPEN", "The waiting room is not open yet.")
                    .with("opensAt", time(gathers_at))
            }
            JoinRejection::MembersOnly { opens_at } => ApiError::forbidden(
                "PRESALE_MEMBERS_ONLY",
                "At the moment only members of a higher tier may join.",
            )
            .with("opensAt", time(opens_at)),
        }
    }
}

fn event_not_found() -> ApiError {
    ApiError::not_found("EVENT_NOT_FOUND", "There is no event with this id on sale.")
}

fn room_not_ready() -> ApiError {
    let sentence = "The waiting room of this event is being prepared. Please try again.";
    ApiError::conflict("ROOM_NOT_READY", sentence).retry_after(NOT_READY_RETRY_AFTER)
}

fn unavailable() -> ApiError {
    let sentence = "The waiting room does not answer. Your position is kept; please try again.";
    ApiError::unavailable("QUEUE_UNAVAILABLE", sentence, UNAVAILABLE_RETRY_AFTER)
}

/// The refusals of every operation of a user on a room.
type QueueErrors = Errors<401, 404, 409>;

/// A user and the event whose room the request is about.
struct OwnQueue {
    queue: QueueService,
    user_id: Uuid,
    event_id: Uuid,
}

impl FromRequestParts<QueueService> for OwnQueue {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        queue: &QueueService,
    ) -> Result<OwnQueue, ApiError> {
        let User(user) = User::from_request_parts(parts, queue).await?;
        let Path(event_id) = Path::from_request_parts(parts, queue).await?;
        Ok(OwnQueue { queue: queue.clone(), user_id: user.user_id, event_id })
    }
}

/// The refusals of every operation on a room by an administrator.
type AdminErrors = Errors<401, 403, 404>;
