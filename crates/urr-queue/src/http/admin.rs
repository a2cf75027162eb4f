//! The routes of administrators, and of organisers for their own events.

mod bodies;
pub(super) mod operator;
mod queue_paths;
mod views;

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::request::Parts;
use urr_kernel::Uuid;
use urr_service::admin_log::{self, AdminLogRoute, AdminLogView};
use urr_service::{
    ApiError, Errors, EventReader, EventScope, Json, Organiser, Page, Path, UserRole,
};
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
        .routes(routes!(list_room_actions))
        .routes(routes!(pause_room))
        .routes(routes!(resume_room))
        .routes(routes!(clear_room))
        .routes(routes!(set_room_message, remove_room_message))
        .merge(queue_paths::routes())
        .merge(admin_log::routes(LOG))
}

/// The administrator or organiser of a request.
impl FromRequestParts<QueueService> for RoomActor {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        queue: &QueueService,
    ) -> Result<RoomActor, ApiError> {
        let Organiser(identity) = Organiser::from_request_parts(parts, queue).await?;
        Ok(match identity.role {
            UserRole::Admin => RoomActor::Admin(identity.user_id),
            _ => RoomActor::Organiser(identity.user_id),
        })
    }
}

/// A room and who administers it.
struct RoomAdmin {
    queue: QueueService,
    event_id: Uuid,
    actor: RoomActor,
}

type RoomResult = Result<Json<SingleRoomView>, ApiError>;

impl FromRequestParts<QueueService> for RoomAdmin {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        queue: &QueueService,
    ) -> Result<RoomAdmin, ApiError> {
        let actor = RoomActor::from_request_parts(parts, queue).await?;
        let Path(event_id) = Path::from_request_parts(parts, queue).await?;
        Ok(RoomAdmin { queue: queue.clone(), event_id, actor })
    }
}

impl RoomAdmin {
    async fn show(&self) -> RoomResult {
        let report = self.queue.report_room(self.event_id, self.actor.scope()).await?;
        Ok(Json(SingleRoomView::new(&report, &self.queue.0.settings)))
    }

    async fn change(&self, change: RoomChange) -> RoomResult {
        self.queue.change_room(self.event_id, change, self.actor).await?;
        self.show().await
    }

    async fn clear(&self, is_confirmed: bool) -> Result<Json<ClearedView>, ApiError> {
        let event_id = self.event_id;
        if !is_confirmed {
            let crowd = self.queue.report_room(event_id, self.actor.scope()).await?.crowd;
            return Err(confirmation_required(event_id, crowd.waiting, crowd.active));
        }
        let cleared = self.queue.clear_room(event_id, self.actor).await?;
        Ok(Json(ClearedView::new(event_id, cleared)))
    }
}

/// Lists the rooms that have users, or open within a day.
///
/// For organisers (their own), support and administrators (all). Rooms with users come first, then by sale start. Errors: 503
/// `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/queue", tag = "admin", params(Page),
    responses((status = 200, body = RoomListView), Errors<401, 403>),
)]
async fn list_rooms(
    State(queue): State<QueueService>,
    EventReader(reader): EventReader,
    page: Page,
) -> Result<Json<RoomListView>, ApiError> {
    list(&queue, reader.event_scope(), page).await.map(Json)
}

async fn list(
    queue: &QueueService,
    scope: EventScope,
    page: Page,
) -> Result<RoomListView, ApiError> {
    let (reports, total) = queue.report_rooms(scope, page).await?;
    Ok(RoomListView::new(&reports, &queue.0.settings, total, page))
}

/// Returns the state and settings of a room.
///
/// For the event's organiser, support and administrators. Each setting has its `value` and its
/// `source` (`event` or `default`). Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/queue/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn get_room(
    State(queue): State<QueueService>,
    EventReader(reader): EventReader,
    Path(event_id): Path<Uuid>,
) -> RoomResult {
    let report = queue.report_room(event_id, reader.event_scope()).await?;
    Ok(Json(SingleRoomView::new(&report, &queue.0.settings)))
}

