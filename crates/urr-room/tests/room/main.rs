//! The contract of waiting rooms: the same cases in memory, on one Redis and on a Redis Cluster;
//! who comes first is first; a simple model beside the rooms; and a process that is killed.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

#[macro_use]
mod fixture;

mod admitting;
mod burst;
mod checking;
mod clearing;
mod crash;
mod crowd;
mod drawing;
mod fairness;
mod leaving;
mod limits;
mod locating;
mod memory_journal;
mod memory_keeping;
mod model;
mod redis_failures;
mod redis_keeping;
mod redis_replicas;
mod redis_restart;
mod slots;
mod sweeping;
