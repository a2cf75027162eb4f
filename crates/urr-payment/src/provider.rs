//! Those who move the money: one small interface, several providers.
//!
//! A provider never decides alone whether something worked. Its answer is one of three: it did, it
//! did not, or nobody knows. What nobody knows is asked for later, never assumed.

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

/// Nobody answered in time.
pub const TIMEOUT: &str = "TIMEOUT";
/// No connection came about. This call moved nothing; an earlier one may have.
pub const UNREACHABLE: &str = "UNREACHABLE";
/// The connection broke.
pub const INTERRUPTED: &str = "INTERRUPTED";
/// The provider kept failing and is left alone for a while.
pub const CIRCUIT_OPEN: &str = "CIRCUIT_OPEN";
/// There is an answer, and nobody can read it.
pub const UNREADABLE: &str = "UNREADABLE";
/// The provider says that it is done, and what it did is not what it was asked for.
pub const MISMATCH: &str = "MISMATCH";

/// Codes that are about our credential, and about nobody's payment.
const CREDENTIAL_REFUSED: &[&str] = &[
    "FORBIDDEN",
    "FORBIDDEN_REQUEST",
    "HTTP_401",
    "INCORRECT_BASIC_AUTH_FORMAT",
    "INVALID_API_KEY",
    "UNAUTHORIZED",
    "UNAUTHORIZED_KEY",
];

/// Codes that end nothing: ours for no answer or none that can be read, and those by which a
/// provider says that it is at it, or that we are too many.
const NOT_FINAL: &[&str] = &[
    TIMEOUT,
    UNREACHABLE,
    INTERRUPTED,
    CIRCUIT_OPEN,
    UNREADABLE,
    MISMATCH,
    "CANCELLATION_REQUESTED",
    "HTTP_429",
    "IDEMPOTENCY_OUTSTANDING_REQUEST",
    "IDEMPOTENT_REQUEST_PROCESSING",
    "TOO_MANY_REQUESTS",
];

/// Whether a provider refuses us, whatever we ask: somebody has to look at the credential.
pub(crate) fn is_about_credential(code: &str) -> bool {
    CREDENTIAL_REFUSED.contains(&code)
}

/// Whether a code is the provider's own last word to a request: it repeats it by the request's key.
pub(crate) fn is_final_answer(code: &str) -> bool {
    !NOT_FINAL.contains(&code) && !is_about_credential(code)
}

/// What somebody is to be charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeRequest {
    pub order_id: String,
    /// What the provider gave the buyer's browser.
    pub payment_key: String,
    pub amount: Won,
    /// The same for every attempt at this charge.
    pub idempotency_key: String,
}

/// What is to be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundRequest {
    pub order_id: String,
    pub payment_key: String,
    pub amount: Won,
    /// What was not given back before this.
    pub remaining: Won,
    pub reason: String,
    /// The same for every attempt at this return.
    pub idempotency_key: String,
}

/// A payment as its provider has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderPayment {
    pub order_id: String,
    /// PortOne names a payment by its order: there it is the key that was asked with, or else the
    /// id of the transaction.
    pub payment_key: String,
    /// What the provider calls the charge, if that is not the key.
    pub transaction_id: Option<String>,
    pub amount: Won,
    pub currency: String,
    pub state: ProviderState,
    /// Given back so far.
    pub refunded: Won,
    pub method: String,
    pub approved_at: Option<Timestamp>,
    pub receipt_url: Option<String>,
}

impl ProviderPayment {
    /// What the provider calls the charge: no two are called the same.
    pub fn provider_key(&self) -> &str {
        self.transaction_id.as_deref().unwrap_or(&self.payment_key)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderState {
    /// The buyer is still at it.
    Open,
    /// The buyer was given an account into which the money can be paid.
    Deposit,
    Paid,
    /// All of it was given back.
    Refunded,
    /// It will not be paid any more.
    Dead,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderOutcome<T> {
    Done(T),
    /// The provider says no, and that it has moved nothing.
    Declined {
        code: String,
    },
    /// Nothing was sent: this call has moved nothing. An earlier one may have.
    Unsent {
        code: String,
    },
    /// No answer, or one that does not tell. It may have moved the money.
    Unknown {
        code: String,
    },
}

/// What is known of a payment at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderLookup {
    Payment(ProviderPayment),
    /// The provider has never heard of it: nothing was charged.
    NotFound,
    /// No answer.
    Unknown {
        code: String,
    },
}

/// An order whose money moved, and what the provider's list itself tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedOrder {
    pub order_id: String,
    pub state: ListedState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedState {
    Known(ProviderPayment),
    /// So much was taken, and nothing else happened in the span.
    Charged(Won),
    /// One has to ask.
    Unclear,
}

/// What moved at the provider in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderListing {
    /// Each order once.
    Orders(Vec<ListedOrder>),
    /// No answer, or not a whole one.
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

/// What is told of another order is told of none.
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

/// A call may take so long.
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

    /// What the page shows the provider's script. It is public.
    pub fn client_key(&self) -> &str {
        match self {
            ProviderClient::Sandbox(_) => "sandbox",
            ProviderClient::Toss(toss) => toss.client_key(),
            ProviderClient::PortOne(portone) => portone.channel_key(),
        }
    }

    /// The shop, where the provider's script asks for it. It is public.
    pub fn store_id(&self) -> Option<&str> {
        match self {
            ProviderClient::Sandbox(_) | ProviderClient::Toss(_) => None,
            ProviderClient::PortOne(portone) => Some(portone.store_id()),
        }
    }

    /// How long a call may take.
    pub(crate) fn timeout(&self) -> Duration {
        match self {
            ProviderClient::Sandbox(sandbox) => sandbox.timeout(),
            ProviderClient::Toss(toss) => toss.timeout(),
            ProviderClient::PortOne(portone) => portone.timeout(),
        }
    }

    /// Takes the money that the buyer has agreed to. Done is done as asked: the same order, key,
    /// amount and currency; or the buyer was given an account to pay into.
    pub async fn confirm(&self, charge: &ChargeRequest) -> ProviderOutcome<ProviderPayment> {
        let outcome = with_each!(self, provider => provider.confirm(charge).await);
        only_if(outcome, |payment| {
            is_charged(charge, payment) || is_account(&charge.order_id, payment)
        })
    }

    /// Closes the account that the buyer of an order was given. Done: nobody can pay into it.
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

    /// Gives money back. Done is done as asked: the same order, and no more is left than should be.
    pub async fn cancel(&self, what: &RefundRequest) -> ProviderOutcome<ProviderPayment> {
        let outcome = with_each!(self, provider => provider.cancel(what).await);
        only_if(outcome, |payment| is_returned(what, payment))
    }

    /// What the provider knows of an order.
    pub async fn find(&self, order_id: &str, payment_key: Option<&str>) -> ProviderLookup {
        let found = with_each!(self, provider => provider.find(order_id, payment_key).await);
        of_order(order_id, found)
    }

    /// The orders whose money moved from `from` on and before `to`, by the provider's clock.
    /// However this ends, it closes nothing to those who pay.
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

    /// What the provider knows of an order, for whoever compares the books: a breaker of their own
    /// sees to it that nobody who pays notices when that fails.
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

    /// Reads a message of the provider. It is only a hint to look: none if it tells of nothing
    /// that concerns us.
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

/// A provider that did something else than it was asked for has not done it. What it did do, one
/// has to ask.
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
