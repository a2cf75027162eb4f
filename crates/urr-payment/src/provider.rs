//! Payment providers: one interface for the sandbox, Toss and PortOne.
//!
//! The outcome of a call is one of three: done, not done, or unknown. An unknown outcome is queried
//! later and never assumed.

mod http;
mod portone;
mod sandbox;
mod toss;
mod webhook;

use std::time::Duration;

use hyper::HeaderMap;
use urr_kernel::{Timestamp, Won};

pub use http::InvalidProviderCredential;
pub use portone::{PORTONE_ENDPOINT, PortOneClient, PortOneSettings};
pub use sandbox::{Sandbox, TestCard};
pub use toss::{TOSS_ENDPOINT, TossClient, TossSettings};
pub use webhook::{WebhookNotice, WebhookRejection};

/// Everything is paid in won.
pub const CURRENCY: &str = "KRW";

// Codes of our own, next to those that providers send.

/// The provider did not answer in time.
pub const TIMEOUT: &str = "TIMEOUT";
/// There was no connection. This call moved nothing; an earlier one may have.
pub const UNREACHABLE: &str = "UNREACHABLE";
/// The connection broke.
pub const INTERRUPTED: &str = "INTERRUPTED";
/// The breaker is open because the provider kept failing.
pub const CIRCUIT_OPEN: &str = "CIRCUIT_OPEN";
/// The answer cannot be parsed.
pub const UNREADABLE: &str = "UNREADABLE";
/// The provider did something else than it was asked for.
pub const MISMATCH: &str = "MISMATCH";
/// The provider answered about a payment of another store.
pub const STORE_MISMATCH: &str = "STORE_MISMATCH";

/// Codes about our credential, not about a payment.
const CREDENTIAL_REFUSED: &[&str] = &[
    "FORBIDDEN",
    "FORBIDDEN_REQUEST",
    "HTTP_401",
    "INCORRECT_BASIC_AUTH_FORMAT",
    "INVALID_API_KEY",
    "UNAUTHORIZED",
    "UNAUTHORIZED_KEY",
];

/// Codes that are not final: ours for a missing or unreadable answer, and those by which a provider
/// says that it is busy with the request or that we send too many.
const NOT_FINAL: &[&str] = &[
    TIMEOUT,
    UNREACHABLE,
    INTERRUPTED,
    CIRCUIT_OPEN,
    UNREADABLE,
    MISMATCH,
    STORE_MISMATCH,
    "CANCELLATION_REQUESTED",
    "HTTP_429",
    "IDEMPOTENCY_OUTSTANDING_REQUEST",
    "IDEMPOTENT_REQUEST_PROCESSING",
    "TOO_MANY_REQUESTS",
];

/// Whether the provider refuses our credential, which an operator has to look at.
pub(crate) fn is_about_credential(code: &str) -> bool {
    CREDENTIAL_REFUSED.contains(&code)
}

/// Whether a code is the provider's final answer to a request, which it repeats for the request's
/// key.
pub(crate) fn is_final_answer(code: &str) -> bool {
    !NOT_FINAL.contains(&code) && !is_about_credential(code)
}

/// A charge to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeRequest {
    pub order_id: String,
    /// The key that the provider gave the buyer's browser.
    pub payment_key: String,
    pub amount: Won,
    /// The same for every attempt at this charge.
    pub idempotency_key: String,
}

/// A refund to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundRequest {
    pub order_id: String,
    pub payment_key: String,
    pub amount: Won,
    /// What is left of the charge before this refund.
    pub remaining: Won,
    pub reason: String,
    /// The same for every attempt at this refund.
    pub idempotency_key: String,
}

/// The provider's record of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderPayment {
    pub order_id: String,
    /// PortOne identifies a payment by its order. There this is the key of the query, or else the
    /// transaction's id.
    pub payment_key: String,
    /// The provider's id of the charge, if that is not the key.
    pub transaction_id: Option<String>,
    pub amount: Won,
    pub currency: String,
    pub state: ProviderState,
    /// Refunded so far.
    pub refunded: Won,
    pub method: String,
    pub approved_at: Option<Timestamp>,
    pub receipt_url: Option<String>,
    pub channel: PaymentChannel,
}

/// Through which of the provider's channels a payment went. The buyer's browser chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentChannel {
    /// The one that we have configured, or the provider has only one.
    Configured,
    /// One for tests, which moves no money.
    Test,
    Other,
}

