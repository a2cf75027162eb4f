//! Payments over HTTP.

mod admin;
mod admin_log;
mod errors;
mod idempotency;
mod internal_audit;
mod orders;
mod payment_result;
mod process;
mod views;
mod webhooks;

use utoipa_axum::router::OpenApiRouter;

use crate::PaymentService;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .merge(orders::routes())
        .merge(process::routes())
        .merge(admin_log::routes())
        .merge(admin::routes())
        .merge(webhooks::routes())
        .merge(internal_audit::routes())
}
