//! The internal calls of waiting rooms.

use axum::extract::State;
use axum::routing::{get, post};
use urr_contracts::internal::ticket::{
    GET_SALES_HEALTH, GET_TIER, SALES_HEALTH_EVENTS_MAX, SalesHealthAnswer, SalesHealthBody,
    TierAnswer,
};
use urr_kernel::Uuid;
use urr_service::{ApiError, Json, Path, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use crate::TicketService;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    let routes = OpenApiRouter::new()
        .route(GET_SALES_HEALTH.path, post(get_sales_health))
        .route(GET_TIER.path, get(get_tier));
    internal_routes(GET_SALES_HEALTH.callers, routes)
}

/// What is left of these events, and how the bookings of this process went lately.
async fn get_sales_health(
    State(ticket): State<TicketService>,
    Json(body): Json<SalesHealthBody>,
) -> Result<Json<SalesHealthAnswer>, ApiError> {
    if body.event_ids.len() > SALES_HEALTH_EVENTS_MAX {
        let sentence = format!("Please ask for {SALES_HEALTH_EVENTS_MAX} events at most.");
        return Err(ApiError::bad_request("TOO_MANY_EVENTS", sentence));
    }
    let events = ticket.list_availability(body.event_ids).await?;
    Ok(Json(SalesHealthAnswer { events, booking: ticket.booking_stats.health() }))
}

async fn get_tier(
    State(ticket): State<TicketService>,
    Path((event_id, user_id)): Path<(Uuid, Uuid)>,
) -> Result<Json<TierAnswer>, ApiError> {
    Ok(Json(TierAnswer { tier: ticket.tier_of(event_id, user_id).await? }))
}
