//! What the ticket office asks and says. Nobody else is let in.

use axum::extract::State;
use axum::routing::post;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Caller, Internal, Json};
use utoipa_axum::router::OpenApiRouter;

use super::room_error;
use crate::Queue;
use crate::status::SlotClaim;

/// The ticket office asks for all who want to book at the same moment.
const ASKS_MAX: usize = 5_000;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new()
        .route("/internal/queue/slots", post(check_slots))
        .route("/internal/queue/finish", post(finish_slot))
}

fn only_tickets(caller: Internal) -> Result<(), ApiError> {
    match caller.caller() {
        Caller::Ticket => Ok(()),
        _ => Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for the ticket office.")),
    }
}

#[derive(Deserialize)]
struct SlotsBody {
    asks: Vec<SlotAsk>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlotAsk {
    event_id: Uuid,
    user_id: Uuid,
    slot_id: Uuid,
}

#[derive(Serialize)]
struct SlotsView {
    /// In the order of the questions.
    live: Vec<bool>,
}

/// Whether these slots live: without one nobody books, whatever their token says.
async fn check_slots(
    State(queue): State<QueueService>,
    caller: Internal,
    Json(body): Json<SlotsBody>,
) -> Result<Json<SlotsView>, ApiError> {
    only_tickets(caller)?;
    if body.asks.len() > ASKS_MAX {
        let sentence = format!("At most {ASKS_MAX} slots can be asked for at once.");
        return Err(ApiError::bad_request("TOO_MANY_ASKS", sentence));
    }
    let live = body.asks.into_iter().map(|SlotAsk { event_id, user_id, slot_id }| {
        queue.is_slot_live(SlotClaim { event_id, user_id, slot_id })
    });
    Ok(Json(SlotsView { live: try_join_all(live).await.map_err(room_error)? }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FinishBody {
    event_id: Uuid,
    user_id: Uuid,
    bought_at: Timestamp,
}

#[derive(Serialize)]
struct FinishView {
    /// Whether there was a slot to end.
    ended: bool,
}

/// Someone has bought: their turn is over.
async fn finish_slot(
    State(queue): State<QueueService>,
    caller: Internal,
    Json(body): Json<FinishBody>,
) -> Result<Json<FinishView>, ApiError> {
    only_tickets(caller)?;
    let FinishBody { event_id, user_id, bought_at } = body;
    let ended = queue.finish(event_id, user_id, bought_at).await.map_err(room_error)?;
    Ok(Json(FinishView { ended }))
}
