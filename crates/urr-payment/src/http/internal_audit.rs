//! The money, for whoever runs the installation: the proof of the books, what does not get on, and
//! what the provider and the ticket service have to say.

use std::time::Duration;

use axum::extract::State;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Caller, Context, Internal, Json, Query};
use urr_storage::storable;
use utoipa_axum::router::OpenApiRouter;

use crate::PaymentService;
use crate::domain::ledger_audit::LedgerDifference;
use crate::domain::payment::{Payment, SagaStep};
use crate::ledger_audit::LedgerAudit;
use crate::provider_reconciliation::{ProviderDifference, Reconciliation};
use crate::ticket_reconciliation::{CompareError, TicketComparison, TicketDifference};

/// So many payments that do not get on are named.
const STUCK_MAX: u32 = 100;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .route("/internal/payment/audit", get(audit_books))
        .route("/internal/payment/audit/provider", get(audit_provider))
        .route("/internal/payment/audit/tickets", get(audit_tickets))
}

fn only_operators(caller: Internal) -> Result<(), ApiError> {
    match caller.caller() {
        Caller::Operator => Ok(()),
        _ => Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for operators.")),
    }
}

/// Something that nobody can explain, or that somebody has to look at.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingView {
    kind: &'static str,
    payment_id: Option<Uuid>,
    order_id: Option<String>,
    reservation_id: Option<Uuid>,
    /// How much of it is in question.
    amount: Won,
    sentence: String,
}

#[derive(Serialize)]
struct BalanceView {
    account: &'static str,
    balance: Won,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BooksView {
    at: Timestamp,
    charged: Won,
    refunded: Won,
    sold: Won,
    cancelled: Won,
    undelivered: Won,
    owed: Won,
    balances: Vec<BalanceView>,
    unexplained: Vec<FindingView>,
    stuck: Vec<FindingView>,
}

impl BooksView {
    fn new(at: Timestamp, proof: &LedgerAudit, stuck: &[Payment]) -> BooksView {
        let balances = proof.balances.iter();
        let balances = balances
            .map(|(account, balance)| BalanceView { account: account.name(), balance: *balance });
        BooksView {
            at,
            charged: proof.charged,
            refunded: proof.refunded,
            sold: proof.sold,
            cancelled: proof.cancelled,
            undelivered: proof.undelivered(),
            owed: proof.owed(),
            balances: balances.collect(),
            unexplained: proof.unexplained.iter().map(FindingView::unexplained).collect(),
            stuck: stuck.iter().map(FindingView::stuck).collect(),
        }
    }
}

impl FindingView {
    fn unexplained(found: &LedgerDifference) -> FindingView {
        let (kind, payment_id, amount) = match found {
            LedgerDifference::Entry { payment_id, amount, .. } => {
                ("entry", Some(*payment_id), *amount)
            }
            LedgerDifference::Payment { id, amount } => ("payment", Some(*id), *amount),
            LedgerDifference::Left { payment_id, amount, .. } => {
                ("left", Some(*payment_id), *amount)
            }
            LedgerDifference::Books { amount } => ("books", None, *amount),
            LedgerDifference::Account { amount, .. } => ("account", None, *amount),
        };
        let sentence = found.to_string();
        FindingView { kind, payment_id, amount, sentence, ..FindingView::default() }
    }

    fn stuck(payment: &Payment) -> FindingView {
        let Payment { id, status, attempts, updated_at, .. } = payment;
        let step = payment.step.map_or("nothing", SagaStep::name);
        let code = payment.wait_code.as_deref().or(payment.failure_code.as_deref());
        let code = code.unwrap_or("no code");
        let sentence = format!(
            "payment {id}: {}, has to {step} since {updated_at}, was tried {attempts} times ({code}); \
             {} of {} are taken",
            status.name(),
            payment.charged,
            payment.amount,
        );
        FindingView {
            kind: "stuck",
            payment_id: Some(id.0),
            order_id: Some(payment.order_id.clone()),
            reservation_id: None,
            amount: payment.charged,
            sentence,
        }
    }

