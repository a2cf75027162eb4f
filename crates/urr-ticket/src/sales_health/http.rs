//! What the waiting room asks. Only it is let in.

use std::collections::HashMap;

use axum::extract::State;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{ApiError, Caller, Internal, Json, Path};
use utoipa_axum::router::OpenApiRouter;

use crate::TicketService;
use crate::sales_health::{BookingSummary, SaleSupply};

const EVENTS_MAX: usize = 1_000;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .route("/internal/ticket/pulse", post(get_sales_health))
        .route("/internal/ticket/tier/{event_id}/{user_id}", get(get_tier))
}

fn only_the_waiting_room(caller: Internal) -> Result<(), ApiError> {
    match caller.caller() {
        Caller::Queue => Ok(()),
        _ => Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for the waiting room.")),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SalesHealthBody {
    event_ids: Vec<Uuid>,
}

#[derive(Serialize)]
struct SalesHealthView {
    events: HashMap<Uuid, SupplyView>,
    booking: BookingView,
}

#[derive(Serialize)]
struct SupplyView {
    available: u32,
    held: u32,
    total: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BookingView {
    answered: u64,
    failed: u64,
    p95_micros: u64,
}

/// What is left of these events, and how the bookings of this process went lately.
async fn get_sales_health(
    State(ticket): State<TicketService>,
    caller: Internal,
    Json(body): Json<SalesHealthBody>,
) -> Result<Json<SalesHealthView>, ApiError> {
    only_the_waiting_room(caller)?;
    if body.event_ids.len() > EVENTS_MAX {
        let sentence = format!("Please ask for {EVENTS_MAX} events at most.");
        return Err(ApiError::bad_request("TOO_MANY_EVENTS", sentence));
    }
    let sale_supplies = ticket.sale_supplies(body.event_ids).await?;
    let events = sale_supplies.into_iter().map(|(event_id, supply)| (event_id, supply.into()));
    Ok(Json(SalesHealthView { events: events.collect(), booking: ticket.booking_summary().into() }))
}

#[derive(Serialize)]
struct TierView {
    tier: Option<&'static str>,
}

async fn get_tier(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path((event_id, user_id)): Path<(Uuid, Uuid)>,
) -> Result<Json<TierView>, ApiError> {
    only_the_waiting_room(caller)?;
    let tier = ticket.tier_of(event_id, user_id).await?;
    Ok(Json(TierView { tier: tier.map(|tier| tier.name()) }))
}

impl From<SaleSupply> for SupplyView {
    fn from(supply: SaleSupply) -> SupplyView {
        let SaleSupply { available, held, total } = supply;
        SupplyView { available, held, total }
    }
}

impl From<BookingSummary> for BookingView {
    fn from(summary: BookingSummary) -> BookingView {
        let BookingSummary { answered, failed, p95 } = summary;
        let p95_micros = u64::try_from(p95.as_micros()).unwrap_or(u64::MAX);
        BookingView { answered, failed, p95_micros }
    }
}
