//! The rules of the ticket office: no clock, no I/O, no async.

pub mod best;
pub mod hold;
pub mod reservation;
pub mod sale;
pub mod stock;
pub mod swap;
pub mod ticket_number;
pub mod transition;
