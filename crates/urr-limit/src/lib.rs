//! Rate limits: who may do something how often, in memory or shared through Redis.
//!
//! One contract for both forms. A bucket never lets more than `burst` through at once, and in any
//! stretch of time `t` never more than `burst` + `per_minute` · `t`; a refused request takes
//! nothing. It is GCRA (`pace.rs`): one number per bucket and no log of requests (P-8).
//!
//! - In memory the time is the given clock's. Memory is bounded; `memory.rs` says how.
//! - In Redis the time is the server's, so that replicas with different clocks agree, and a check is
//!   one script on one key. If Redis fails, the memory of this process decides: never open (G4). It
//!   has followed what Redis said, so a failure gives nobody a second burst from the same process.
//!   Each process then counts alone: with n of them a client may get n times its quota.
//! - A clock that jumps back neither opens a bucket nor blocks it for longer than a full one is.
//!
//! Deliberately absent: what a bucket means. Callers name it, as in `booking:user:<id>`, and always
//! use the same quota for it. Names are visible in Redis: put no personal data into them.

mod limiter;
mod memory;
mod pace;
mod shared;

pub use self::limiter::{Limiter, LimiterStats};
pub use self::pace::{Decision, Quota};
