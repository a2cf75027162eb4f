//! Those who move the money: one small interface, several providers.
//!
//! A provider never decides alone whether something worked. Its answer is one of three: it did, it
//! did not, or nobody knows. What nobody knows is asked for later, never assumed.

mod sandbox;

use std::time::Duration;

use urr_kernel::{Timestamp, Won};

pub use sandbox::Sandbox;

/// What somebody is to be charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub order_id: String,
    /// What the provider gave the buyer's browser.
    pub payment_key: String,
    pub amount: Won,
    /// The same for every attempt at this charge.
    pub idempotency_key: String,
}

/// What is to be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
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
    pub payment_key: String,
    pub amount: Won,
    pub currency: String,
    pub state: ProviderState,
    /// Given back so far.
    pub returned: Won,
    pub method: String,
    pub approved_at: Option<Timestamp>,
    pub receipt_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderState {
    /// The buyer is still at it.
    Open,
    Paid,
    /// All of it was given back.
    Returned,
    /// It will not be paid any more.
    Dead,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    Done(T),
    /// The provider says no, and that it has moved nothing.
    Declined { code: String },
    /// No answer, or one that does not tell. It may have moved the money.
    Unknown { code: String },
}

/// What is known of a payment at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Payment(ProviderPayment),
    /// The provider has never heard of it: nothing was charged.
    Nothing,
    /// No answer.
    Unknown { code: String },
}

/// A provider and how it is reached.
#[derive(Clone)]
pub enum Provider {
    Sandbox(Sandbox),
}

/// A call may take so long.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

macro_rules! with_each {
    ($provider:expr, $each:ident => $call:expr) => {
        match $provider {
            Provider::Sandbox($each) => $call,
        }
    };
}

impl Provider {
    pub fn name(&self) -> &'static str {
        match self {
            Provider::Sandbox(_) => "sandbox",
        }
    }

    /// Takes the money that the buyer has agreed to.
    pub async fn confirm(&self, charge: &Charge) -> Outcome<ProviderPayment> {
        with_each!(self, provider => provider.confirm(charge).await)
    }

    /// Gives money back.
    pub async fn cancel(&self, what: &Return) -> Outcome<ProviderPayment> {
        with_each!(self, provider => provider.cancel(what).await)
    }

    /// What the provider knows of an order.
    pub async fn find(&self, order_id: &str, payment_key: Option<&str>) -> Found {
        with_each!(self, provider => provider.find(order_id, payment_key).await)
    }
}
