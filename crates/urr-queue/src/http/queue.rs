//! A fan and their place.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{ApiError, Context, ErrorBody, Json, Path, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{self, QueueStatusView};
use crate::Queue;
use urr_room::UserStatus;

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .routes(routes!(check_queue))
        .routes(routes!(get_queue_status))
        .routes(routes!(send_queue_heartbeat))
        .routes(routes!(leave_queue))
}

/// Ask for a place.
///
/// You are let in (`active`, with an entry token), or get a place in line (`queued`). Asking again
/// tells where you stand and changes nothing: reloading the page costs nobody their place.
#[utoipa::path(
    post, path = "/api/queue/check/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = QueueStatusView<'static>),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody, description = "`PRESALE_MEMBERS_ONLY`: the pre-sale is \
            not open for you before `opensAt`."),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`"),
        (status = 409, body = ErrorBody, description = "`QUEUE_NOT_OPEN` (with `opensAt`), \
            `SALE_ENDED`, `EVENT_CANCELLED`, or `TOO_MANY_QUEUES`: you wait for as many events as \
            you may."),
        (status = 503, body = ErrorBody, description = "`QUEUE_FULL` or `QUEUE_UNAVAILABLE`, with \
            `Retry-After`."),
    ),
)]
async fn check_queue(
    State(queue): State<QueueService>,
    User(user): User,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let told = queue.check(event_id, user.user_id, &context).await?;
    Ok(answer::full(&queue, user.user_id, &told))
}

/// Where you stand.
///
/// Ask again after `nextPoll` seconds, with the entity tag that you have: 304 means that nothing but
/// the number of others is new. It keeps your place: who is not seen for ten minutes loses it.
#[utoipa::path(
    get, path = "/api/queue/status/{eventId}", tag = "queue",
    params(
        ("eventId" = Uuid, Path),
        ("If-None-Match" = Option<String>, Header, description = "The entity tag that you have."),
    ),
    responses(
        (status = 200, body = QueueStatusView<'static>, headers(("etag" = String))),
        (status = 304, description = "Nothing is new."),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`"),
        (status = 503, body = ErrorBody, description = "`QUEUE_UNAVAILABLE`, with `Retry-After`."),
    ),
)]
async fn get_queue_status(
    State(queue): State<QueueService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let told = queue.look(event_id, user.user_id).await?;
    Ok(answer::polled(&queue, user.user_id, &told, &headers))
}

/// Whether someone is in line or in.
#[derive(Debug, Serialize, ToSchema)]
struct HeartbeatView {
    /// `queued`, `active` or `not_in_queue`.
    #[schema(example = "queued")]
    status: &'static str,
    queued: bool,
}

/// Say that you are still there.
#[utoipa::path(
    post, path = "/api/queue/heartbeat/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = HeartbeatView),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`"),
        (status = 503, body = ErrorBody, description = "`QUEUE_UNAVAILABLE`, with `Retry-After`."),
    ),
)]
async fn send_queue_heartbeat(
    State(queue): State<QueueService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
) -> Result<Json<HeartbeatView>, ApiError> {
    let (status, queued) = match queue.heartbeat(event_id, user.user_id).await? {
        UserStatus::Waiting(_) => ("queued", true),
        UserStatus::Active(_) => ("active", false),
        UserStatus::Absent => ("not_in_queue", false),
    };
    Ok(Json(HeartbeatView { status, queued }))
}

/// How leaving went.
#[derive(Debug, Serialize, ToSchema)]
struct LeaveView {
    message: &'static str,
    /// Whether you had a place or a turn.
    left: bool,
}

/// Give your place or your turn away.
///
/// Your entry token is worth nothing from now on.
#[utoipa::path(
    post, path = "/api/queue/leave/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = LeaveView),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`"),
        (status = 503, body = ErrorBody, description = "`QUEUE_UNAVAILABLE`, with `Retry-After`."),
    ),
)]
async fn leave_queue(
    State(queue): State<QueueService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
) -> Result<Json<LeaveView>, ApiError> {
    let left = queue.leave(event_id, user.user_id).await?;
    Ok(Json(LeaveView { message: "Left queue", left }))
}
