//! The routes of the ticket service.

use axum::extract::{FromRef, State};
use serde::Serialize;
use urr_kernel::Timestamp;
use urr_service::admin_log::{self, AdminLogRoute};
use urr_service::{ApiError, InternalCalls, Json};
use urr_storage::Db;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{
    TicketService, alerts, audit, check_in, etickets, event_access, event_figures, holdings,
    house_seats, inventory, memberships, payables, reservations, reserve, sales_health, seat_map,
    transfers,
};

const ADMIN_LOG: AdminLogRoute = AdminLogRoute {
    path: "/api/admin/reservations/log",
    operation_id: "list_ticket_admin_actions",
    tag: "admin",
};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(get_time))
        .merge(admin_log::routes(ADMIN_LOG))
        .merge(alerts::http::routes())
        .merge(check_in::http::routes())
        .merge(check_in::offline_http::routes())
        .merge(etickets::http::routes())
        .merge(event_access::http::routes())
        .merge(event_figures::http::routes())
        .merge(house_seats::http::routes())
        .merge(house_seats::tickets_http::routes())
        .merge(inventory::http::routes())
        .merge(inventory::ticket_types::http::routes())
        .merge(memberships::http::routes())
        .merge(memberships::admin_http::routes())
        .merge(reservations::http::routes())
        .merge(reservations::http::admin::routes())
        .merge(reserve::http::routes())
        .merge(seat_map::http::routes())
        .merge(transfers::http::routes())
        .merge(transfers::admin_http::routes())
}

/// What other services ask. It is not part of the public description.
pub fn internal_calls(ticket: TicketService) -> InternalCalls<TicketService> {
    InternalCalls::new(ticket)
        .serve(payables::get_payable)
        .serve(payables::validate_payable)
        .serve(payables::pin_payable)
        .serve(payables::unpin_payable)
        .serve(payables::confirm_payable)
        .serve(payables::mark_payable_refunded)
        .serve(reservations::http::internal::list_paid_reservations)
        .serve(reservations::http::internal::cancel_reservation)
        .serve(reservations::http::internal::release_hold)
        .serve(reservations::http::internal::get_reservation_summary)
        .serve(etickets::http::get_ticket_document_for_mail)
        .serve(sales_health::http::get_sales_health)
        .serve(sales_health::http::get_tier)
        .serve(sales_health::http::get_sale_board)
        .serve(audit::problems::list_ticket_problems)
        .serve(holdings::get_holdings)
        .serve(reservations::figures::get_reservation_figures)
        .serve(event_figures::preview_move)
        .serve(event_figures::get_grade_sales)
        .serve(memberships::points::http::award_points)
        .serve(memberships::points::http::return_points)
}

impl FromRef<TicketService> for Db {
    fn from_ref(ticket: &TicketService) -> Db {
        ticket.db.clone()
    }
}

/// The answer for an event that has no sale.
pub fn event_not_found() -> ApiError {
    ApiError::not_found("EVENT_NOT_FOUND", "There is no event with this id on sale.")
}

#[derive(Serialize, ToSchema)]
struct TimeView {
    time: Timestamp,
}

/// Returns the server's time.
///
/// Public. Clients use it for countdowns.
#[utoipa::path(
    get, path = "/api/time", tag = "tickets", responses((status = 200, body = TimeView)),
)]
async fn get_time(State(ticket): State<TicketService>) -> Json<TimeView> {
    Json(TimeView { time: ticket.clock.now() })
}
