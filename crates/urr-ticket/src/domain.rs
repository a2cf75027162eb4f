//! The rules of the ticket office: no clock, no I/O, no async.

pub mod best;
pub mod hold;
pub mod membership;
pub mod number;
pub mod points;
pub mod refund;
pub mod reservation;
pub mod sale;
pub mod stock;
pub mod swap;
pub mod transfer;
pub mod transition;
