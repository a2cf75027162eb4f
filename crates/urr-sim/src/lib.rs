//! A deterministic simulation of a sale: waiting room, holds, payments, expiry, relays and
//! consumers in one thread, under virtual time, with faults between any two steps.
//!
//! The services, their SQL and the loops of the bus are the real ones. Simulated are the time, the
//! network, the schedule and the crashes: a seed decides all of them ([`run`]). An [`oracle`] looks
//! at the tables after every commit. A run first lets people act and things fail, each run with
//! another set of faults ([`faults`]); then everything heals and must come to its end. A run that
//! breaks a rule is made short ([`shrink`]); its seed repeats it step by step.
//!
//! That the oracle would notice is tested by switching off guards ([`sabotage`]).
//!
//! Not under the simulated schedule, and why:
//! - **PostgreSQL, Redis, Kafka.** They are other programs with threads and clocks of their own.
//!   What they add to the faults is simulated: answers of commits that are lost, several processes
//!   on one database.
//! - **The gateway, HTTP and tokens.** They decide nothing that lasts; they have their own tests.
//! - **The start of a process.** It recovers from its tables without an interruption.
//! - **Draws of a waiting room.** They run on a thread of their own, on a copy of the line.
//! - **Auth, catalog, mail, community.** The events of a catalog are written directly. A consumer of
//!   its own counts every event once in place of the others.
//! - **The periodic loops of jobs.** The schedule begins their work itself.

pub mod databases;
pub mod fans;
pub mod faults;
mod jobs;
mod network;
pub mod oracle;
mod panics;
pub mod plan;
mod random;
pub mod run;
pub mod sabotage;
pub mod search;
mod services;
pub mod shrink;
mod trace;

pub use run::{RunOptions, RunReport};
pub use trace::TraceHash;
