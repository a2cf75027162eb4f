//! Payments: every charge ends in a ticket or a refund.
//!
//! What is to be paid comes from the ticket service, the money moves at a [`provider`], and a row in
//! the schema `payment_service` says how far each payment is. A payment is driven by sagas that can
//! stop anywhere and go on anywhere ([`saga`]); what they did with the money is in the books
//! ([`ledger`]).
//!
//! Deliberately absent: a transaction that is open during a call, a failure that is concluded from
//! silence, and a refund that only changes a word in a table.

pub mod consumer;
mod domain;
pub mod events;
mod fault_points;
mod http;
mod jobs;
mod keyed_mutex;
mod ledger_audit;
mod metrics;
mod periodic_audit;
pub mod provider;
mod provider_reconciliation;
mod queries;
mod saga;
mod settings;
mod store;
mod ticket_client;
mod ticket_reconciliation;
mod webhooks;

use std::sync::Arc;

use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::{Service, ServiceKit, Upstream};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use domain::ledger::LedgerAccount;
pub use domain::ledger_audit::LedgerDifference;
pub use domain::payment::{
    Approval, ApprovalRejection, CURRENCY, PayableKind, PayableRef, Payment, PaymentId,
    PaymentStatus, SagaStep,
};
pub use domain::refund::{Refund, RefundCause, RefundId, RefundStatus};
use domain::timeouts::SagaTimeouts;
pub use fault_points::{FaultMoment, FaultPoint, FaultPoints};
use keyed_mutex::KeyedMutex;
pub use ledger_audit::LedgerAudit;
use metrics::PaymentMetrics;
use provider::ProviderClient;
pub use provider_reconciliation::{ProviderDifference, Reconciliation};
pub use saga::{
    AdminRefundRequest, ApproveError, ApproveOrder, CloseError, CloseRefundRequest, CommandContext,
    CreateError, CreateOrder, CreateResult, OrderRequest, OwnerCancelRequest, PrepareError,
    RefundClosure, RefundError,
};
pub use settings::PaymentSettings;
pub use store::listing::PaymentFilter;
use ticket_client::TicketClient;
pub use ticket_client::TicketClientError;
pub use ticket_reconciliation::{CompareError, TicketComparison, TicketDifference};

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
pub struct PaymentService(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: PaymentSettings,
    pub timeouts: SagaTimeouts,
    /// The first one is for new orders.
    pub providers: Vec<ProviderClient>,
    pub tickets: TicketClient,
    pub order_locks: KeyedMutex,
    pub metrics: PaymentMetrics,
    pub faults: FaultPoints,
    /// Who we are among the processes on these tables.
    pub holder: Uuid,
}

/// What the payment service is made of.
pub struct PaymentParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: PaymentSettings,
    /// The first one is for new orders; the others for those that were made when it was theirs.
    pub providers: Vec<ProviderClient>,
    /// Nobody, but in tests.
    pub faults: FaultPoints,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl PaymentService {
    pub fn new(parts: PaymentParts) -> PaymentService {
        let PaymentParts { db, clock, ids, settings, providers, faults } = parts;
        assert!(!providers.is_empty(), "somebody has to move the money");
        let timeout = providers.iter().map(ProviderClient::timeout).max().unwrap_or_default();
        PaymentService(Arc::new(Inner {
            timeouts: SagaTimeouts::of(timeout),
            tickets: TicketClient::default(),
            order_locks: KeyedMutex::default(),
            metrics: PaymentMetrics::default(),
            holder: ids.next_id(),
            db,
            clock,
            ids,
            settings,
            providers,
            faults,
        }))
    }

    /// Tells it where the ticket service is. Until then nothing can be paid. Only the first counts.
    pub fn connect_tickets(&self, upstream: Upstream) {
        self.0.tickets.connect(upstream);
    }

    /// Payments as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.0.metrics.register(&kit.metrics);
        Service::new("payment", http::routes().with_state(self.clone()), kit)
    }

    /// The provider of new orders.
    pub fn provider(&self) -> &ProviderClient {
        &self.0.providers[0]
    }

    /// The provider that a payment was ordered from. None if it is gone from the configuration:
    /// nobody else can say what became of the payment.
    pub(crate) fn provider_of(&self, payment: &Payment) -> Option<&ProviderClient> {
        let found = self.0.providers.iter().find(|provider| provider.name() == payment.provider);
        if found.is_none() {
            self.0.metrics.count_alarm(PROVIDER_GONE);
            tracing::error!(provider = payment.provider, "there is no such provider any more");
        }
        found
    }
}

/// What is noted of a payment whose provider is gone.
pub(crate) const PROVIDER_GONE: &str = "PROVIDER_GONE";
