//! Payments over HTTP.

mod admin;
mod answers;
mod errors;
mod internal;
mod orders;
mod views;
mod webhooks;

use utoipa_axum::router::OpenApiRouter;

use crate::Payments;

pub fn routes() -> OpenApiRouter<Payments> {
    OpenApiRouter::new()
        .merge(orders::routes())
        .merge(admin::routes())
        .merge(webhooks::routes())
        .merge(internal::routes())
}
