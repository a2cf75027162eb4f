//! The storage contract: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod batches;
mod failover;
mod failures;
mod fixture;
mod migrations;
mod outbox;
mod postgres_only;
mod postgres_tls;
mod sets;
mod sqlite_only;
mod transactions;
mod transfer;
