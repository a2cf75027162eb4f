//! The calls of the ticket service.

use axum::extract::State;
use axum::routing::post;
use futures_util::future::try_join_all;
use urr_contracts::internal::queue::{
    CHECK_SLOTS, CheckSlotsAnswer, CheckSlotsBody, FINISH_SLOT, FinishSlotAnswer, FinishSlotBody,
    SLOT_CHECKS_MAX,
};
use urr_service::{ApiError, Json, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use super::room_error;
use crate::QueueService;

pub fn routes() -> OpenApiRouter<QueueService> {
    let routes = OpenApiRouter::new()
        .route(CHECK_SLOTS.path, post(check_slots))
        .route(FINISH_SLOT.path, post(finish_slot));
    internal_routes(CHECK_SLOTS.callers, routes)
}

/// Whether these slots are live. Without a live slot nobody books, whatever the token says.
async fn check_slots(
    State(queue): State<QueueService>,
    Json(body): Json<CheckSlotsBody>,
) -> Result<Json<CheckSlotsAnswer>, ApiError> {
    if body.checks.len() > SLOT_CHECKS_MAX {
        let sentence = format!("At most {SLOT_CHECKS_MAX} slots can be checked at once.");
        return Err(ApiError::bad_request("TOO_MANY_SLOT_CHECKS", sentence));
    }
    let live = body.checks.into_iter().map(|check| queue.is_slot_live(check));
    Ok(Json(CheckSlotsAnswer { live: try_join_all(live).await.map_err(room_error)? }))
}

/// Ends the slot of a user who has bought.
async fn finish_slot(
    State(queue): State<QueueService>,
    Json(body): Json<FinishSlotBody>,
) -> Result<Json<FinishSlotAnswer>, ApiError> {
    let FinishSlotBody { event_id, user_id, bought_at } = body;
    let ended = queue.finish(event_id, user_id, bought_at).await.map_err(room_error)?;
    Ok(Json(FinishSlotAnswer { ended }))
}
