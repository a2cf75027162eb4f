//! Payments over HTTP.

mod admin;
mod admin_log;
mod answers;
mod audit;
mod errors;
mod keys;
mod orders;
mod process;
mod views;
mod webhooks;

use utoipa_axum::router::OpenApiRouter;

use crate::Payments;

pub fn routes() -> OpenApiRouter<Payments> {
    OpenApiRouter::new()
        .merge(orders::routes())
        .merge(process::routes())
        .merge(admin_log::routes())
        .merge(admin::routes())
        .merge(webhooks::routes())
        .merge(audit::routes())
}
