//! What the waiting rooms learn: from the catalogue what is sold and when, from the ticket office
//! who has bought.
//!
//! The result does not depend on the order in which the news of an event arrive, nor on how often:
//! they are merged into one row per event.

mod payload;

use serde::de::DeserializeOwned;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Timestamp, Uuid};
use urr_storage::Tx;

use self::payload::{EventEnded, EventFacts, ReservationConfirmed};
use crate::EventStatus;
use crate::store::event_projection::{self, EventUpdate};
use crate::store::slot_ends::{self, SlotEnd};

/// The name of the waiting rooms among the consumers.
pub const GROUP: &str = "queue-service-group";

/// The topics that they listen to.
pub const TOPICS: &[&str] = &["catalog-events", "reservation-events"];

/// Notes what an event is, or that someone has bought.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    match event.event_type.as_str() {
        "EVENT_CREATED" | "EVENT_UPDATED" => {
            let facts: EventFacts = decode(event)?;
            let event_id = facts.event_id;
            follow(tx, event_id, facts.into_news().map_err(HandleError::Poison)?, context.now)
        }
        "EVENT_CANCELLED" => end(tx, event, EventStatus::Cancelled, context.now),
        "EVENT_DELETED" => end(tx, event, EventStatus::Deleted, context.now),
        "RESERVATION_CONFIRMED" => {
            let ReservationConfirmed { reservation_id, event_id, user_id } = decode(event)?;
            let purchase = SlotEnd { reservation_id, event_id, user_id, bought_at: event.time };
            slot_ends::slot_end_insert(tx, &purchase)?;
            Ok(Handled::Done)
        }
        _ => Ok(Handled::Ignored),
    }
}

fn end(
    tx: &mut Tx<'_>,
    event: &Event,
    status: EventStatus,
    now: Timestamp,
) -> Result<Handled, HandleError> {
    let EventEnded { event_id } = decode(event)?;
    follow(tx, event_id, EventUpdate { status, facts: None }, now)
}

fn follow(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    event_projection: EventUpdate,
    now: Timestamp,
) -> Result<Handled, HandleError> {
    event_projection::news_merge(tx, event_id, event_projection, now)?;
    Ok(Handled::Done)
}

fn decode<D: DeserializeOwned>(event: &Event) -> Result<D, HandleError> {
    D::deserialize(&event.data).map_err(|error| {
        let kind = &event.event_type;
        HandleError::Poison(format!("the data of a {kind} is not what its type promises: {error}"))
    })
}
