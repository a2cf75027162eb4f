//! The ticket office over HTTP.

use utoipa_axum::router::OpenApiRouter;

use crate::Ticket;

pub fn routes() -> OpenApiRouter<Ticket> {
    OpenApiRouter::new()
}
