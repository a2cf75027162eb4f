//! The contract of the catalogue: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod artists;
mod caching;
mod changing;
mod creating;
mod demo;
mod fixture;
mod images;
mod inventory;
mod listing;
mod searching;
mod statuses;
mod venues;
