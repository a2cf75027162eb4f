//! The mail service: the same cases on SQLite and on PostgreSQL, with an SMTP server that fails on
//! demand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alerts;
mod attachments;
mod consumer;
mod delivery;
mod fixture;
mod http;
mod links;
mod peers;
mod smtp;
mod smtp_server;
mod templates;
