//! A place as a stream.

use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use urr_kernel::Uuid;
use urr_service::{ApiError, ErrorBody, Path, Query, User};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::poll;
use crate::status::{QueueStatus, has_ended};
use crate::stream::{FIRST_IN_LINE, StreamStart, StreamLimit, places};
use crate::{JoinRejection, RoomPhase, QueueService};
use urr_room::UserStatus;

/// A sign of life on a stream without news: shorter than any time-out on the way.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(follow_queue_place))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamQuery {
    /// `true`: also from far behind, as long as such streams are not half of those that may be.
    anyway: Option<bool>,
}

/// Your place as it changes.
///
/// Server-sent events named `place`; the `data` of each is what the status answers. For those who
/// are in and the first 1,000 in line; others ask for it with `anyway=true`. It keeps your place.
/// It ends after some minutes, and when you have no place any more; come back after that.
#[utoipa::path(
    get, path = "/api/queue/stream/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path), StreamQuery),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`"),
        (status = 409, body = ErrorBody, description = "`STREAM_NOT_YET`: you are not among the \
            first; ask for your status after `nextPoll` seconds. `NOT_IN_QUEUE`: you have no place. \
            `SALE_ENDED`, `EVENT_CANCELLED`."),
        (status = 429, body = ErrorBody, description = "`STREAM_LIMIT`: you follow as many \
            streams as you may."),
        (status = 503, body = ErrorBody, description = "`TOO_MANY_STREAMS`: too many follow \
            already; ask for your status now and then. Or `QUEUE_UNAVAILABLE`."),
    ),
)]
async fn follow_queue_place(
    State(queue): State<QueueService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
    Query(query): Query<StreamQuery>,
) -> Result<Response, ApiError> {
    let told = queue.look(event_id, user.user_id).await?;
    let from = start(&told, query.anyway == Some(true))?;
    let events = places(&queue, user.user_id, told, from)?;
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

/// Whether someone is near enough to the front to follow, or asks for it.
fn start(told: &QueueStatus, anyway: bool) -> Result<StreamStart, ApiError> {
    if has_ended(told.phase) {
        return Err(match told.phase {
            RoomPhase::Cancelled => JoinRejection::Cancelled.into(),
            RoomPhase::Deleted => JoinRejection::UnknownEvent.into(),
            _ => JoinRejection::SaleEnded.into(),
        });
    }
    let position = match told.seen.status {
        UserStatus::Active(_) => return Ok(StreamStart::Front),
        UserStatus::Absent => {
            let sentence = "You have no place in this line. Please ask for one first.";
            return Err(ApiError::conflict("NOT_IN_QUEUE", sentence));
        }
        // Before a draw nobody is among the first.
        UserStatus::Waiting(_) if told.is_before_draw() => told.seen.waiting.max(FIRST_IN_LINE + 1),
        UserStatus::Waiting(place) => place.position,
    };
    if position <= FIRST_IN_LINE {
        return Ok(StreamStart::Front);
    }
    if anyway {
        return Ok(StreamStart::Behind);
    }
    let sentence =
        "You can follow your place when you are among the first. Please poll until then.";
    let next_poll = poll::pause_at(position).as_secs();
    Err(ApiError::conflict("STREAM_NOT_YET", sentence).with("nextPoll", next_poll))
}

impl From<StreamLimit> for ApiError {
    fn from(error: StreamLimit) -> ApiError {
        let again = Duration::from_secs(30);
        match error {
            StreamLimit::OfAll => {
                let sentence = "Too many follow their place already. Please poll instead.";
                ApiError::unavailable("TOO_MANY_STREAMS", sentence, again)
            }
            StreamLimit::OfUser => {
                let sentence = "You follow too many places at a time. Please close one of them.";
                ApiError::too_many("STREAM_LIMIT", sentence, again)
            }
        }
    }
}
