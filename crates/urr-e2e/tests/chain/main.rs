//! The chain from a seat to a ticket, a refund and the statistics, with all services behind the
//! gateway: on the embedded engines, and on PostgreSQL, Redis and a real Kafka.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod books;
mod broker_outage;
mod community;
mod concurrent_purchases;
mod consistency_control;
mod dead_letters;
mod domain_events;
mod fixture;
mod mails;
mod memberships;
mod purchases;
mod transfers;