impl ProviderPayment {
    /// The provider's unique id of the charge.
    pub fn provider_key(&self) -> &str {
        self.transaction_id.as_deref().unwrap_or(&self.payment_key)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderState {
    /// The buyer has not finished the checkout.
    Open,
    /// The buyer was given a deposit account to transfer the money to.
    Deposit,
    Paid,
    /// All of it was refunded.
    Refunded,
    /// It can no longer be paid.
    Dead,
}

/// The outcome of a call that moves money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderOutcome<T> {
    Done(T),
    /// The provider refuses and has moved nothing.
    Declined {
        code: String,
    },
    /// Nothing was sent: this call moved nothing. An earlier one may have.
    Unsent {
        code: String,
    },
    /// There is no answer, or one that does not tell. The money may have moved.
    Unknown {
        code: String,
    },
}

/// The provider's answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderLookup {
    Payment(ProviderPayment),
    /// The provider does not know the order: nothing was charged.
    NotFound,
    /// No answer.
    Unknown {
        code: String,
    },
}

/// An order in a provider's list, and what the list itself says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedOrder {
    pub order_id: String,
    pub state: ListedState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedState {
    Known(ProviderPayment),
    /// This amount was charged, and nothing else happened in the time range.
    Charged(Won),
    /// The provider has to be asked about the order.
    Unclear,
}

/// The orders whose money moved in a time range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderListing {
    /// Each order once.
    Orders(Vec<ListedOrder>),
    /// There is no answer, or an incomplete one.
    Unknown { code: String },
}

impl<T> ProviderOutcome<T> {
    fn declined(code: impl Into<String>) -> ProviderOutcome<T> {
        ProviderOutcome::Declined { code: code.into() }
    }

    fn unknown(code: impl Into<String>) -> ProviderOutcome<T> {
        ProviderOutcome::Unknown { code: code.into() }
    }
}

impl ProviderLookup {
    fn unknown(code: impl Into<String>) -> ProviderLookup {
        ProviderLookup::Unknown { code: code.into() }
    }
}

impl ListedOrder {
    pub fn known(payment: ProviderPayment) -> ListedOrder {
        ListedOrder { order_id: payment.order_id.clone(), state: ListedState::Known(payment) }
    }
}

/// An answer about another order is no answer.
fn of_order(order_id: &str, found: ProviderLookup) -> ProviderLookup {
    match found {
        ProviderLookup::Payment(payment) if payment.order_id != order_id => {
            ProviderLookup::unknown(MISMATCH)
        }
        found => found,
    }
}

/// A provider and how it is reached.
#[derive(Clone)]
pub enum ProviderClient {
    Sandbox(Sandbox),
    Toss(TossClient),
    PortOne(PortOneClient),
}

/// The usual time limit of a call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

macro_rules! with_each {
    ($provider:expr, $each:ident => $call:expr) => {
        match $provider {
            ProviderClient::Sandbox($each) => $call,
            ProviderClient::Toss($each) => $call,
            ProviderClient::PortOne($each) => $call,
        }
    };
}

