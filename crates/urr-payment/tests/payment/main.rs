//! The contract of the payment service: the same cases on SQLite and on PostgreSQL, with the
//! sandbox's durable books and a ticket office that fails when it is told to.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attacks;
mod auditing;
mod books;
mod buying;
mod checking;
mod checkout;
mod clicks;
mod commands;
mod crashing;
mod crowding;
mod declining;
mod door;
mod fixture;
mod hints;
mod office;
mod others;
mod paying;
mod reconciling;
mod refunding;
mod resolving;
mod unclear;

#[path = "../providers/desk.rs"]
#[expect(dead_code, reason = "the providers' own tests use all of it")]
mod desk;
#[path = "../providers/fake_toss.rs"]
mod fake_toss;
