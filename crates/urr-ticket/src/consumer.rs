//! What the ticket office learns from the catalogue (what is to be sold, and how) and from payments.
//!
//! What becomes of a sale does not depend on the order in which the news of an event arrive, nor on
//! how often: they are merged into one row per event ([`state`]), and the sale follows that row.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, EventData, Uuid};
use urr_storage::{Tx, outbox};

use crate::inventory::projection::CatalogState;
use crate::inventory::projection::payload::{
    EventCancelled, EventCreated, EventDeleted, EventUpdated,
};
use crate::inventory::projection::store;
use crate::inventory::store as sales;
use crate::inventory::store::NewSale;
use crate::payables::{events, membership_events};
use crate::{SOURCE, SaleStatus};

/// The name of the ticket office among the consumers.
pub const GROUP: &str = "ticket-service-group";

/// The topics that it listens to.
pub const TOPICS: &[&str] = &["catalog-events", "payment-events"];

/// Everything that an event sells is there and was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryReady {
    pub event_id: Uuid,
    /// Of the order that it answers.
    pub revision: i64,
    pub seats: u32,
    pub ticket_types: u32,
    /// Seats and standing tickets together.
    pub total: i64,
}

impl EventData for InventoryReady {
    const TOPIC: &'static str = "inventory-events";
    const TYPE: &'static str = "INVENTORY_READY";

    fn aggregate_id(&self) -> Uuid {
        self.event_id
    }
}

/// Makes, changes or ends a sale as the catalogue says; confirms what was paid.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    match event.event_type.as_str() {
        "EVENT_CREATED" => create_sale(tx, event, context),
        "EVENT_UPDATED" => {
            let updated: EventUpdated = decode(event)?;
            updated.facts.to_sale_facts().map_err(HandleError::Poison)?;
            follow(tx, updated.event_id, CatalogState::of_facts(updated.facts), event.id)
        }
        "EVENT_CANCELLED" => {
            let cancelled: EventCancelled = decode(event)?;
            follow(tx, cancelled.event_id, CatalogState::of_end(SaleStatus::Cancelled), event.id)
        }
        "EVENT_DELETED" => delete_sale(tx, event, context),
        "ARTIST_CREATED" | "ARTIST_UPDATED" => membership_events::update_artist(tx, event),
        "PAYMENT_CONFIRMED" => events::payment_confirmed(tx, event, context),
        "PAYMENT_REFUNDED" => events::payment_refunded(tx, event, context),
        _ => Ok(Handled::Ignored),
    }
}

/// The sale with its seats and ticket types, their count and its announcement: one transaction.
fn create_sale(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let created: EventCreated = decode(event)?;
    let (event_id, revision) = (created.event_id, created.facts.revision);
    let ordered = created.to_new_sale().map_err(HandleError::Poison)?;
    let state = merge(tx, event_id, CatalogState::of_facts(created.facts))?;
    let new = NewSale { facts: state.sale_facts().expect("it has those of the order"), ..ordered };
    if !sales::sale_create(tx, &new, context.now)? {
        return apply(tx, event_id, &state, event.id);
    }
    let ready = InventoryReady { event_id, revision, ..store::inventory_count(tx, event_id)? };
    if ready.ticket_types as usize != new.ticket_types.len() {
        let reason = "one of the ticket types belongs to another event";
        return Err(HandleError::Poison(reason.to_owned()));
    }
    outbox::append(tx, &context.stamp("ready", SOURCE), &ready)?;
    apply(tx, event_id, &state, event.id)
}

/// Takes the sale out of sight. Of an event that has taken place nothing is given back: who was
/// there keeps the ticket.
fn delete_sale(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let EventDeleted { event_id, is_over } = decode(event)?;
    let known = store::catalog_state_lock(tx, event_id)?;
    let handled = follow(tx, event_id, CatalogState::of_end(SaleStatus::Deleted), event.id)?;
    // Who was promised their money when the event was cancelled gets it, whatever is said later.
    let is_over = is_over.unwrap_or_else(|| known.has_taken_place(event.time));
    if is_over && known.status != SaleStatus::Cancelled {
        store::sale_keep(tx, event_id, context.now)?;
    }
    Ok(handled)
}

/// Merges the news and applies them to the sale, if it is there already.
fn follow(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    state: CatalogState,
    cause: Uuid,
) -> Result<Handled, HandleError> {
    let state = merge(tx, event_id, state)?;
    apply(tx, event_id, &state, cause)
}

fn merge(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    state: CatalogState,
) -> Result<CatalogState, HandleError> {
    let known = store::catalog_state_lock(tx, event_id)?;
    let merged = known.clone().merge(state);
    if merged != known {
        store::catalog_state_update(tx, event_id, &merged)?;
    }
    Ok(merged)
}

/// `cause` is the event by which this was heard of.
fn apply(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    state: &CatalogState,
    cause: Uuid,
) -> Result<Handled, HandleError> {
    if let Some(facts) = state.sale_facts() {
        store::sale_update(tx, event_id, &facts)?;
    }
    if state.status != SaleStatus::Open {
        store::sale_end(tx, event_id, state.status, cause)?;
    }
    Ok(Handled::Done)
}

pub(crate) fn decode<D: DeserializeOwned>(event: &Event) -> Result<D, HandleError> {
    D::deserialize(&event.data).map_err(|error| {
        let kind = &event.event_type;
        HandleError::Poison(format!("the data of a {kind} is not what its type promises: {error}"))
    })
}
