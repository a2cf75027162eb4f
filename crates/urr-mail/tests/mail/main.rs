//! The contract of the mail service: the same cases on SQLite and on PostgreSQL, with a server that
//! speaks SMTP and fails when it is told to.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod door;
mod fixture;
mod peers;
mod smtp_server;
mod sending;
mod smtp;
mod templates;
mod writing;
