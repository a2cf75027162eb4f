//! The audit of the money: for operators as internal calls, for administrators as a page.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_contracts::internal::payment::{
    AccountBalance, AuditFinding, AuditLedger, AuditProvider, AuditTickets, LedgerAudit,
    ProviderAudit, ReturnUnknownCharges, ReturnedCharges, TicketAudit,
};
use urr_kernel::{CallContext, Timestamp, Won};
use urr_service::whole_audit::WholeAuditState;
use urr_service::{Admin, ApiError, Errors, InternalCalls, Json};
use urr_storage::{DbResult, storable_time};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::ledger_audit::LedgerDifference;
use crate::domain::payment::{Payment, SagaStep};
use crate::http::figures::get_payment_figures;
use crate::http::payables::{get_unclear_payments, list_payable_payments};
use crate::http::problems::list_payment_problems;
use crate::http::user_records::get_payment_records;
use crate::provider_reconciliation::{ProviderDifference, Reconciliation};
use crate::ticket_reconciliation::{TicketComparison, TicketDifference};
use crate::{AuditedProviders, LedgerPart, LedgerProof, PaymentService};

/// The whole ledger is audited so often without an order.
const WHOLE_AUDIT_EVERY: Duration = Duration::from_hours(24);
/// How many stuck payments are listed.
const STUCK_MAX: u32 = 100;

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new().routes(routes!(get_payment_audit, audit_payments))
}

pub fn calls(payments: PaymentService) -> InternalCalls<PaymentService> {
    InternalCalls::new(payments)
        .serve(audit_ledger)
        .serve(audit_provider)
        .serve(return_unknown)
        .serve(audit_tickets)
        .serve(get_payment_records)
        .serve(list_payable_payments)
        .serve(get_unclear_payments)
        .serve(get_payment_figures)
        .serve(list_payment_problems)
}

#[derive(Serialize, Deserialize, ToSchema)]
struct AccountBalanceView {
    account: String,
    #[schema(value_type = i64)]
    balance: Won,
}

/// What an audit of the whole ledger came to, as it is stored.
#[derive(Serialize, Deserialize, ToSchema)]
struct LedgerAuditView {
    /// Whether every won is explained.
    holds: bool,
    #[schema(value_type = i64)]
    charged: Won,
    #[schema(value_type = i64)]
    refunded: Won,
    balances: Vec<AccountBalanceView>,
    unexplained: Vec<String>,
}

impl From<LedgerProof> for LedgerAuditView {
    fn from(proof: LedgerProof) -> LedgerAuditView {
        let view = |AccountBalance { account, balance }| AccountBalanceView { account, balance };
        LedgerAuditView {
            holds: proof.is_balanced(),
            charged: proof.charged,
            refunded: proof.refunded,
            balances: balances(&proof).into_iter().map(view).collect(),
            unexplained: proof.unexplained.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The last audit of the whole ledger, and whether one runs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LedgerAuditStateView {
    /// Null if none has ended yet.
    last: Option<LedgerAuditView>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    /// When the one under way began; null if none is.
    running_since: Option<Timestamp>,
}

impl From<WholeAuditState<LedgerAuditView>> for LedgerAuditStateView {
    fn from(state: WholeAuditState<LedgerAuditView>) -> LedgerAuditStateView {
        let WholeAuditState { last, started_at, ended_at, running_since } = state;
        LedgerAuditStateView { last, started_at, ended_at, running_since }
    }
}

/// The last audit of the ledger.
///
/// For administrators. Whether every won that was charged is accounted for, as of the last audit of
/// the whole ledger. One runs once a day, and when it is ordered.
#[utoipa::path(
    get, path = "/api/admin/payments/audit", tag = "admin",
    responses((status = 200, body = LedgerAuditStateView), Errors<401, 403>),
)]
async fn get_payment_audit(
    State(payments): State<PaymentService>,
    _admin: Admin,
) -> Result<Json<LedgerAuditStateView>, ApiError> {
    Ok(Json(payments.whole_ledger_audit().state::<LedgerAuditView>().await?.into()))
}

/// Audits the ledger now.
///
/// For administrators. It reads the whole ledger in the background, unless an audit runs already.
/// 200: it has ended. 202: it still runs; get the last audit later.
#[utoipa::path(
    post, path = "/api/admin/payments/audit", tag = "admin",
    responses(
        (status = 200, body = LedgerAuditStateView, description = "It has ended."),
        (status = 202, body = LedgerAuditStateView, description = "It still runs."),
        Errors<401, 403>,
    ),
)]
async fn audit_payments(
    State(payments): State<PaymentService>,
    _admin: Admin,
) -> Result<(StatusCode, Json<LedgerAuditStateView>), ApiError> {
    let (audit, run) = (payments.whole_ledger_audit(), payments.clone());
    audit.order(async move { run.audit_whole_ledger().await.map(LedgerAuditView::from) }).await?;
    let state = audit.state::<LedgerAuditView>().await?;
    Ok((state.ordered(), Json(state.into())))
}

impl PaymentService {
    /// Audits the whole ledger if nobody has done so for a day. Returns whether it was done.
    pub async fn audit_whole_ledger_daily(&self) -> DbResult<bool> {
        let audit = async { self.audit_whole_ledger().await.map(LedgerAuditView::from) };
        self.whole_ledger_audit().run_if_older(WHOLE_AUDIT_EVERY, audit).await
    }
}

fn balances(proof: &LedgerProof) -> Vec<AccountBalance> {
    let balance = |(account, balance): &(crate::LedgerAccount, Won)| AccountBalance {
        account: account.to_string(),
        balance: *balance,
    };
    proof.balances.iter().map(balance).collect()
}

