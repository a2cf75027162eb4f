//! Payments: every charge ends in a ticket or a refund.
//!
//! What is to be paid comes from the ticket office, the money moves at a [`provider`], and a row in
//! the schema `payment_service` says how far each payment is. A payment is driven by sagas that can
//! stop anywhere and go on anywhere ([`saga`]); what they did with the money is in the books
//! ([`ledger`]).
//!
//! Deliberately absent: a transaction that is open during a call, a failure that is concluded from
//! silence, and a refund that only changes a word in a table.

mod checks;
pub mod consume;
mod domain;
pub mod events;
mod faults;
mod figures;
mod hints;
mod http;
mod jobs;
mod ledger;
mod mine;
mod office;
pub mod provider;
mod reconcile;
mod saga;
mod settings;
mod store;
mod tickets;
mod turns;

use std::sync::Arc;

use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::{Service, ServiceKit, Upstream};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use domain::books::Unexplained;
use domain::patience::Patience;
pub use domain::payment::{
    Approval, CURRENCY, NotApproved, Payment, PaymentId, Status, Step, Target, TargetKind,
};
pub use domain::postings::Account;
pub use domain::refund::{Cause, Refund, RefundId, RefundStatus};
pub use faults::{Faults, Moment, Point};
use figures::Figures;
pub use ledger::Proof;
use office::Office;
pub use office::OfficeError;
use provider::Provider;
pub use reconcile::{Difference, Reconciliation};
pub use saga::{
    AdminRefund, ApproveError, ApproveOrder, CloseError, CloseRefund, Closing, CreateError,
    CreateOrder, Created, MessageContext, OrderRequest, OwnerCancel, PrepareError, RefundError,
};
pub use settings::Settings;
pub use store::listing::PaymentFilter;
pub use tickets::{CompareError, TicketComparison, TicketDifference};
use turns::Turns;

/// The tables of the payment service.
pub const SCHEMA: Schema = Schema {
    name: "payment_service",
    migrations: migrations![
        1 "payments" => "../migrations/0001_payments.sql",
        2 "sandbox" => "../migrations/0002_sandbox.sql",
    ],
};

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "payment_svc_user";

/// The service as its events name it.
pub(crate) const SOURCE: &str = "urr/payment";

/// The payment service, with one method per operation. Clones share it.
#[derive(Clone)]
pub struct Payments(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: Settings,
    pub patience: Patience,
    /// The first one is for new orders.
    pub providers: Vec<Provider>,
    pub office: Office,
    pub turns: Turns,
    pub figures: Figures,
    pub faults: Faults,
    /// Who we are among the processes on these tables.
    pub holder: Uuid,
}

/// What the payment service is made of.
pub struct PaymentParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: Settings,
    /// The first one is for new orders; the others for those that were made when it was theirs.
    pub providers: Vec<Provider>,
    /// Nobody, but in tests.
    pub faults: Faults,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl Payments {
    pub fn new(parts: PaymentParts) -> Payments {
        let PaymentParts { db, clock, ids, settings, providers, faults } = parts;
        assert!(!providers.is_empty(), "somebody has to move the money");
        let timeout = providers.iter().map(Provider::timeout).max().unwrap_or_default();
        Payments(Arc::new(Inner {
            patience: Patience::of(timeout),
            office: Office::default(),
            turns: Turns::default(),
            figures: Figures::default(),
            holder: ids.next_id(),
            db,
            clock,
            ids,
            settings,
            providers,
            faults,
        }))
    }

    /// Tells it where the ticket office is. Until then nothing can be paid. Only the first counts.
    pub fn connect_office(&self, office: Upstream) {
        self.0.office.connect(office);
    }

    /// Payments as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.0.figures.register(&kit.metrics);
        Service::new("payment", http::routes().with_state(self.clone()), kit)
    }

    /// The provider of new orders.
    pub fn provider(&self) -> &Provider {
        &self.0.providers[0]
    }

    /// The provider that a payment was ordered from. None if it is gone from the configuration:
    /// nobody else can say what became of the payment.
    pub(crate) fn provider_of(&self, payment: &Payment) -> Option<&Provider> {
        let found = self.0.providers.iter().find(|provider| provider.name() == payment.provider);
        if found.is_none() {
            self.0.figures.count_alarm(PROVIDER_GONE);
            tracing::error!(provider = payment.provider, "there is no such provider any more");
        }
        found
    }
}

/// What is noted of a payment whose provider is gone.
pub(crate) const PROVIDER_GONE: &str = "PROVIDER_GONE";
