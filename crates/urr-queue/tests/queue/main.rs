//! The waiting rooms as a service: the same cases on SQLite with rooms in memory, and on PostgreSQL
//! with rooms in Redis.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod autopilot;
mod checking;
mod consuming;
mod crowd;
mod drawing;
mod estimating;
mod fixture;
mod internal;
mod jobs;
mod leaving;
mod observing;
mod presale;
mod reminding;
mod status;
mod stream;
