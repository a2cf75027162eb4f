//! The consumer: when the ticket service's inventory is ready, how ticket types change, how many
//! members an artist has, and which pictures posts show.

use urr_bus::{HandleError, HandlerContext, HandlerOutcome, decode_event};
use urr_contracts::events::community::{self, PostPicturesChanged};
use urr_contracts::events::inventory::{self, InventoryReady, TicketTypeChanged};
use urr_contracts::events::membership::{self, MembershipActivated, MembershipExpired};
use urr_kernel::{EventData, Timestamp};
use urr_storage::{Tx, storable_time};

use crate::artists::store::member_upsert;
use crate::events::rules::{EventId, EventKind, EventRecord, TicketType, check_ticket_type};
use crate::events::store::{
    event_find, event_mark_ready, event_set_inventory_problem, event_update_from_ticket_types,
    ticket_type_upsert,
};
use crate::images::fan_store::{image_delete_unused, post_pictures_replace};
use crate::revision::{catalog_lock, revision_bump};

/// The consumer group of the catalogue.
pub const GROUP: &str = "catalog-service-group";

pub const CONSUMED_TOPICS: &[&str] = &[inventory::TOPIC, membership::TOPIC, community::TOPIC];

/// The types that [`handle`] handles. It ignores others.
pub const CONSUMED_TYPES: &[&str] = &[
    InventoryReady::TYPE,
    TicketTypeChanged::TYPE,
    MembershipActivated::TYPE,
    MembershipExpired::TYPE,
    PostPicturesChanged::TYPE,
];

pub fn handle(
    tx: &mut Tx<'_>,
    event: &urr_kernel::DomainEvent,
    _context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    match event.event_type.as_str() {
        InventoryReady::TYPE => handle_inventory_ready(tx, &decode_event(event)?),
        TicketTypeChanged::TYPE => handle_ticket_type_changed(tx, &decode_event(event)?),
        // Cached answers are not dropped for it: numbers of members may be some seconds old.
        MembershipActivated::TYPE => {
            let MembershipActivated { membership_id, artist_id, .. } = decode_event(event)?;
            member_upsert(tx, membership_id, artist_id, true, storable_time(event.time))?;
            Ok(HandlerOutcome::Done)
        }
        MembershipExpired::TYPE => {
            let MembershipExpired { membership_id, artist_id, .. } = decode_event(event)?;
            member_upsert(tx, membership_id, artist_id, false, storable_time(event.time))?;
            Ok(HandlerOutcome::Done)
        }
        PostPicturesChanged::TYPE => {
            handle_pictures_changed(tx, &decode_event(event)?, storable_time(event.time))
        }
        _ => Ok(HandlerOutcome::Ignored),
    }
}

/// Pictures that the post showed before are deleted, unless something else shows them.
fn handle_pictures_changed(
    tx: &mut Tx<'_>,
    changed: &PostPicturesChanged,
    at: Timestamp,
) -> Result<HandlerOutcome, HandleError> {
    let PostPicturesChanged { post_id, image_ids } = changed;
    for removed in post_pictures_replace(tx, *post_id, image_ids, at)? {
        image_delete_unused(tx, &removed)?;
    }
    Ok(HandlerOutcome::Done)
}

/// Finds an event under the lock of the catalogue.
fn lock_and_find(
    tx: &mut Tx<'_>,
    id: EventId,
) -> Result<Result<EventRecord, HandlerOutcome>, HandleError> {
    catalog_lock(tx)?;
    let rejected = || HandlerOutcome::Rejected { reason: format!("there is no event {id}") };
    Ok(event_find(tx, id)?.ok_or_else(rejected))
}

/// Makes an event bookable if its inventory is complete.
fn handle_inventory_ready(
    tx: &mut Tx<'_>,
    inventory: &InventoryReady,
) -> Result<HandlerOutcome, HandleError> {
    let id = EventId(inventory.event_id);
    let event = match lock_and_find(tx, id)? {
        Ok(event) => event,
        Err(rejected) => return Ok(rejected),
    };
    if event.inventory_ready {
        return Ok(HandlerOutcome::Done);
    }
    let ordered = &event.ordered;
    let expected = (ordered.seats, ordered.ticket_types, ordered.places);
    let counted = (inventory.seats, inventory.ticket_types, inventory.total);
    if counted != expected {
        let problem = format!(
            "{} seats, {} ticket types and {} places were ordered; {}, {} and {} were made",
            expected.0, expected.1, expected.2, counted.0, counted.1, counted.2
        );
        event_set_inventory_problem(tx, id, &problem)?;
        tracing::error!(event_id = %id, problem, "an event cannot be booked");
        return Ok(HandlerOutcome::Rejected { reason: problem });
    }
    event_mark_ready(tx, id)?;
    revision_bump(tx)?;
    Ok(HandlerOutcome::Done)
}

/// Shows a ticket type as the ticket service sells it, whatever was ordered.
fn handle_ticket_type_changed(
    tx: &mut Tx<'_>,
    changed: &TicketTypeChanged,
) -> Result<HandlerOutcome, HandleError> {
    let id = EventId(changed.event_id);
    let event = match lock_and_find(tx, id)? {
        Ok(event) => event,
        Err(rejected) => return Ok(rejected),
    };
    if event.kind != EventKind::Standing {
        return Ok(HandlerOutcome::Rejected { reason: format!("the event {id} has seats") });
    }
    let ticket_type = TicketType {
        id: changed.ticket_type_id,
        name: changed.name.clone(),
        description: changed.description.clone(),
        price: changed.price,
        total: changed.total,
    };
    check_ticket_type(&ticket_type).map_err(|invalid| HandleError::Poison(invalid.to_string()))?;
    if ticket_type_upsert(tx, id, &ticket_type, changed.fence)? {
        event_update_from_ticket_types(tx, id)?;
        revision_bump(tx)?;
    }
    Ok(HandlerOutcome::Done)
}
