//! The ticket office over HTTP.

mod admin;
mod admin_log;
mod best;
mod check_in;
mod internal;
mod map;
mod membership_steps;
mod memberships;
mod pulse;
mod refund;
mod reservation_view;
mod reservations;
mod reserve;
mod stock;
mod tickets;
mod time;
mod transfer_steps;
mod transfers;
mod turn;

use utoipa_axum::router::OpenApiRouter;

use crate::Ticket;

pub fn routes() -> OpenApiRouter<Ticket> {
    OpenApiRouter::new()
        .merge(reserve::routes())
        .merge(best::routes())
        .merge(admin::routes())
        .merge(admin_log::routes())
        .merge(check_in::routes())
        .merge(internal::routes())
        .merge(reservations::routes())
        .merge(refund::routes())
        .merge(map::routes())
        .merge(membership_steps::routes())
        .merge(memberships::routes())
        .merge(pulse::routes())
        .merge(stock::routes())
        .merge(tickets::routes())
        .merge(time::routes())
        .merge(transfer_steps::routes())
        .merge(transfers::routes())
}
