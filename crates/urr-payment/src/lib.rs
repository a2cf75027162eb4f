//! Payments: every charge ends in a ticket or a refund.

pub mod provider;
