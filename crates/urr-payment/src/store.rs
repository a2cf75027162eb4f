//! The tables of the payment service. Every function runs inside the caller's transaction.

pub mod attempts;
pub mod checks;
pub mod keys;
pub mod ledger;
pub mod listing;
pub mod payments;
pub mod refunds;
pub mod webhooks;

#[cfg(test)]
mod plans;
