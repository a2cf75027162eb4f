//! The waiting rooms as a service: the same cases on SQLite with rooms in memory, and on PostgreSQL
//! with rooms in Redis.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod autopilot;
mod check;
mod consumer;
mod crowd;
mod draw;
mod fixture;
mod internal;
mod jobs;
mod leave;
mod live;
mod presale;
mod reminders;
mod stats_publisher;
mod status;
mod stream;
mod wait_estimate;
mod wait_shapes;
