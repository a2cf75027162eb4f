//! The SQL of the queue service: small functions that take a transaction.

pub mod draws;
pub mod event_projection;
pub mod observations;
pub mod reminders;
pub mod rooms;
pub mod slot_ends;
