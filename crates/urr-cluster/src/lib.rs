//! Servers and processes on this machine: PostgreSQL, Redis, Kafka and SQS on private ports, and a
//! balancer in front of several processes. `urr cluster` and the test kit start them from here.
//!
//! Deliberately absent: what URR's own processes need. `urr` composes them.

mod balancer;
pub mod servers;

pub use balancer::{Balancer, LineFault};
