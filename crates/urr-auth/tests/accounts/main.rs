//! The contract of accounts: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod administrators;
mod bot_check;
mod departing;
mod fixture;
mod housekeeping;
mod identity_check;
mod interface;
mod passwords;
mod personal_data;
mod refreshing;
mod registering;
mod revoking;
mod social;
mod terms;
