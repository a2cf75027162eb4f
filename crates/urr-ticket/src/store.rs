//! The SQL of the ticket office: small functions that take a transaction.

pub mod sales;
