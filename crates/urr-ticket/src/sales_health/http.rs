//! The internal calls of waiting rooms.

use urr_contracts::internal::ticket::{
    GetSaleBoard, GetSalesHealth, GetTier, SALES_HEALTH_EVENTS_MAX, SaleBoard, SalesHealthAnswer,
    TierAnswer,
};
use urr_kernel::CallContext;
use urr_service::ApiError;

use crate::TicketService;
use crate::http::event_not_found;

/// What is left of these events, and how the bookings of all ticket processes went lately.
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
    Ok(SalesHealthAnswer { events, booking: ticket.booking_health() })
}

pub async fn get_tier(
    ticket: TicketService,
    GetTier { event_id, user_id }: GetTier,
    _: CallContext,
) -> Result<TierAnswer, ApiError> {
    Ok(TierAnswer { tier: ticket.tier_of(event_id, user_id).await? })
}

/// What is sold of an event, by grade. It reads the seat map in memory.
pub async fn get_sale_board(
    ticket: TicketService,
    GetSaleBoard { event_id }: GetSaleBoard,
    _: CallContext,
) -> Result<SaleBoard, ApiError> {
    ticket.sale_board(event_id).await?.ok_or_else(event_not_found)
}
