//! Internal calls to the payment service: the audit of the money, for operators, a user's payments
//! for the copy of their data, the payments of reservations for those who look after them, and the
//! figures of a live board.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::Caller;

use super::problems::{self, ListPaymentProblems, ProblemList};

const OPERATOR: &[Caller] = &[Caller::Operator];
/// A part of an audit reads many rows or asks providers.
const AUDIT_DEADLINE: Duration = Duration::from_secs(30);
const RECORDS_DEADLINE: Duration = Duration::from_secs(5);
const TICKET: &[Caller] = &[Caller::Ticket];
/// Users wait for these answers.
const SHORT_DEADLINE: Duration = Duration::from_secs(2);
const FIGURES_DEADLINE: Duration = Duration::from_secs(1);

internal_calls! {
    /// The calls to the payment service.
    pub enum PaymentCalls {
        AuditLedger -> LedgerAudit:
            Get "/internal/payment/audit/ledger", OPERATOR, AUDIT_DEADLINE;
        AuditProvider -> ProviderAudit:
            Get "/internal/payment/audit/provider", OPERATOR, AUDIT_DEADLINE;
        ReturnUnknownCharges -> ReturnedCharges:
            Post "/internal/payment/audit/return-unknown", OPERATOR, AUDIT_DEADLINE;
        AuditTickets -> TicketAudit:
            Get "/internal/payment/audit/tickets", OPERATOR, AUDIT_DEADLINE;
        ListPaymentProblems -> ProblemList:
            Get "/internal/payment/problems", problems::CALLERS, problems::DEADLINE;
        GetPaymentFigures -> PaymentFigures:
            Get "/internal/payment/figures/{eventId}", &[Caller::Queue], FIGURES_DEADLINE;
        GetPaymentRecords -> PaymentRecordsAnswer:
            Get "/internal/payment/records/{userId}", &[Caller::Auth], RECORDS_DEADLINE;
        ListPayablePayments -> PayablePaymentsAnswer:
            Post "/internal/payment/payables", TICKET, SHORT_DEADLINE;
        GetUnclearPayments -> UnclearPaymentsAnswer:
            Get "/internal/payment/events/{eventId}/unclear", TICKET, SHORT_DEADLINE;
    }
}

/// Asks for the proof of a part of the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLedger {
    /// The `next` of the part before.
    #[serde(default)]
    pub after: Option<Uuid>,
}

/// Something that is not explained or that somebody has to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditFinding {
    pub kind: String,
    #[serde(default)]
    pub payment_id: Option<Uuid>,
    #[serde(default)]
    pub order_id: Option<String>,
    #[serde(default)]
    pub reservation_id: Option<Uuid>,
    /// The money in question.
    pub amount: Won,
    pub sentence: String,
}

/// The balance of an account of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountBalance {
    pub account: String,
    pub balance: Won,
}

/// The answer of [`AuditLedger`]: the proof of the ledger, and the payments that do not proceed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerAudit {
    pub at: Timestamp,
    pub charged: Won,
    pub refunded: Won,
    pub sold: Won,
    pub cancelled: Won,
    pub undelivered: Won,
    pub owed: Won,
    pub balances: Vec<AccountBalance>,
    pub unexplained: Vec<AuditFinding>,
    /// In the last part.
    pub stuck: Vec<AuditFinding>,
    /// Null at the end.
    #[serde(default)]
    pub next: Option<Uuid>,
}

/// Compares the providers' payments with ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditProvider {
    pub since: Timestamp,
}

/// The answer of [`AuditProvider`]: the providers' payments beside ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderAudit {
    pub providers: Vec<String>,
    pub since: Timestamp,
    pub compared: u64,
    /// Orders that had been given up and are tried again. Only of older programs: an audit changes
    /// nothing, and such an order is a difference.
    pub reopened: Vec<String>,
    pub differences: Vec<AuditFinding>,
    /// Providers whose answer is missing or incomplete.
    #[serde(default)]
    pub silent: Vec<String>,
}

/// Refunds what the providers charged for orders that we do not have, as after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnUnknownCharges {
    pub since: Timestamp,
}

/// The answer of [`ReturnUnknownCharges`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnedCharges {
    pub returned: Vec<AuditFinding>,
    /// Charges whose refund did not work.
    pub kept: Vec<AuditFinding>,
    /// Providers that did not answer.
    pub silent: Vec<String>,
    /// Whether to ask again.
    pub has_more: bool,
}

/// Compares a page of paid reservations with our payments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditTickets {
    /// The `next` of the page before.
    #[serde(default)]
    pub after: Option<Uuid>,
}

/// The answer of [`AuditTickets`]: a page of paid reservations beside our payments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TicketAudit {
    pub reservations: u64,
    pub payments: u64,
    pub differences: Vec<AuditFinding>,
    /// Null at the end.
    #[serde(default)]
    pub next: Option<Uuid>,
}

/// Asks which payments of an event did not work, for its live board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPaymentFigures {
    pub event_id: Uuid,
}

/// The answer of [`GetPaymentFigures`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentFigures {
    /// Payments that the provider was asked for and did not charge.
    pub declined: u64,
    /// Payments of which only the provider knows whether they were charged.
    pub unclear: u64,
}

/// Asks for everything that is stored about a user, for the copy of their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPaymentRecords {
    pub user_id: Uuid,
}

/// The answer of [`GetPaymentRecords`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRecordsAnswer {
    /// As plain JSON by table.
    pub records: serde_json::Value,
}

/// [`ListPayablePayments`] answers for at most this many payables at once.
pub const PAYABLES_PER_CALL_MAX: usize = 100;

/// Asks for the payments of these payables: a reservation and its transfers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListPayablePayments {
    pub payable_ids: Vec<Uuid>,
}

/// The answer of [`ListPayablePayments`]: the oldest first, a hundred at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayablePaymentsAnswer {
    pub payments: Vec<PayablePayment>,
}

/// A payment of a payable, with its refunds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PayablePayment {
    pub id: Uuid,
    pub payable_id: Uuid,
    pub user_id: Uuid,
    /// As the administrators' operations name it, for example `confirmed`.
    pub status: String,
    #[serde(default)]
    pub method: Option<String>,
    pub amount: Won,
    #[serde(default)]
    pub failure_code: Option<String>,
    pub created_at: Timestamp,
    /// When the provider charged it.
    #[serde(default)]
    pub approved_at: Option<Timestamp>,
    pub updated_at: Timestamp,
    pub refunds: Vec<PayableRefund>,
}

/// A refund of a [`PayablePayment`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PayableRefund {
    pub id: Uuid,
    pub amount: Won,
    /// As the administrators' operations name it, for example `done`.
    pub status: String,
    pub reason: String,
    /// The administrator who asked for it, if one did.
    #[serde(default)]
    pub requested_by: Option<Uuid>,
    pub created_at: Timestamp,
    #[serde(default)]
    pub done_at: Option<Timestamp>,
}

/// Asks which payments of an event have no outcome yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetUnclearPayments {
    pub event_id: Uuid,
}

/// The answer of [`GetUnclearPayments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnclearPaymentsAnswer {
    pub payments: u64,
    pub amount: Won,
}
