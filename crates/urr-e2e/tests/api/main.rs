//! The interface of the whole system, on the embedded engines and on PostgreSQL with Kafka.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod artists;
mod booking;
mod catalog;
mod conventions;
mod documents;
mod fixture;
mod images;
mod queue_admin;
mod role_matrix;
mod route_coverage;
mod slot_attacks;
mod startup;
mod texts;
mod waiting_room;