async fn audit_ledger(
    payments: PaymentService,
    call: AuditLedger,
    _: CallContext,
) -> Result<LedgerAudit, ApiError> {
    let at = payments.0.clock.now();
    let LedgerPart { proof, next } = payments.prove_ledger_part(call.after).await?;
    let stuck = match next {
        Some(_) => Vec::new(),
        None => payments.list_stuck(STUCK_MAX).await?,
    };
    Ok(LedgerAudit {
        at,
        charged: proof.charged,
        refunded: proof.refunded,
        sold: proof.sold,
        cancelled: proof.cancelled,
        undelivered: proof.undelivered(),
        owed: proof.owed(),
        balances: balances(&proof),
        unexplained: proof.unexplained.iter().map(unexplained_finding).collect(),
        stuck: stuck.iter().map(stuck_finding).collect(),
        next,
    })
}

async fn audit_provider(
    payments: PaymentService,
    call: AuditProvider,
    _: CallContext,
) -> Result<ProviderAudit, ApiError> {
    let (since, now) = (storable_time(call.since), payments.0.clock.now());
    let found = payments.audit_providers(AuditedProviders::All, since.min(now), now).await?;
    let Reconciliation { compared, reopened, differences, silent } = found;
    if silent.len() == payments.0.providers.len() {
        let sentence = "No provider answers.";
        return Err(ApiError::unavailable("PROVIDER_SILENT", sentence, Duration::from_secs(60)));
    }
    Ok(ProviderAudit {
        providers: payments.0.providers.iter().map(|one| one.name().to_owned()).collect(),
        since,
        compared: compared as u64,
        reopened,
        differences: differences.iter().map(provider_finding).collect(),
        silent: silent.into_iter().map(str::to_owned).collect(),
    })
}

async fn return_unknown(
    payments: PaymentService,
    call: ReturnUnknownCharges,
    _: CallContext,
) -> Result<ReturnedCharges, ApiError> {
    let (since, now) = (storable_time(call.since), payments.0.clock.now());
    let done = payments.return_unknown_charges(since.min(now), now).await?;
    let of_order = |kind: &str, order_id: &str, amount: Won, sentence: String| {
        let order_id = Some(order_id.to_owned());
        AuditFinding { order_id, ..finding(kind, amount, sentence) }
    };
    let returned = done.returned.iter().map(|(order_id, amount)| {
        let sentence = format!("order {order_id}: {amount} were returned");
        of_order("returned", order_id, *amount, sentence)
    });
    let kept = done.kept.iter().map(|(order_id, amount, code)| {
        let sentence = format!("order {order_id}: {amount} could not be returned ({code})");
        of_order("kept", order_id, *amount, sentence)
    });
    Ok(ReturnedCharges {
        returned: returned.collect(),
        kept: kept.collect(),
        silent: done.silent.iter().map(|name| (*name).to_owned()).collect(),
        has_more: done.has_more,
    })
}

async fn audit_tickets(
    payments: PaymentService,
    call: AuditTickets,
    context: CallContext,
) -> Result<TicketAudit, ApiError> {
    let found = payments.reconcile_tickets(call.after, &context).await?;
    let TicketComparison { reservations, payments, differences, next } = found;
    Ok(TicketAudit {
        reservations: reservations as u64,
        payments: payments as u64,
        differences: differences.iter().map(ticket_finding).collect(),
        next,
    })
}

fn finding(kind: &str, amount: Won, sentence: String) -> AuditFinding {
    AuditFinding {
        kind: kind.to_owned(),
        payment_id: None,
        order_id: None,
        reservation_id: None,
        amount,
        sentence,
    }
}

fn unexplained_finding(found: &LedgerDifference) -> AuditFinding {
    let (kind, amount) = match found {
        LedgerDifference::Entry { amount, .. } => ("entry", amount),
        LedgerDifference::Payment { amount, .. } => ("payment", amount),
        LedgerDifference::Left { amount, .. } => ("left", amount),
        LedgerDifference::Accounts { amount } => ("accounts", amount),
        LedgerDifference::Account { amount, .. } => ("account", amount),
    };
    AuditFinding { payment_id: found.payment_id(), ..finding(kind, *amount, found.to_string()) }
}

fn stuck_finding(payment: &Payment) -> AuditFinding {
    let Payment { id, status, attempts, updated_at, charged, amount, .. } = payment;
    let step = payment.step.map_or("nothing", SagaStep::as_str);
    let code = payment.wait_code.as_deref().or(payment.failure_code.as_deref());
    let code = code.unwrap_or("no code");
    let sentence = format!(
        "payment {id}: {status}, at the step {step} since {updated_at}, tried {attempts} times \
         ({code}); {charged} of {amount} are charged"
    );
    AuditFinding {
        payment_id: Some(id.0),
        order_id: Some(payment.order_id.clone()),
        ..finding("stuck", *charged, sentence)
    }
}

fn provider_finding(found: &ProviderDifference) -> AuditFinding {
    let (kind, amount) = match found {
        ProviderDifference::UnknownOrder { amount, .. } => ("unknownOrder", *amount),
        ProviderDifference::MissingAtProvider { amount, .. } => ("missingAtProvider", *amount),
        ProviderDifference::Amounts { ours, theirs, .. } => {
            let left = |(charged, refunded): (Won, Won)| charged.amount() - refunded.amount();
            ("amounts", Won::new(left(*theirs) - left(*ours)))
        }
    };
    AuditFinding {
        order_id: Some(found.order_id().to_owned()),
        ..finding(kind, amount, found.to_string())
    }
}

fn ticket_finding(found: &TicketDifference) -> AuditFinding {
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
    AuditFinding {
        payment_id,
        reservation_id: Some(reservation_id),
        ..finding(kind, amount, found.to_string())
    }
}
