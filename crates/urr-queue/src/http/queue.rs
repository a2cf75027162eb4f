//! The routes of users: join a line, poll, leave, and be reminded.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_room::UserStatus;
use urr_service::{ApiError, Context, Errors, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::status_view::{self, QueueStatusView};
use super::{OwnQueue, QueueErrors};
use crate::reminders::ReminderError;
use crate::{QueueService, QueueStatus};

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .routes(routes!(check_queue))
        .routes(routes!(get_queue_status))
        .routes(routes!(send_queue_heartbeat))
        .routes(routes!(leave_queue))
        .routes(routes!(list_own_queues))
        .routes(routes!(ask_queue_reminder, withdraw_queue_reminder))
}

/// Joins the line of an event, or enters at once if there is room.
///
/// The user becomes `active` with an entry token, or `queued` with a position. Repeating it reports
/// the position and changes nothing. Poll `GET /api/queue/status/{eventId}` afterwards. A user who
/// is not seen for ten minutes loses the position.
///
/// Errors: 403 `PRESALE_MEMBERS_ONLY` (with `opensAt`); 404 `EVENT_NOT_FOUND`; 409 `SALE_NOT_OPEN`
/// (with `opensAt`), `SALE_ENDED`, `EVENT_CANCELLED`, `TOO_MANY_QUEUES` (three lines at once),
/// `ROOM_NOT_READY` (the event is new: retry); 503 `QUEUE_FULL`, `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/queue/check/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = QueueStatusView<'static>), QueueErrors, Errors<403>),
)]
async fn check_queue(own: OwnQueue, Context(context): Context) -> Result<Response, ApiError> {
    let status = own.queue.check(own.event_id, own.user_id, &context).await?;
    Ok(status_view::checked(&own.queue, own.user_id, &status))
}

/// Returns the user's position, or the entry token if admitted.
///
/// Poll after `nextPoll` seconds with the `ETag` as `If-None-Match`: 304 means that nothing changed
/// but the number of others. Polling keeps the position. It does not join the line. An `active`
/// user gets `entryToken` for the header `X-Queue-Entry-Token` and books until the slot ends: ten
/// minutes after the user was last seen, thirty at most.
///
/// Errors: 404 `EVENT_NOT_FOUND`; 409 `ROOM_NOT_READY`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/queue/status/{eventId}", tag = "queue",
    params(
        ("eventId" = Uuid, Path),
        ("If-None-Match" = Option<String>, Header, description = "The entity tag of the last answer."),
    ),
    responses(
        (status = 200, body = QueueStatusView<'static>, headers(("etag" = String))),
        (status = 304, description = "Nothing has changed."),
        QueueErrors,
    ),
)]
async fn get_queue_status(own: OwnQueue, headers: HeaderMap) -> Result<Response, ApiError> {
    let status = own.queue.poll(own.event_id, own.user_id).await?;
    Ok(status_view::polled(&own.queue, own.user_id, &status, &headers))
}

/// Whether the user waits or has a slot.
#[derive(Debug, Serialize, ToSchema)]
struct HeartbeatView {
    /// `queued`, `active` or `not_in_queue`.
    #[schema(example = "queued")]
    status: &'static str,
    queued: bool,
}

/// Keeps the user's position or slot.
///
/// Returns only the status. Polling and streaming do the same. Errors: 404 `EVENT_NOT_FOUND`; 409
/// `ROOM_NOT_READY`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/queue/heartbeat/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = HeartbeatView), QueueErrors),
)]
async fn send_queue_heartbeat(own: OwnQueue) -> Result<Json<HeartbeatView>, ApiError> {
    let (status, queued) = match own.queue.heartbeat(own.event_id, own.user_id).await? {
        UserStatus::Waiting(_) => ("queued", true),
        UserStatus::Active(_) => ("active", false),
        UserStatus::Absent => ("not_in_queue", false),
    };
    Ok(Json(HeartbeatView { status, queued }))
}

#[derive(Debug, Serialize, ToSchema)]
struct LeaveView {
    message: &'static str,
    /// Whether you had a position or a slot.
    left: bool,
}

/// Leaves the line, or gives up the slot.
///
/// The entry token is not valid any more. `left` is false if there was nothing to leave. Errors:
/// 404 `EVENT_NOT_FOUND`; 409 `ROOM_NOT_READY`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/queue/leave/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = LeaveView), QueueErrors),
)]
async fn leave_queue(own: OwnQueue) -> Result<Json<LeaveView>, ApiError> {
    let left = own.queue.leave(own.event_id, own.user_id).await?;
    Ok(Json(LeaveView { message: "Left queue", left }))
}

/// A line in which you wait, or an event that you may book.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OwnQueueView {
    event_id: Uuid,
    title: String,
    /// `queued` or `active`.
    #[schema(example = "queued")]
    status: &'static str,
    /// The first in line has 1. Null before a draw, and with a slot.
    position: Option<u32>,
}

/// Lists the lines that the user waits in, and the events that the user may book.
///
/// It reads many rooms, so do not poll it. Errors: 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/queue/mine", tag = "queue",
    responses((status = 200, body = Vec<OwnQueueView>), Errors<401>),
)]
async fn list_own_queues(
    State(queue): State<QueueService>,
    User(user): User,
) -> Result<Json<Vec<OwnQueueView>>, ApiError> {
    let statuses = queue.list_statuses(user.user_id).await?;
    Ok(Json(statuses.iter().filter_map(own_queue).collect()))
}

fn own_queue(own: &QueueStatus) -> Option<OwnQueueView> {
    let (status, position) = match own.snapshot.status {
        UserStatus::Absent => return None,
        UserStatus::Active(_) => ("active", None),
        UserStatus::Waiting(_) if own.context.is_before_draw() => ("queued", None),
        UserStatus::Waiting(line) => ("queued", Some(line.position)),
    };
    let event = &own.context.event;
    Some(OwnQueueView { event_id: event.event_id, title: event.title.clone(), status, position })
}

impl From<ReminderError> for ApiError {
    fn from(error: ReminderError) -> ApiError {
        match error {
            ReminderError::NotWaiting => ApiError::conflict(
                "NOT_WAITING",
                "You do not wait for this event, so there is no admission to remind you of.",
            ),
            ReminderError::Queue(error) => error.into(),
            ReminderError::Storage(error) => error.into(),
        }
    }
}

/// Asks for a mail when the user's admission is near.
///
/// One mail is sent when it is about three minutes away, or when the user is among the next in
/// line. Repeating it changes nothing. It does not keep the position. Errors: 404
/// `EVENT_NOT_FOUND`; 409 `NOT_WAITING` (no position, or a slot already), `ROOM_NOT_READY`; 503
/// `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/queue/{eventId}/reminder", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses((status = 204, description = "You will be reminded."), QueueErrors),
)]
async fn ask_queue_reminder(own: OwnQueue) -> Result<StatusCode, ApiError> {
    own.queue.ask_reminder(own.event_id, own.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Withdraws the reminder.
///
/// Repeating it changes nothing.
#[utoipa::path(
    delete, path = "/api/queue/{eventId}/reminder", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses((status = 204, description = "You will not be reminded."), Errors<401>),
)]
async fn withdraw_queue_reminder(own: OwnQueue) -> Result<StatusCode, ApiError> {
    own.queue.withdraw_reminder(own.event_id, own.user_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
