//! The projection of the catalog's events: creates, updates and closes sales.
//!
//! The result does not depend on the order in which the events about an event arrive, nor on how
//! often: they are merged into one row per event ([`CatalogState`]), and the sale follows that row.

pub(crate) mod store;

use std::collections::HashSet;

use urr_bus::{HandleError, HandlerContext, HandlerOutcome, decode_event};
use urr_contracts::events::catalog::{
    CatalogEventStatus, EventCancelled, EventCreated, EventDeleted, EventKind, EventSnapshot,
    EventUpdated, OrderedTicketType,
};
use urr_contracts::events::inventory::InventoryReady;
use urr_kernel::{DomainEvent, TicketTypeDraft, Timestamp, Uuid};
use urr_layout::Layout;
use urr_storage::{Tx, outbox, storable_time};

use crate::alerts::store::sale_alerts_recheck;
use crate::inventory::store::{NewSale, NewTicketType, SaleFacts, sale_create};
use crate::{Inventory, InventoryKind, SOURCE, SaleStatus};

/// What the catalog has announced about an event. Merging gives the same result in every order and
/// any number of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogState {
    pub status: SaleStatus,
    /// The newest revision; none if only the end of the event was announced so far.
    pub facts: Option<SaleFacts>,
}

impl CatalogState {
    fn of_snapshot(snapshot: &EventSnapshot) -> Result<CatalogState, HandleError> {
        let facts = sale_facts(snapshot).map_err(HandleError::Poison)?;
        let status = match snapshot.status {
            CatalogEventStatus::Cancelled => SaleStatus::Cancelled,
            _ => SaleStatus::Open,
        };
        Ok(CatalogState { status, facts: Some(facts) })
    }

    fn of_end(status: SaleStatus) -> CatalogState {
        CatalogState { status, facts: None }
    }

    /// The newer facts and the later status. An edit does not reopen an event that was closed.
    fn merge(self, other: CatalogState) -> CatalogState {
        let facts = self
            .facts
            .into_iter()
            .chain(other.facts)
            .max_by_key(|facts: &SaleFacts| facts.revision);
        CatalogState { status: self.status.max(other.status), facts }
    }

    /// Whether the event has begun and was not cancelled.
    fn has_taken_place(&self, now: Timestamp) -> bool {
        let has_begun = self.facts.as_ref().is_some_and(|facts| now >= facts.starts_at);
        has_begun && self.status == SaleStatus::Open
    }
}

/// Creates the sale with its seats and ticket types, counts and announces them.
pub fn create_sale(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    let EventCreated(snapshot) = decode_event(event)?;
    let (event_id, revision) = (snapshot.event_id, snapshot.revision);
    let new = new_sale(&snapshot).map_err(HandleError::Poison)?;
    let state = merge(tx, event_id, CatalogState::of_snapshot(&snapshot)?)?;
    let facts = state.facts.clone().expect("the created event has facts");
    let new = NewSale { facts, ..new };
    if !sale_create(tx, &new, context.now)? {
        return apply(tx, event_id, &state, event);
    }
    let ready = InventoryReady { revision, ..store::inventory_count(tx, event_id)? };
    if ready.ticket_types as usize != new.ticket_types.len() {
        let reason = "one of the ticket types belongs to another event";
        return Err(HandleError::Poison(reason.to_owned()));
    }
    outbox::append(tx, &context.event_metadata("ready", SOURCE), &ready)?;
    apply(tx, event_id, &state, event)
}

pub fn update_sale(tx: &mut Tx<'_>, event: &DomainEvent) -> Result<HandlerOutcome, HandleError> {
    let EventUpdated(snapshot) = decode_event(event)?;
    follow(tx, snapshot.event_id, CatalogState::of_snapshot(&snapshot)?, event)
}

pub fn cancel_sale(tx: &mut Tx<'_>, event: &DomainEvent) -> Result<HandlerOutcome, HandleError> {
    let cancelled: EventCancelled = decode_event(event)?;
    follow(tx, cancelled.event_id, CatalogState::of_end(SaleStatus::Cancelled), event)
}

/// Hides the sale. An event that has taken place is not refunded: visitors keep their tickets.
pub fn delete_sale(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    let EventDeleted { event_id, is_over, .. } = decode_event(event)?;
    let before = store::catalog_state_lock(tx, event_id)?;
    let handled = follow(tx, event_id, CatalogState::of_end(SaleStatus::Deleted), event)?;
    // A cancellation promised everybody their money; a later deletion does not take that back.
    let is_over = is_over.unwrap_or_else(|| before.has_taken_place(event.time));
    if is_over && before.status != SaleStatus::Cancelled {
        store::sale_mark_emptied(tx, event_id, context.now)?;
    }
    Ok(handled)
}

