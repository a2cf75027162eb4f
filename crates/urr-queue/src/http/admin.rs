//! What administrators see and change.

mod bodies;
mod log;
mod operators;
mod original;
mod views;

use axum::extract::State;
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Page, Path};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::bodies::{ChangeRoomBody, ClearRoomBody, MessageBody};
use self::views::{ClearedView, RoomAnswer, RoomListView};
use crate::Queue;
use crate::admin::{Actor, AdminError, RoomChange, RoomChangeRejection};

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .routes(routes!(list_rooms))
        .routes(routes!(get_room, change_room))
        .routes(routes!(pause_room))
        .routes(routes!(resume_room))
        .routes(routes!(clear_room))
        .routes(routes!(set_room_message, remove_room_message))
        .merge(log::routes())
        .merge(original::routes())
        .merge(operators::routes())
}

/// The rooms that have anybody in them, are open or will be within a day: those with people first,
/// then by the beginning of their sale.
#[utoipa::path(
    get, path = "/api/admin/queue", tag = "admin", params(Page),
    responses(
        (status = 200, body = RoomListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn list_rooms(
    State(queue): State<QueueService>,
    _admin: Admin,
    page: Page,
) -> Result<Json<RoomListView>, ApiError> {
    Ok(Json(list(&queue, page).await?))
}

async fn list(queue: &QueueService, page: Page) -> Result<RoomListView, ApiError> {
    let (reports, total) = queue.report_rooms(page).await?;
    Ok(RoomListView::new(&reports, &queue.0.settings, total, page))
}

/// A room as it is now.
#[utoipa::path(
    get, path = "/api/admin/queue/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = RoomAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn get_room(
    State(queue): State<QueueService>,
    _admin: Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<RoomAnswer>, ApiError> {
    answer(&queue, event_id).await
}

async fn answer(queue: &QueueService, event_id: Uuid) -> Result<Json<RoomAnswer>, ApiError> {
    let report = queue.report_room(event_id).await?;
    Ok(Json(RoomAnswer::new(&report, &queue.0.settings)))
}

/// Changes how a room is run. What is not named stays; `null` is the default again. It counts at
/// once; every process obeys it within a second.
#[utoipa::path(
    patch, path = "/api/admin/queue/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    request_body = ChangeRoomBody,
    responses(
        (status = 200, body = RoomAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
async fn change_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ChangeRoomBody>,
) -> Result<Json<RoomAnswer>, ApiError> {
    change(&queue, event_id, body.parse()?, Actor::Admin(admin.user_id)).await
}

async fn change(
    queue: &QueueService,
    event_id: Uuid,
    change: RoomChange,
    actor: Actor,
) -> Result<Json<RoomAnswer>, ApiError> {
    queue.change_room(event_id, change, actor).await?;
    answer(queue, event_id).await
}

/// Lets nobody in until it is resumed. Who is in stays in, who waits keeps their place.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/pause", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = RoomAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn pause_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<RoomAnswer>, ApiError> {
    let paused = RoomChange { is_paused: Some(true), ..RoomChange::default() };
    change(&queue, event_id, paused, Actor::Admin(admin.user_id)).await
}

/// Lets people in again.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/resume", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = RoomAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn resume_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<RoomAnswer>, ApiError> {
    let resumed = RoomChange { is_paused: Some(false), ..RoomChange::default() };
    change(&queue, event_id, resumed, Actor::Admin(admin.user_id)).await
}

/// Ends every place and every slot of an event, for good: everybody has to line up again. The body
/// repeats the event's id, so that nobody does it by mistake.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/clear", tag = "admin",
    params(("eventId" = Uuid, Path)), request_body = ClearRoomBody,
    responses(
        (status = 200, body = ClearedView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn clear_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ClearRoomBody>,
) -> Result<Json<ClearedView>, ApiError> {
    clear(&queue, event_id, &body, Actor::Admin(admin.user_id)).await
}

async fn clear(
    queue: &QueueService,
    event_id: Uuid,
    body: &ClearRoomBody,
    actor: Actor,
) -> Result<Json<ClearedView>, ApiError> {
    if !body.confirms(event_id) {
        let crowd = queue.report_room(event_id).await?.crowd;
        return Err(confirmation_required(event_id, crowd.waiting, crowd.active));
    }
    let cleared = queue.clear_room(event_id, actor).await?;
    Ok(Json(ClearedView::new(event_id, cleared)))
}

/// Shows those who wait a line of text.
#[utoipa::path(
    put, path = "/api/admin/queue/{eventId}/message", tag = "admin",
    params(("eventId" = Uuid, Path)), request_body = MessageBody,
    responses(
        (status = 200, body = RoomAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn set_room_message(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
    Json(body): Json<MessageBody>,
) -> Result<Json<RoomAnswer>, ApiError> {
    let said = RoomChange { message: Some(Some(body.parse()?)), ..RoomChange::default() };
    change(&queue, event_id, said, Actor::Admin(admin.user_id)).await
}

/// Takes the line of text away.
#[utoipa::path(
    delete, path = "/api/admin/queue/{eventId}/message", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = RoomAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn remove_room_message(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<RoomAnswer>, ApiError> {
    let silent = RoomChange { message: Some(None), ..RoomChange::default() };
    change(&queue, event_id, silent, Actor::Admin(admin.user_id)).await
}

fn confirmation_required(event_id: Uuid, waiting: u32, active: u32) -> ApiError {
    let sentence = format!(
        "This ends the places of {waiting} who wait and the slots of {active} who are in, for \
         good. Send {{\"confirm\": \"{event_id}\"}} if that is what you want."
    );
    ApiError::bad_request("CONFIRMATION_REQUIRED", sentence)
        .with("waiting", waiting)
        .with("active", active)
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> ApiError {
        match error {
            AdminError::UnknownEvent => {
                ApiError::not_found("EVENT_NOT_FOUND", "There is no such event.")
            }
            AdminError::Room(error) => super::room_error(error),
            AdminError::Storage(error) => error.into(),
            AdminError::Refused(RoomChangeRejection::OpeningFixed) => ApiError::conflict(
                "OPENING_FIXED",
                "People may gather already: whether they are let in by arrival or by lot cannot \
                 be changed any more.",
            ),
            AdminError::Refused(RoomChangeRejection::GatheringFixed) => ApiError::conflict(
                "GATHERING_FIXED",
                "People may gather already: when that begins cannot be changed any more.",
            ),
        }
    }
}
