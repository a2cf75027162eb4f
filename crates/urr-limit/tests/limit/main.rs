//! The contract of the limiter: the same cases in memory, on Redis and on a Redis Cluster, and what
//! happens when Redis dies, hangs or forgets.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

mod contract;
mod failures;
mod time;
mod world;
