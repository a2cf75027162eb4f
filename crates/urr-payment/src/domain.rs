//! What a payment is and what it may do next. No clock, no database, no network.

pub mod books;
pub mod charge;
pub mod patience;
pub mod payment;
pub mod postings;
pub mod refund;
