//! The contract of the payment service: the same cases on SQLite and on PostgreSQL, with the
//! sandbox's durable books and a ticket office that fails when it is told to.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attacks;
mod books;
mod buying;
mod commands;
mod crashing;
mod crowding;
mod door;
mod fixture;
mod hints;
mod office;
mod paying;
mod reconciling;
mod refunding;
mod unclear;
