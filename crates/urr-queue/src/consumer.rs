//! Consumes domain events: from the catalog what is sold and when, from the ticket service who has
//! bought.
//!
//! The result depends neither on the order in which the messages of an event arrive nor on how
//! often: they are merged into one row per event.

use urr_bus::{HandleError, HandlerContext, HandlerOutcome, decode_event};
use urr_contracts::events::catalog::{
    self, CatalogEventStatus, EventCancelled, EventCreated, EventDeleted, EventSnapshot,
    EventUpdated,
};
use urr_contracts::events::reservation::{self, ReservationConfirmed};
use urr_kernel::{DomainEvent, EventData, Timestamp};
use urr_storage::Tx;

use crate::RoomEventStatus;
use crate::store::event_projection::{EventUpdate, event_merge};
use crate::store::slot_ends::{self, SlotEnd};

/// The consumer group.
pub const GROUP: &str = "queue-service-group";

pub const TOPICS: &[&str] = &[catalog::TOPIC, reservation::TOPIC];

/// The types that [`handle`] handles. It ignores others.
pub const TYPES: &[&str] = &[
    EventCreated::TYPE,
    EventUpdated::TYPE,
    EventCancelled::TYPE,
    EventDeleted::TYPE,
    ReservationConfirmed::TYPE,
];

/// Merges what an event is, or notes that a user has bought.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    let update = match event.event_type.as_str() {
        EventCreated::TYPE => update(decode_event::<EventCreated>(event)?.0)?,
        EventUpdated::TYPE => update(decode_event::<EventUpdated>(event)?.0)?,
        EventCancelled::TYPE => {
            let event_id = decode_event::<EventCancelled>(event)?.event_id;
            EventUpdate { event_id, status: RoomEventStatus::Cancelled, facts: None }
        }
        EventDeleted::TYPE => {
            let event_id = decode_event::<EventDeleted>(event)?.event_id;
            EventUpdate { event_id, status: RoomEventStatus::Deleted, facts: None }
        }
        ReservationConfirmed::TYPE => {
            let confirmed = decode_event::<ReservationConfirmed>(event)?;
            slot_ends::slot_end_insert(tx, &slot_end(&confirmed, event.time))?;
            return Ok(HandlerOutcome::Done);
        }
        _ => return Ok(HandlerOutcome::Ignored),
    };
    event_merge(tx, update, context.now)?;
    Ok(HandlerOutcome::Done)
}

fn update(event: EventSnapshot) -> Result<EventUpdate, HandleError> {
    if event.revision < 1 {
        return Err(HandleError::Poison(format!("there is no revision {}", event.revision)));
    }
    if event.sale_starts_at >= event.sale_ends_at {
        return Err(HandleError::Poison("the sale ends before it begins".to_owned()));
    }
    Ok(EventUpdate {
        event_id: event.event_id,
        status: match event.status {
            CatalogEventStatus::Cancelled => RoomEventStatus::Cancelled,
            _ => RoomEventStatus::Open,
        },
        facts: Some(event),
    })
}

fn slot_end(confirmed: &ReservationConfirmed, bought_at: Timestamp) -> SlotEnd {
    let reservation = &confirmed.reservation;
    SlotEnd {
        reservation_id: reservation.reservation_id,
        event_id: reservation.event_id,
        user_id: reservation.user_id,
        bought_at,
    }
}
