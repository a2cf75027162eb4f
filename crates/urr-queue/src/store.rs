//! The SQL of the waiting rooms' keeper: small functions that take a transaction.

pub mod audit;
pub mod draws;
pub mod event_projection;
pub mod observations;
pub mod slot_ends;
pub mod reminders;
pub mod rooms;
pub mod room_settings;