/// Lists what was done to a room, newest first.
///
/// For the event's organiser, support and administrators. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/queue/{eventId}/log", tag = "admin",
    params(("eventId" = Uuid, Path), Page),
    responses((status = 200, body = AdminLogView), AdminErrors),
)]
async fn list_room_actions(
    State(queue): State<QueueService>,
    EventReader(reader): EventReader,
    Path(event_id): Path<Uuid>,
    page: Page,
) -> Result<Json<AdminLogView>, ApiError> {
    queue.known_event(event_id, reader.event_scope())?;
    admin_log::list_of_resource(&Db::from_ref(&queue), event_id.to_string(), page).await
}

/// Changes the settings of a room.
///
/// For the event's organiser and administrators. Fields that are not sent stay; `null` resets to
/// the default. It applies at once, in all processes within a second. A lower threshold removes
/// nobody. `opening` and `gatheringSeconds` are fixed from five seconds before users may come, and
/// while anybody waits.
///
/// Errors: 400 `INVALID_THRESHOLD`, `INVALID_RATE`, `INVALID_GATHERING`, `INVALID_MESSAGE`; 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 409 `OPENING_FIXED`, `GATHERING_FIXED`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    patch, path = "/api/admin/queue/{eventId}", tag = "admin", params(("eventId" = Uuid, Path)),
    request_body = ChangeRoomBody,
    responses((status = 200, body = SingleRoomView), AdminErrors, Errors<409>),
)]
async fn change_room(room: RoomAdmin, Json(body): Json<ChangeRoomBody>) -> RoomResult {
    room.change(body.parse()?).await
}

/// Stops admissions until the room is resumed.
///
/// For the event's organiser and administrators. Slots and positions are kept. Errors: 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/pause", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn pause_room(room: RoomAdmin) -> RoomResult {
    let paused = RoomChange { is_paused: Some(true), ..RoomChange::default() };
    room.change(paused).await
}

/// Resumes admissions.
///
/// For the event's organiser and administrators. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/resume", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn resume_room(room: RoomAdmin) -> RoomResult {
    let resumed = RoomChange { is_paused: Some(false), ..RoomChange::default() };
    room.change(resumed).await
}

/// Removes all users from a room.
///
/// For the event's organiser and administrators. Ends every position and every slot for good.
/// `confirm` repeats the event's id. Errors: 400 `CONFIRMATION_REQUIRED` (with `waiting` and
/// `active`); 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/queue/{eventId}/clear", tag = "admin",
    params(("eventId" = Uuid, Path)), request_body = ClearRoomBody,
    responses((status = 200, body = ClearedView), AdminErrors),
)]
async fn clear_room(
    room: RoomAdmin,
    Json(body): Json<ClearRoomBody>,
) -> Result<Json<ClearedView>, ApiError> {
    room.clear(body.confirms(room.event_id)).await
}

/// Shows a message to the users who wait.
///
/// For the event's organiser and administrators. Errors: 400 `INVALID_MESSAGE` (one line of 1 to
/// 500 characters); 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    put, path = "/api/admin/queue/{eventId}/message", tag = "admin",
    params(("eventId" = Uuid, Path)), request_body = MessageBody,
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn set_room_message(room: RoomAdmin, Json(body): Json<MessageBody>) -> RoomResult {
    let message = RoomChange { message: Some(Some(body.parse()?)), ..RoomChange::default() };
    room.change(message).await
}

/// Removes the message to the users who wait.
///
/// For the event's organiser and administrators. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    delete, path = "/api/admin/queue/{eventId}/message", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SingleRoomView), AdminErrors),
)]
async fn remove_room_message(room: RoomAdmin) -> RoomResult {
    let silent = RoomChange { message: Some(None), ..RoomChange::default() };
    room.change(silent).await
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
            AdminError::NotYours(not_yours) => not_yours.into(),
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
