//! The routes of the ticket service.

mod time;

use utoipa_axum::router::OpenApiRouter;

use crate::TicketService;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .merge(crate::reserve::http::routes())
        .merge(crate::reserve::best_seats::http::routes())
        .merge(crate::reservations::http::admin::routes())
        .merge(crate::admin_log::routes())
        .merge(crate::check_in::http::routes())
        .merge(crate::payables::http::routes())
        .merge(crate::reservations::http::routes())
        .merge(crate::reservations::refund::http::routes())
        .merge(crate::seat_map::http::routes())
        .merge(crate::payables::membership_http::routes())
        .merge(crate::memberships::http::routes())
        .merge(crate::sales_health::http::routes())
        .merge(crate::inventory::ticket_types::http::routes())
        .merge(crate::inventory::http::routes())
        .merge(time::routes())
        .merge(crate::payables::transfer_http::routes())
        .merge(crate::transfers::http::routes())
}
