//! Handles the events of the catalog and of payments.

use std::sync::Arc;

use urr_bus::{
    EventHandler, HandleError, HandledEvent, HandlerContext, HandlerOutcome, decode_event,
};
use urr_contracts::events::catalog::{
    self, ArtistCreated, ArtistUpdated, EventCancelled, EventCreated, EventDeleted, EventUpdated,
};
use urr_contracts::events::payment::{self, PaymentConfirmed, PaymentRefunded};
use urr_kernel::{DomainEvent, EventData, Won};
use urr_storage::{Tx, storable_time};

use crate::TicketService;
use crate::inventory::projection;
use crate::memberships::store::{ArtistUpdate, artist_upsert};
use crate::metrics::TicketMetrics;
use crate::payables::consumer::{payment_confirmed, payment_refunded, reservations_confirmed};

/// The consumer group of the ticket service.
pub const GROUP: &str = "ticket-service-group";

pub const TOPICS: &[&str] = &[catalog::TOPIC, payment::TOPIC];

/// The types that [`handle`] handles. It ignores others.
pub const TYPES: &[&str] = &[
    EventCreated::TYPE,
    EventUpdated::TYPE,
    EventCancelled::TYPE,
    EventDeleted::TYPE,
    ArtistCreated::TYPE,
    ArtistUpdated::TYPE,
    PaymentConfirmed::TYPE,
    PaymentRefunded::TYPE,
];

impl TicketService {
    /// The handler of a process that runs the service: it also counts the reservations that it
    /// confirms.
    pub fn event_handler(&self) -> EventHandler {
        let metrics = self.metrics.clone();
        EventHandler::Together(Arc::new(move |tx, events| handle_all(tx, events, &metrics)))
    }
}

/// Handles the events of a transaction.
pub fn handle_together(
    tx: &mut Tx<'_>,
    events: &[HandledEvent<'_>],
) -> Result<Vec<HandlerOutcome>, HandleError> {
    handle_all(tx, events, &TicketMetrics::default())
}

/// Reservations are confirmed first, all at once. A payment is confirmed before anything else becomes
/// of it, and events of different payments come in any order.
fn handle_all(
    tx: &mut Tx<'_>,
    events: &[HandledEvent<'_>],
    metrics: &TicketMetrics,
) -> Result<Vec<HandlerOutcome>, HandleError> {
    let mut confirmed = reservations_confirmed(tx, events, metrics)?;
    let handle = |(event, context): &HandledEvent<'_>| match confirmed.remove(&event.id) {
        Some(outcome) => Ok(outcome),
        None => handle_counted(tx, event, context, metrics),
    };
    events.iter().map(handle).collect()
}

/// Handles one event in the transaction of its inbox row.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    handle_counted(tx, event, context, &TicketMetrics::default())
}

fn handle_counted(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
    metrics: &TicketMetrics,
) -> Result<HandlerOutcome, HandleError> {
    match event.event_type.as_str() {
        EventCreated::TYPE => projection::create_sale(tx, event, context),
        EventUpdated::TYPE => projection::update_sale(tx, event),
        EventCancelled::TYPE => projection::cancel_sale(tx, event),
        EventDeleted::TYPE => projection::delete_sale(tx, event, context),
        ArtistCreated::TYPE => {
            let ArtistCreated { artist_id, name, membership_price } = decode_event(event)?;
            let announced_at = storable_time(event.time);
            update_artist(tx, &ArtistUpdate { id: artist_id, name, membership_price, announced_at })
        }
        ArtistUpdated::TYPE => {
            let ArtistUpdated { artist_id, name, membership_price } = decode_event(event)?;
            let announced_at = storable_time(event.time);
            update_artist(tx, &ArtistUpdate { id: artist_id, name, membership_price, announced_at })
        }
        PaymentConfirmed::TYPE => payment_confirmed(tx, event, context, metrics),
        PaymentRefunded::TYPE => payment_refunded(tx, event, context),
        _ => Ok(HandlerOutcome::Ignored),
    }
}

fn update_artist(tx: &mut Tx<'_>, update: &ArtistUpdate) -> Result<HandlerOutcome, HandleError> {
    let price = update.membership_price;
    if price < Won::ZERO {
        return Err(HandleError::Poison(format!("the price of a membership is {price}")));
    }
    artist_upsert(tx, update)?;
    Ok(HandlerOutcome::Done)
}
