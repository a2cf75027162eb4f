//! Rehearses a sale: virtual fans use a running URR over HTTP as the pages do, and everything that
//! happens to them is measured.
//!
//! - The load is open: a fan acts when it wanted to act, however slow the server is, and a latency
//!   counts from that moment. A slow server is not excused by fans that wait for it.
//! - A seed decides what every fan does: arrival, seats, pauses, card. The same seed repeats the
//!   decisions, not the answers of the server.
//! - Every fan is a task with a timer. All fans share one limit of connections, and the wait for one is
//!   part of the latency.
//! - Some fans are programs that break the rules. None of them may succeed.
//!
//! Deliberately absent: what only the operator of the system can see. `urr audit` proves afterwards
//! that seats, money and statistics agree.

#![expect(clippy::float_arithmetic, reason = "times, rates and ratios for people, never money")]

mod accounts;
mod arrivals;
mod behaviour;
mod client;
mod compare;
mod connections;
mod expectation;
mod fairness;
mod fan;
mod faults;
mod histogram;
mod monitor;
mod plot;
mod recorder;
mod registration;
mod report;
mod report_html;
mod run;
#[cfg(test)]
mod run_tests;
mod sale;
mod seat_map;

pub use accounts::{FanAccount, read_accounts, write_accounts};
pub use arrivals::Arrivals;
pub use behaviour::{Behaviour, CARDS};
pub use client::{FanClient, FanRequest, FanResponse, Site};
pub use compare::compare;
pub use expectation::Expectation;
pub use faults::{FaultReport, ServerUsage, SyncTimes};
pub use recorder::LiveFigures;
pub use registration::register_fans;
pub use report::{RushEnding, RushReport};
pub use report_html::to_html;
pub use run::{RushPlan, run};
pub use sale::create_sale;
