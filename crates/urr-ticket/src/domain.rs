//! The rules of the ticket office: no clock, no I/O, no async.

pub mod reservation;
pub mod sale;
