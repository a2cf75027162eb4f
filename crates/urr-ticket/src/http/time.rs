//! The time of the server, for countdowns.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::Timestamp;
use urr_service::Json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::TicketService;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(get_time))
}

#[derive(Serialize, ToSchema)]
struct TimeView {
    #[schema(value_type = String, format = DateTime)]
    time: Timestamp,
}

/// What time it is here.
#[utoipa::path(
    get, path = "/api/time", tag = "tickets", responses((status = 200, body = TimeView)),
)]
async fn get_time(State(ticket): State<TicketService>) -> Json<TimeView> {
    Json(TimeView { time: ticket.clock.now() })
}