impl ProviderClient {
    pub fn name(&self) -> &'static str {
        match self {
            ProviderClient::Sandbox(_) => "sandbox",
            ProviderClient::Toss(_) => "toss",
            ProviderClient::PortOne(_) => "portone",
        }
    }

    /// The public key for the provider's script on the page.
    pub fn client_key(&self) -> &str {
        match self {
            ProviderClient::Sandbox(_) => "sandbox",
            ProviderClient::Toss(toss) => toss.client_key(),
            ProviderClient::PortOne(portone) => portone.channel_key(),
        }
    }

    /// The public id of the shop, if the provider's script needs one.
    pub fn store_id(&self) -> Option<&str> {
        match self {
            ProviderClient::Sandbox(_) | ProviderClient::Toss(_) => None,
            ProviderClient::PortOne(portone) => Some(portone.store_id()),
        }
    }

    /// The time limit of a call.
    pub(crate) fn timeout(&self) -> Duration {
        match self {
            ProviderClient::Sandbox(sandbox) => sandbox.timeout(),
            ProviderClient::Toss(toss) => toss.timeout(),
            ProviderClient::PortOne(portone) => portone.timeout(),
        }
    }

    /// Charges what the buyer has agreed to. `Done` means exactly as asked (the same order, key,
    /// amount and currency), or that the buyer was given a deposit account.
    pub async fn confirm(&self, charge: &ChargeRequest) -> ProviderOutcome<ProviderPayment> {
        let outcome = with_each!(self, provider => provider.confirm(charge).await);
        only_if(outcome, |payment| {
            is_charged(charge, payment) || is_account(&charge.order_id, payment)
        })
    }

    /// Closes the deposit account of an order. `Done` means that the buyer can no longer use it.
    pub async fn close_deposit(&self, charge: &ChargeRequest) -> ProviderOutcome<ProviderPayment> {
        let outcome = match self {
            ProviderClient::Sandbox(_) => ProviderOutcome::declined("NOT_FOUND_PAYMENT"),
            ProviderClient::Toss(toss) => toss.close_deposit(charge).await,
            ProviderClient::PortOne(portone) => portone.close_deposit(charge).await,
        };
        only_if(outcome, |payment| {
            payment.order_id == charge.order_id && payment.state == ProviderState::Dead
        })
    }

    /// Refunds. `Done` means exactly as asked: the same order, and no more left than expected.
    pub async fn cancel(&self, what: &RefundRequest) -> ProviderOutcome<ProviderPayment> {
        let outcome = with_each!(self, provider => provider.cancel(what).await);
        only_if(outcome, |payment| is_returned(what, payment))
    }

    /// Queries an order.
    pub async fn find(&self, order_id: &str, payment_key: Option<&str>) -> ProviderLookup {
        let found = with_each!(self, provider => provider.find(order_id, payment_key).await);
        of_order(order_id, found)
    }

    /// Lists the orders whose money moved from `from` on and before `to`, by the provider's clock. A
    /// failure does not open the breaker of those who pay.
    pub async fn list(&self, from: Timestamp, to: Timestamp) -> ProviderListing {
        let orders = match self {
            ProviderClient::Sandbox(sandbox) => sandbox
                .list(from, to)
                .await
                .map(|payments| payments.into_iter().map(ListedOrder::known).collect()),
            ProviderClient::Toss(toss) => toss.list_orders(from, to).await,
            ProviderClient::PortOne(portone) => portone.list_orders(from, to).await,
        };
        match orders {
            Ok(orders) => ProviderListing::Orders(orders),
            Err(code) => ProviderListing::Unknown { code },
        }
    }

    /// Queries an order for the reconciliation, with a breaker of its own, so that failures there do
    /// not affect those who pay.
    pub async fn find_for_reconciliation(
        &self,
        order_id: &str,
        payment_key: Option<&str>,
    ) -> ProviderLookup {
        let found = match self {
            ProviderClient::Sandbox(sandbox) => sandbox.find(order_id, payment_key).await,
            ProviderClient::Toss(toss) => toss.find_for_reconciliation(order_id).await,
            ProviderClient::PortOne(portone) => {
                portone.find_for_reconciliation(order_id, payment_key).await
            }
        };
        of_order(order_id, found)
    }

    /// Parses a webhook. None if it is about something else than a payment.
    pub fn read_webhook(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<WebhookNotice>, WebhookRejection> {
        match self {
            ProviderClient::Sandbox(_) => Err(WebhookRejection::Unexpected),
            ProviderClient::Toss(_) => webhook::read_toss(headers, body),
            ProviderClient::PortOne(portone) => portone.read_webhook(headers, body, now),
        }
    }
}

/// If the provider did something else than it was asked for, the outcome is unknown until the order
/// is queried.
fn only_if(
    outcome: ProviderOutcome<ProviderPayment>,
    is_as_asked: impl FnOnce(&ProviderPayment) -> bool,
) -> ProviderOutcome<ProviderPayment> {
    match outcome {
        ProviderOutcome::Done(payment) if !is_as_asked(&payment) => {
            ProviderOutcome::unknown(MISMATCH)
        }
        outcome => outcome,
    }
}

fn is_charged(charge: &ChargeRequest, payment: &ProviderPayment) -> bool {
    payment.state == ProviderState::Paid
        && payment.order_id == charge.order_id
        && payment.payment_key == charge.payment_key
        && payment.amount == charge.amount
        && payment.currency == CURRENCY
        && payment.refunded == Won::ZERO
}

fn is_account(order_id: &str, payment: &ProviderPayment) -> bool {
    payment.order_id == order_id && payment.state == ProviderState::Deposit
}

fn is_returned(what: &RefundRequest, payment: &ProviderPayment) -> bool {
    let left = payment.amount.minus(payment.refunded);
    let expected = what.remaining.minus(what.amount);
    payment.order_id == what.order_id
        && payment.currency == CURRENCY
        && matches!((left, expected), (Ok(left), Ok(expected)) if left <= expected)
}
