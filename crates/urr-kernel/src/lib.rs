//! What every crate shares: ids, money, time, secrets, the envelope of events, and rules that more
//! than one service applies.
//!
//! Deliberately absent: async, SQL, HTTP, files and the process environment. Time, ids and
//! randomness are passed in as values, so that a test or a simulation can decide them.

mod cancel_policy;
mod causes;
mod clock;
mod context;
mod event;
pub mod hex;
mod id;
mod idempotency;
mod korea;
mod language;
mod money;
mod named_enum;
mod panic;
pub mod percent;
pub mod search;
mod secret;
mod span;
mod text;
mod ticket_type;
mod tier;

pub use cancel_policy::{CancelPolicy, FeeBand, GracePeriod, InvalidCancelPolicy};
pub use causes::{causes, error_chain};
pub use clock::{Clock, truncate_to_micros};
pub use context::{CallContext, InvalidTraceparent, TraceContext};
pub use event::{DecodeEventError, DomainEvent, EventData, SPEC_VERSION};
pub use id::{IdSource, first_id_at};
pub use idempotency::{IdempotencyKey, InvalidIdempotencyKey};
pub use jiff::Timestamp;
pub use korea::{KOREA, start_of_korean_date, start_of_korean_day};
pub use language::Language;
pub use money::{MoneyOverflow, Won};
pub use named_enum::UnknownName;
pub use panic::panic_text;
pub use secret::Secret;
/// For [`define_id!`].
#[doc(hidden)]
pub use serde;
pub use span::{FinishedSpan, SPAN_TARGET, SpanKind};
pub use text::{UnfitText, fits_in_line, mask_email, one_line, paragraphs};
pub use ticket_type::{InvalidTicketType, TicketTypeDraft, limits as ticket_type_limits};
pub use tier::{Tier, presale_delay};
pub use uuid::Uuid;
