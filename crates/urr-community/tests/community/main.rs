//! The contract of the community: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod consumer;
mod fixture;
mod long_lists;
mod moderation;
mod points;
mod posts;
