//! The same operations for operators, by the command line.

use axum::extract::State;
use axum::routing::{get, post};
use urr_contracts::internal::queue::{CHANGE_ROOM, CLEAR_ROOM, GET_ROOM, LIST_ROOMS};
use urr_kernel::Uuid;
use urr_service::{ApiError, Json, Page, Path, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use super::bodies::{ChangeRoomBody, ClearRoomBody};
use super::views::{ClearedView, RoomListView, SingleRoomView};
use super::{change, clear, list, show};
use crate::QueueService;
use crate::admin::RoomActor;

pub fn routes() -> OpenApiRouter<QueueService> {
    let routes = OpenApiRouter::new()
        .route(LIST_ROOMS.path, get(list_rooms))
        .route(GET_ROOM.path, get(get_room))
        .route(CHANGE_ROOM.path, post(change_room))
        .route(CLEAR_ROOM.path, post(clear_room));
    internal_routes(LIST_ROOMS.callers, routes)
}

async fn list_rooms(
    State(queue): State<QueueService>,
    page: Page,
) -> Result<Json<RoomListView>, ApiError> {
    Ok(Json(list(&queue, page).await?))
}

async fn get_room(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
) -> Result<Json<SingleRoomView>, ApiError> {
    show(&queue, event_id).await
}

async fn change_room(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ChangeRoomBody>,
) -> Result<Json<SingleRoomView>, ApiError> {
    change(&queue, event_id, body.parse()?, RoomActor::Operator).await
}

async fn clear_room(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ClearRoomBody>,
) -> Result<Json<ClearedView>, ApiError> {
    clear(&queue, event_id, &body, RoomActor::Operator).await
}
