//! What a payment is and what it may do next. No clock, no database, no network.

pub mod charge_outcome;
pub mod claim_timeouts;
pub mod ledger;
pub mod ledger_audit;
pub mod payment;
pub mod refund;
#[cfg(test)]
mod refund_histories;
pub mod settlement;