/// Merges the state and applies it to the sale, if there is one already.
fn follow(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    state: CatalogState,
    cause: &DomainEvent,
) -> Result<HandlerOutcome, HandleError> {
    let state = merge(tx, event_id, state)?;
    apply(tx, event_id, &state, cause)
}

fn merge(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    state: CatalogState,
) -> Result<CatalogState, HandleError> {
    let before = store::catalog_state_lock(tx, event_id)?;
    let merged = before.clone().merge(state);
    if merged != before {
        store::catalog_state_update(tx, event_id, &merged)?;
    }
    Ok(merged)
}

/// `cause` is the catalog's event.
fn apply(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    state: &CatalogState,
    cause: &DomainEvent,
) -> Result<HandlerOutcome, HandleError> {
    if let Some(facts) = &state.facts {
        store::sale_update(tx, event_id, facts)?;
    }
    // The opening may have moved, or there is none any more.
    sale_alerts_recheck(tx, event_id, storable_time(cause.time))?;
    if state.status != SaleStatus::Open {
        store::sale_close(tx, event_id, state.status, cause.id)?;
    }
    Ok(HandlerOutcome::Done)
}

/// The facts of a sale, or why there can be no such sale.
fn sale_facts(snapshot: &EventSnapshot) -> Result<SaleFacts, String> {
    if snapshot.sale_starts_at >= snapshot.sale_ends_at {
        return Err("the sale ends before it begins".to_owned());
    }
    if !(1..=10).contains(&snapshot.seats_per_user_max) {
        return Err(format!("{} seats per user are not possible", snapshot.seats_per_user_max));
    }
    Ok(SaleFacts {
        revision: snapshot.revision,
        title: snapshot.title.clone(),
        venue_name: snapshot.venue_name.clone(),
        artist_id: snapshot.artist_id,
        starts_at: snapshot.starts_at,
        sale_starts_at: snapshot.sale_starts_at,
        sale_ends_at: snapshot.sale_ends_at,
        has_presale: snapshot.has_presale,
        seats_per_user_max: snapshot.seats_per_user_max,
        requires_identity: snapshot.requires_identity,
        allows_reentry: snapshot.allows_reentry,
        organiser_id: snapshot.organiser_id,
        cancel_policy: snapshot.cancel_policy.clone(),
    })
}

/// The sale to create, or why it cannot be created.
fn new_sale(snapshot: &EventSnapshot) -> Result<NewSale, String> {
    let layout = snapshot.layout.clone().unwrap_or(Layout { sections: Vec::new() });
    let kind = match snapshot.kind {
        EventKind::Seated => {
            layout.check().map_err(|invalid| format!("the layout: {invalid}"))?;
            check_prices(snapshot, &layout)?;
            if !snapshot.ticket_types.is_empty() {
                return Err("an event with seats has ticket types".to_owned());
            }
            InventoryKind::Seated
        }
        EventKind::Standing if !layout.sections.is_empty() => {
            return Err("a standing event has seats".to_owned());
        }
        EventKind::Standing => {
            check_ticket_types(&snapshot.ticket_types)?;
            InventoryKind::Standing
        }
    };
    let ticket_types = snapshot.ticket_types.iter().map(new_ticket_type);
    let (event_id, prices) = (snapshot.event_id, snapshot.prices.clone());
    Ok(NewSale {
        inventory: Inventory { event_id, kind, layout, prices },
        facts: sale_facts(snapshot)?,
        ticket_types: ticket_types.collect::<Result<_, _>>()?,
    })
}

fn check_prices(snapshot: &EventSnapshot, layout: &Layout) -> Result<(), String> {
    for grade in layout.grades() {
        match snapshot.prices.get(grade) {
            Some(price) if TicketTypeDraft::is_price(*price) => {}
            Some(price) => return Err(format!("the price of {grade:?} is {price}")),
            None => return Err(format!("the grade {grade:?} has no price")),
        }
    }
    Ok(())
}

fn check_ticket_types(ticket_types: &[OrderedTicketType]) -> Result<(), String> {
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for ticket_type in ticket_types {
        if !ids.insert(ticket_type.id) || !names.insert(ticket_type.name.trim()) {
            return Err(format!("the ticket type {:?} is there twice", ticket_type.name));
        }
    }
    Ok(())
}

fn new_ticket_type(ordered: &OrderedTicketType) -> Result<NewTicketType, String> {
    let OrderedTicketType { id, name, description, price, total } = ordered;
    let draft = TicketTypeDraft::parse(name, description, price.amount(), i64::from(*total));
    let draft = draft.map_err(|invalid| format!("the ticket type {name:?}: {invalid}"))?;
    Ok(NewTicketType::new(*id, &draft))
}
