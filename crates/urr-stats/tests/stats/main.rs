//! The statistics: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod consumer;
mod counting;
mod endpoints;
mod fixture;
mod live;
mod model;
mod queues;
mod rebuild;
