//! Internal calls to the payment service: the audit of the money, for operators.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::Caller;

use super::InternalCall;

const OPERATOR: &[Caller] = &[Caller::Operator];
/// An audit reads whole tables and asks providers.
const AUDIT_DEADLINE: Duration = Duration::from_secs(30);

pub const AUDIT_LEDGER: InternalCall =
    InternalCall::get("payment.audit.ledger", "/internal/payment/audit", OPERATOR, AUDIT_DEADLINE);

pub const AUDIT_PROVIDER: InternalCall = InternalCall::get(
    "payment.audit.provider",
    "/internal/payment/audit/provider",
    OPERATOR,
    AUDIT_DEADLINE,
);

pub const AUDIT_TICKETS: InternalCall = InternalCall::get(
    "payment.audit.tickets",
    "/internal/payment/audit/tickets",
    OPERATOR,
    AUDIT_DEADLINE,
);

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

/// The answer of [`AUDIT_LEDGER`]: the proof of the ledger, and the payments that do not proceed.
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
    pub stuck: Vec<AuditFinding>,
}

/// The query of [`AUDIT_PROVIDER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAuditQuery {
    pub since: Timestamp,
}

/// The answer of [`AUDIT_PROVIDER`]: the providers' payments beside ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderAudit {
    pub providers: Vec<String>,
    pub since: Timestamp,
    pub compared: u64,
    /// Orders that had been given up and are tried again.
    pub reopened: Vec<String>,
    pub differences: Vec<AuditFinding>,
    /// Providers whose answer is missing or incomplete.
    #[serde(default)]
    pub silent: Vec<String>,
}

/// The query of [`AUDIT_TICKETS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketAuditQuery {
    /// The `next` of the page before.
    #[serde(default)]
    pub after: Option<Uuid>,
}

/// The answer of [`AUDIT_TICKETS`]: a page of paid reservations beside our payments.
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
