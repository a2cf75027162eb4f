//! The routes of administrators.

mod bodies;
pub(super) mod operator;
mod queue_paths;
mod views;

use axum::extract::{FromRef, State};
use urr_kernel::Uuid;
use urr_service::admin_log::{self, AdminLogRoute};
use urr_service::{Admin, ApiError, Errors, Json, Page, Path};
use urr_storage::Db;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::bodies::{ChangeRoomBody, ClearRoomBody, MessageBody};
use self::views::{ClearedView, RoomListView, SingleRoomView};
use super::AdminErrors;
use crate::QueueService;
use crate::admin::{AdminError, RoomActor, RoomChange, RoomChangeRejection};

const LOG: AdminLogRoute = AdminLogRoute {
    path: "/api/admin/queue/log",
    operation_id: "list_queue_admin_actions",
    tag: "admin",
};

impl FromRef<QueueService> for Db {
    fn from_ref(queue: &QueueService) -> Db {
        queue.0.db.clone()
    }
}

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .routes(routes!(list_rooms))
        .routes(routes!(get_room, change_room))
        .routes(routes!(pause_room))
        .routes(routes!(resume_room))
        .routes(routes!(clear_room))
        .routes(routes!(set_room_message, remove_room_message))
        .merge(queue_paths::routes())
        .merge(admin_log::routes(LOG))
}

/// Lists the rooms that have users, or open within a day.
///
/// For administrators. Rooms with users come first, then by sale start. Errors: 503
/// `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/queue", tag = "admin", params(Page),
    responses((status = 200, body = RoomListView), Errors<401, 403>),
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

/// Returns the state and settings of a room.
///
/// For administrators. Each setting has its `value` and its `source` (`event` or `default`).
/// Errors: 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/queue/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn get_room(
    State(queue): State<QueueService>,
    _admin: Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<SingleRoomView>, ApiError> {
    show(&queue, event_id).await
}

async fn show(queue: &QueueService, event_id: Uuid) -> Result<Json<SingleRoomView>, ApiError> {
    let report = queue.report_room(event_id).await?;
    Ok(Json(SingleRoomView::new(&report, &queue.0.settings)))
}

/// Changes the settings of a room.
///
/// For administrators. Fields that are not sent stay; `null` resets to the default. It applies at
/// once, in all processes within a second. A lower threshold removes nobody. `opening` and
/// `gatheringSeconds` are fixed from five seconds before users may come, and while anybody waits.
///
/// Errors: 400 `INVALID_THRESHOLD`, `INVALID_RATE`, `INVALID_GATHERING`, `INVALID_MESSAGE`; 404
/// `EVENT_NOT_FOUND`; 409 `OPENING_FIXED`, `GATHERING_FIXED`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    patch, path = "/api/admin/queue/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    request_body = ChangeRoomBody,
    responses((status = 200, body = SingleRoomView), AdminErrors, Errors<409>),
)]
async fn change_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ChangeRoomBody>,
) -> Result<Json<SingleRoomView>, ApiError> {
    change(&queue, event_id, body.parse()?, RoomActor::Admin(admin.user_id)).await
}

async fn change(
    queue: &QueueService,
    event_id: Uuid,
    change: RoomChange,
    actor: RoomActor,
) -> Result<Json<SingleRoomView>, ApiError> {
    queue.change_room(event_id, change, actor).await?;
    show(queue, event_id).await
}

/// Stops admissions until the room is resumed.
///
/// For administrators. Slots and positions are kept. Errors: 404 `EVENT_NOT_FOUND`; 503
/// `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/pause", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn pause_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<SingleRoomView>, ApiError> {
    let paused = RoomChange { is_paused: Some(true), ..RoomChange::default() };
    change(&queue, event_id, paused, RoomActor::Admin(admin.user_id)).await
}

/// Resumes admissions.
///
/// For administrators. Errors: 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/resume", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn resume_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<SingleRoomView>, ApiError> {
    let resumed = RoomChange { is_paused: Some(false), ..RoomChange::default() };
    change(&queue, event_id, resumed, RoomActor::Admin(admin.user_id)).await
}

/// Removes all users from a room.
///
/// For administrators. Ends every position and every slot for good. `confirm` repeats the event's
/// id. Errors: 400 `CONFIRMATION_REQUIRED` (with `waiting` and `active`); 404 `EVENT_NOT_FOUND`;
/// 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/clear", tag = "admin",
    params(("eventId" = Uuid, Path)), request_body = ClearRoomBody,
    responses((status = 200, body = ClearedView), AdminErrors),
)]
async fn clear_room(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ClearRoomBody>,
) -> Result<Json<ClearedView>, ApiError> {
    clear(&queue, event_id, body.confirms(event_id), RoomActor::Admin(admin.user_id)).await
}

async fn clear(
    queue: &QueueService,
    event_id: Uuid,
    is_confirmed: bool,
    actor: RoomActor,
) -> Result<Json<ClearedView>, ApiError> {
    if !is_confirmed {
        let crowd = queue.report_room(event_id).await?.crowd;
        return Err(confirmation_required(event_id, crowd.waiting, crowd.active));
    }
    let cleared = queue.clear_room(event_id, actor).await?;
    Ok(Json(ClearedView::new(event_id, cleared)))
}

/// Shows a message to the users who wait.
///
/// For administrators. Errors: 400 `INVALID_MESSAGE` (one line of 1 to 500 characters); 404
/// `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    put, path = "/api/admin/queue/{eventId}/message", tag = "admin",
    params(("eventId" = Uuid, Path)), request_body = MessageBody,
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn set_room_message(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
    Json(body): Json<MessageBody>,
) -> Result<Json<SingleRoomView>, ApiError> {
    let message = RoomChange { message: Some(Some(body.parse()?)), ..RoomChange::default() };
    change(&queue, event_id, message, RoomActor::Admin(admin.user_id)).await
}

/// Removes the message to the users who wait.
///
/// For administrators. Errors: 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    delete, path = "/api/admin/queue/{eventId}/message", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn remove_room_message(
    State(queue): State<QueueService>,
    Admin(admin): Admin,
    Path(event_id): Path<Uuid>,
) -> Result<Json<SingleRoomView>, ApiError> {
    let silent = RoomChange { message: Some(None), ..RoomChange::default() };
    change(&queue, event_id, silent, RoomActor::Admin(admin.user_id)).await
}

fn confirmation_required(event_id: Uuid, waiting: u32, active: u32) -> ApiError {
    let sentence = format!(
        "This ends the positions of {waiting} users and the slots of {active} users for good. \
         Send {{\"confirm\": \"{event_id}\"}} if that is what you want."
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
                "Users may join already, so the opening order cannot be changed any more.",
            ),
            AdminError::Refused(RoomChangeRejection::GatheringFixed) => ApiError::conflict(
                "GATHERING_FIXED",
                "Users may join already, so the start of the gathering cannot be changed any more.",
            ),
        }
    }
}
