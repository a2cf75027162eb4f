//! Servers and processes on this machine: PostgreSQL, Redis, Kafka and SQS on private ports, a mail
//! server, and a balancer in front of several processes. `urr cluster` and the test kit start them from here.
//!
//! Deliberately absent: what URR's own processes need. `urr` composes them.

mod balancer;
mod mail_server;
pub mod servers;
mod tls_terminator;

pub use balancer::{Balancer, LineFault};
pub use mail_server::MailServer;
pub use tls_terminator::TlsTerminator;
