//! The contract of waiting rooms: the same cases in memory, on one Redis and on a Redis Cluster;
//! who comes first is first; a simple model beside the rooms; and a process that is killed.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

#[macro_use]
mod fixture;

mod admit;
mod burst;
mod check;
mod clear;
mod crash;
mod crowd;
mod draw;
mod fairness;
mod leave;
mod limits;
mod locate;
mod memory_journal;
mod memory_persistence;
mod model;
mod redis_failures;
mod redis_persistence;
mod redis_replicas;
mod redis_restart;
mod relocation;
mod slots;
mod sweep;
