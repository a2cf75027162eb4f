//! What operators look after: what is wrong now, dead letters, and the settings in force.
//!
//! It is here because the dashboard is: one page for those who run sales, put together from what
//! every service knows.

pub(crate) mod dead_letters;
mod problem_texts;
pub(crate) mod problems;
pub(crate) mod settings;

use std::sync::Arc;

use urr_bus::Bus;
use urr_contracts::clients::{MailClient, PaymentClient, QueueClient};
use utoipa_axum::router::OpenApiRouter;

use crate::CatalogService;
pub use settings::SettingInForce;

/// The services and values that operators ask about. A service whose address is not known is not
/// asked.
#[derive(Clone, Default)]
pub struct Operations {
    pub payment: Option<PaymentClient>,
    pub queue: Option<QueueClient>,
    pub mail: Option<MailClient>,
    /// Where dead letters are.
    pub bus: Option<Bus>,
    /// Of this process, in the order of the configuration file.
    pub settings: Arc<[SettingInForce]>,
}

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .merge(problems::routes())
        .merge(dead_letters::routes())
        .merge(settings::routes())
}
