//! The contract of the ticket office: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod auditing;
mod best;
mod booking;
mod cancelling;
mod changing;
mod check_in;
mod closing;
mod confirming;
mod contention;
mod door;
mod expiring;
mod fixture;
mod inventory;
mod map;
mod memberships;
mod mine;
mod model;
mod paying;
mod points;
mod presale;
mod pulse;
mod refunding;
mod reserving;
mod selling;
mod stalling;
mod standing;
mod statements;
mod stock;
mod telling;
mod transferring;
mod turns;
mod viewer;
mod waiting;
