//! The tables of the payment service. Every function runs inside the caller's transaction.

pub mod audit_runs;
pub mod idempotency_keys;
pub mod ledger;
pub mod listing;
pub mod payments;
pub mod provider_calls;
pub mod refunds;
pub mod webhooks;

#[cfg(test)]
mod query_plans;
