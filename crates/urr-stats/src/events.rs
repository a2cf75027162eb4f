//! What the statistics learn from events.

use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::Event;
use urr_storage::Tx;

use crate::{day_in_korea, store};

/// The name of the statistics among the consumers.
pub const GROUP: &str = "stats-service-group";

/// The topics that are counted.
pub const TOPICS: &[&str] = &["catalog-events", "user-events"];

/// Counts an event on the day it happened.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &Event,
    _context: &HandlerContext,
) -> Result<Handled, HandleError> {
    store::activity_add(tx, day_in_korea(event.time), &event.event_type)?;
    Ok(Handled::Done)
}
