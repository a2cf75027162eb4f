//! The rules of accounts: no clock, no randomness, no I/O, no async.

pub mod account;
pub mod email;
pub mod language;
pub mod password;
pub mod profile;
pub mod refresh;
pub mod social;
pub mod terms;