    fn of_provider(found: &ProviderDifference) -> FindingView {
        let (kind, order_id, amount) = match found {
            ProviderDifference::UnknownOrder { order_id, amount } => {
                ("unknownOrder", order_id, *amount)
            }
            ProviderDifference::MissingAtProvider { order_id, amount } => {
                ("missingAtProvider", order_id, *amount)
            }
            ProviderDifference::Amounts { order_id, ours, theirs } => {
                let left = |(taken, back): (Won, Won)| taken.amount() - back.amount();
                ("amounts", order_id, Won::new(left(*theirs) - left(*ours)))
            }
        };
        let (order_id, sentence) = (Some(order_id.clone()), found.to_string());
        FindingView { kind, order_id, amount, sentence, ..FindingView::default() }
    }

    fn of_tickets(found: &TicketDifference) -> FindingView {
        let (kind, reservation_id, payment_id, amount) = match *found {
            TicketDifference::Unpaid { reservation_id, payment_id, amount } => {
                ("unpaid", reservation_id, payment_id, amount)
            }
            TicketDifference::NoTicket { reservation_id, payment_id, amount } => {
                ("noTicket", reservation_id, Some(payment_id), amount)
            }
            TicketDifference::Amounts { reservation_id, payment_id, costs, paid } => {
                let amount = Won::new(paid.amount() - costs.amount());
                ("amounts", reservation_id, Some(payment_id), amount)
            }
        };
        let (reservation_id, sentence) = (Some(reservation_id), found.to_string());
        FindingView { kind, payment_id, order_id: None, reservation_id, amount, sentence }
    }
}

/// The proof of the books, and the payments that do not get on.
async fn audit_books(
    State(payments): State<PaymentService>,
    caller: Internal,
) -> Result<Json<BooksView>, ApiError> {
    only_operators(caller)?;
    let at = payments.0.clock.now();
    let proof = payments.audit_ledger().await?;
    let stuck = payments.list_stuck(STUCK_MAX).await?;
    Ok(Json(BooksView::new(at, &proof, &stuck)))
}

#[derive(Deserialize)]
struct ProviderQuery {
    since: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderView {
    providers: Vec<&'static str>,
    since: Timestamp,
    compared: usize,
    /// Orders that were given up and are looked at again.
    reopened: Vec<String>,
    differences: Vec<FindingView>,
    /// Providers that did not say everything: what is told is not the whole.
    silent: Vec<&'static str>,
}

/// The provider's books beside ours, since some time.
async fn audit_provider(
    State(payments): State<PaymentService>,
    caller: Internal,
    Query(query): Query<ProviderQuery>,
) -> Result<Json<ProviderView>, ApiError> {
    only_operators(caller)?;
    let (since, now) = (storable(query.since), payments.0.clock.now());
    let found = payments.reconcile(since.min(now), now).await?;
    let Reconciliation { compared, reopened, differences, silent } = found;
    if silent.len() == payments.0.providers.len() {
        let sentence = "No provider says what it has taken.";
        return Err(ApiError::unavailable("PROVIDER_SILENT", sentence, Duration::from_secs(60)));
    }
    Ok(Json(ProviderView {
        providers: payments.0.providers.iter().map(|provider| provider.name()).collect(),
        since,
        compared,
        reopened,
        differences: differences.iter().map(FindingView::of_provider).collect(),
        silent,
    }))
}

#[derive(Deserialize)]
struct TicketsQuery {
    /// Where the answer before came to.
    after: Option<Uuid>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TicketsView {
    reservations: usize,
    payments: usize,
    differences: Vec<FindingView>,
    /// Where to go on; null at the end.
    next: Option<Uuid>,
}

/// A stretch of the ticket service's books beside ours.
async fn audit_tickets(
    State(payments): State<PaymentService>,
    caller: Internal,
    Context(context): Context,
    Query(query): Query<TicketsQuery>,
) -> Result<Json<TicketsView>, ApiError> {
    only_operators(caller)?;
    let found = payments.reconcile_tickets(query.after, &context).await?;
    let TicketComparison { reservations, payments, differences, next } = found;
    let differences = differences.iter().map(FindingView::of_tickets).collect();
    Ok(Json(TicketsView { reservations, payments, differences, next }))
}

impl From<CompareError> for ApiError {
    fn from(error: CompareError) -> ApiError {
        match error {
            CompareError::Storage(error) => error.into(),
            CompareError::Tickets(error) => error.into(),
        }
    }
}
