//! The contract of seat locks: the same cases in memory, on one Redis and on a Redis Cluster, and
//! what happens when Redis forgets, dies or hangs.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

mod contract;
mod failures;
mod world;
