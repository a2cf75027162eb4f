//! The contract of accounts: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod administrators;
mod bot_check;
mod deleting;
mod fixture;
mod http;
mod identity_check;
mod jobs;
mod links;
mod measures;
mod own_data;
mod passwords;
mod personal_data;
mod refresh;
mod registration;
mod revocation;
mod social;
mod terms;
mod tickets;
