//! The contract of the catalogue: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod artists;
mod dashboard;
mod demo;
mod event_changes;
mod event_creation;
mod event_lists;
mod fixture;
mod images;
mod inventory;
mod jobs;
mod operations;
mod organisers;
mod planning;
mod response_cache;
mod search;
mod venues;
