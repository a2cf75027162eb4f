//! Payments: every charge ends in a ticket or a refund.
//!
//! The ticket service says what is to be paid, a [`provider`] moves the money, and a row in the
//! schema `payment_service` says how far each payment is. Sagas move a payment forward; they can
//! stop anywhere and resume anywhere ([`saga`]). Every won is in a double-entry ledger
//! ([`ledger_audit`]).
//!
//! Deliberately absent: a transaction that is open during an outside call, a failure that is
//! concluded from silence, and a refund that only changes a status.

pub mod consumer;
mod domain;
mod events;
mod fault_points;
mod http;
mod jobs;
mod keyed_mutex;
mod ledger_audit;
mod metrics;
mod periodic_audit;
pub mod provider;
mod provider_audit;
mod provider_reconciliation;
mod queries;
mod saga;
mod settings;
mod settlement;
mod store;
mod table_audit;
mod ticket_calls;
mod ticket_reconciliation;
mod unknown_charges;
mod webhooks;

use std::sync::Arc;

use urr_contracts::clients::TicketClient;
use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::{Service, ServiceKit};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

use domain::claim_timeouts::SagaTimeouts;
pub use domain::ledger::LedgerAccount;
pub use domain::ledger_audit::LedgerDifference;
pub use domain::payment::{
    Approval, ApprovalRejection, CURRENCY, Payment, PaymentId, PaymentStatus, SagaStep,
};
pub use domain::refund::{Refund, RefundId, RefundOrigin, RefundStatus};
pub use domain::settlement::Settlement;
pub use fault_points::{FaultMoment, FaultPoint, FaultPoints};
use keyed_mutex::KeyedMutex;
pub use ledger_audit::{LedgerPart, LedgerProof};
use metrics::PaymentMetrics;
use provider::ProviderClient;
pub use provider_audit::AuditedProviders;
pub use provider_reconciliation::{ProviderDifference, Reconciliation};
pub use saga::{
    AdminRefundRequest, ApproveError, ApproveOrder, CloseError, CloseRefundRequest, CommandContext,
    CreateError, CreateOrder, CreateResult, OrderRequest, OwnerCancelRequest, PrepareError,
    RefundClosure, RefundError,
};
pub use settings::PaymentSettings;
pub use settlement::{EventMoneyError, EventSettlement, LedgerRow, MethodSales};
pub use store::ledger::account_balances;
pub use store::payments::PaymentFilter;
pub use table_audit::{SandboxAudit, SharedPayments};
pub use ticket_reconciliation::{CompareError, TicketComparison, TicketDifference};

/// The tables of the payment service.
pub const SCHEMA: Schema = Schema {
    name: "payment_service",
    migrations: migrations![
        1 "payments" => "../migrations/0001_payments.sql",
        2 "sandbox" => "../migrations/0002_sandbox.sql",
        3 "sandbox_movements" => "../migrations/0003_sandbox_movements.sql",
        4 "fewer_checks_per_row" => "../migrations/0004_fewer_checks_per_row.sql",
    ],
};

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "payment_svc_user";

/// The source in the service's events.
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
    /// One lock per user and order.
    pub order_locks: KeyedMutex,
    pub metrics: PaymentMetrics,
    pub faults: FaultPoints,
    /// This process among those that run periodic audits.
    pub process_id: Uuid,
}

/// What the payment service is made of.
pub struct PaymentParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: PaymentSettings,
    /// The first one is for new orders, the others for orders that were made with them.
    pub providers: Vec<ProviderClient>,
    pub tickets: TicketClient,
    /// Empty but in tests.
    pub faults: FaultPoints,
}

/// The description of the interface, for a process that does not run the service.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl PaymentService {
    pub fn new(parts: PaymentParts) -> PaymentService {
        let PaymentParts { db, clock, ids, settings, providers, tickets, faults } = parts;
        assert!(!providers.is_empty(), "new orders need a provider");
        let timeout = providers.iter().map(ProviderClient::timeout).max().unwrap_or_default();
        PaymentService(Arc::new(Inner {
            timeouts: SagaTimeouts::new(timeout),
            order_locks: KeyedMutex::default(),
            metrics: PaymentMetrics::default(),
            process_id: ids.next_id(),
            db,
            clock,
            ids,
            settings,
            providers,
            tickets,
            faults,
        }))
    }

    /// Payments as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.0.metrics.register(&kit.metrics);
        Service::new("payment", http::routes().with_state(self.clone()), kit)
            .with_calls(http::audit::calls(self.clone()))
    }

    /// The provider of new orders.
    pub fn provider(&self) -> &ProviderClient {
        &self.0.providers[0]
    }

    /// The provider of a payment. None if it is no longer configured: then nobody can say what
    /// became of the payment.
    pub(crate) fn provider_of(&self, payment: &Payment) -> Option<&ProviderClient> {
        let found = self.0.providers.iter().find(|provider| provider.name() == payment.provider);
        if found.is_none() {
            self.0.metrics.count_alarm(PROVIDER_GONE);
            tracing::error!(provider = payment.provider, "a payment's provider is not configured");
        }
        found
    }
}

/// The code of a payment whose provider is no longer configured.
pub(crate) const PROVIDER_GONE: &str = "PROVIDER_GONE";
