//! What a payment is and what it may do next. No clock, no database, no network.

pub mod charge;
pub mod ledger;
pub mod ledger_audit;
pub mod payment;
pub mod refund;
pub mod timeouts;
