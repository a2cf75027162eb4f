//! The same for whoever runs the installation, by the command line. Only operators are let in.

use axum::extract::State;
use axum::routing::{get, post};
use urr_kernel::Uuid;
use urr_service::{ApiError, Caller, Internal, Json, Page, Path};
use utoipa_axum::router::OpenApiRouter;

use super::bodies::{ChangeRoomBody, ClearRoomBody};
use super::views::{ClearedView, RoomAnswer, RoomListView};
use super::{answer, change, clear, list};
use crate::Queue;
use crate::admin::Actor;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .route("/internal/queue/admin/rooms", get(list_rooms))
        .route("/internal/queue/admin/rooms/{event_id}", get(get_room).post(change_room))
        .route("/internal/queue/admin/rooms/{event_id}/clear", post(clear_room))
}

fn only_operators(caller: Internal) -> Result<(), ApiError> {
    match caller.caller() {
        Caller::Operator => Ok(()),
        _ => Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for operators.")),
    }
}

async fn list_rooms(
    State(queue): State<QueueService>,
    caller: Internal,
    page: Page,
) -> Result<Json<RoomListView>, ApiError> {
    only_operators(caller)?;
    Ok(Json(list(&queue, page).await?))
}

async fn get_room(
    State(queue): State<QueueService>,
    caller: Internal,
    Path(event_id): Path<Uuid>,
) -> Result<Json<RoomAnswer>, ApiError> {
    only_operators(caller)?;
    answer(&queue, event_id).await
}

async fn change_room(
    State(queue): State<QueueService>,
    caller: Internal,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ChangeRoomBody>,
) -> Result<Json<RoomAnswer>, ApiError> {
    only_operators(caller)?;
    change(&queue, event_id, body.parse()?, Actor::Operator).await
}

async fn clear_room(
    State(queue): State<QueueService>,
    caller: Internal,
    Path(event_id): Path<Uuid>,
    Json(body): Json<ClearRoomBody>,
) -> Result<Json<ClearedView>, ApiError> {
    only_operators(caller)?;
    clear(&queue, event_id, &body, Actor::Operator).await
}
