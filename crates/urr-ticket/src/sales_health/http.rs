//! The internal calls of waiting rooms.

use urr_contracts::internal::ticket::{
    GetSalesHealth, GetTier, SALES_HEALTH_EVENTS_MAX, SalesHealthAnswer, TierAnswer,
};
use urr_kernel::CallContext;
use urr_service::ApiError;

use crate::TicketService;

/// What is left of these events, and how the bookings of this process went lately.
pub async fn get_sales_health(
    ticket: TicketService,
    call: GetSalesHealth,
    _: CallContext,
) -> Result<SalesHealthAnswer, ApiError> {
    if call.event_ids.len() > SALES_HEALTH_EVENTS_MAX {
        let sentence = format!("Please ask for {SALES_HEALTH_EVENTS_MAX} events at most.");
        return Err(ApiError::bad_request("TOO_MANY_EVENTS", sentence));
    }
    let events = ticket.list_availability(call.event_ids).await?;
    Ok(SalesHealthAnswer { events, booking: ticket.booking_stats.health() })
}

pub async fn get_tier(
    ticket: TicketService,
    GetTier { event_id, user_id }: GetTier,
    _: CallContext,
) -> Result<TierAnswer, ApiError> {
    Ok(TierAnswer { tier: ticket.tier_of(event_id, user_id).await? })
}
