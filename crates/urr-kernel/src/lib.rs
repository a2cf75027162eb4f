//! What every crate shares: ids, money, time, secrets and the envelope of events.
//!
//! Deliberately absent: async, SQL, HTTP, files and the process environment. Time, ids and
//! randomness are values that are handed in, so that a test or a simulation can decide them.

mod clock;
mod context;
mod event;
mod id;
mod money;
mod secret;
mod text;

pub use clock::{Clock, truncate_to_micros};
pub use context::{CallContext, InvalidTraceparent, TraceContext};
pub use event::{DecodeEventError, Event, EventData, SPEC_VERSION};
pub use id::IdSource;
pub use jiff::Timestamp;
pub use money::{MoneyOverflow, Won};
pub use secret::Secret;
pub use text::{UnfitText, one_line};
pub use uuid::Uuid;
