//! The chain from a seat to a ticket, a refund and the statistics, with all services behind the
//! public door: on the embedded engines, and on PostgreSQL, Redis and a real Kafka.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod announced;
mod control;
mod crowd;
mod fixture;
mod mails;
mod members;
mod outage;
mod poison;
mod purchase;
mod transfers;
