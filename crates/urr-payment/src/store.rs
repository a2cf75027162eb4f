//! The tables of the payment service. Every function runs in the caller's transaction.

pub mod audit_runs;
pub mod ledger;
pub mod organisers;
pub mod payments;
pub mod provider_calls;
pub mod purchase_sets;
pub mod refunds;
pub mod settlement;
pub mod transitions;
pub mod webhooks;

#[cfg(test)]
mod tests;
