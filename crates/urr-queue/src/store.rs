//! The SQL of the waiting rooms' keeper: small functions that take a transaction.

pub mod audit;
pub mod draws;
pub mod news;
pub mod observations;
pub mod purchases;
pub mod reminders;
pub mod rooms;
pub mod wishes;
