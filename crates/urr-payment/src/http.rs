//! The routes of the payment service.

mod admin;
pub mod audit;
mod errors;
mod figures;
mod idempotency;
mod orders;
mod payables;
mod payment_outcome;
mod problems;
mod sandbox_checkout;
mod settlement;
mod test_card;
mod user_records;
mod views;
mod webhooks;

use axum::extract::FromRef;
use urr_service::admin_log::{self, AdminLogRoute};
use urr_storage::Db;
use utoipa_axum::router::OpenApiRouter;

use crate::PaymentService;

const ADMIN_LOG: AdminLogRoute = AdminLogRoute {
    path: "/api/admin/payments/log",
    operation_id: "list_payment_admin_actions",
    tag: "admin",
};

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .merge(orders::routes())
        .merge(sandbox_checkout::routes())
        .merge(test_card::routes())
        .merge(admin_log::routes(ADMIN_LOG))
        .merge(admin::routes())
        .merge(settlement::routes())
        .merge(webhooks::routes())
        .merge(audit::routes())
}

impl FromRef<PaymentService> for Db {
    fn from_ref(payments: &PaymentService) -> Db {
        payments.0.db.clone()
    }
}
