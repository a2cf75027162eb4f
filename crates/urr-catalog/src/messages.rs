//! What the catalogue announces, and what it hears from the ticket office.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{EventData, Timestamp, Uuid, Won};
use urr_layout::Layout;
use urr_storage::Tx;

use crate::Artist;
use crate::events::rules::{EventId, EventKind, EventRecord, TicketType, check_ticket_type};
use crate::events::store::{
    event_find, event_follow_ticket_types, event_mark_ready, event_note_problem, ticket_type_write,
};
use crate::revision::{catalog_lock, revision_bump};

pub const TOPIC: &str = "catalog-events";

/// The name of the catalogue among the consumers.
pub const GROUP: &str = "catalog-service-group";

/// What it listens to.
pub const CONSUMED_TOPICS: &[&str] = &[InventoryReady::TOPIC];

/// An artist was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtistCreated {
    pub artist_id: Uuid,
    pub name: String,
    pub membership_price: Won,
}

/// An artist has another name, price or portrait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtistUpdated {
    pub artist_id: Uuid,
    pub name: String,
    pub membership_price: Won,
}

/// An event as others need to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFacts {
    pub event_id: Uuid,
    /// Grows with every change: an older one does not overwrite a newer one.
    pub revision: i64,
    pub title: String,
    pub kind: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artist_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artist_name: Option<String>,
    pub venue_id: Uuid,
    pub venue_name: String,
    pub address: String,
    pub starts_at: Timestamp,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    /// Of a seated event that was just created: they never change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    pub prices: BTreeMap<String, Won>,
    /// Of a standing event that was just created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticket_types: Vec<TicketTypeFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketTypeFacts {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub price: Won,
    pub total: u32,
}

/// An event was created: make its seats or tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventCreated(pub EventFacts);

/// An event is different now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventUpdated(pub EventFacts);

/// An event does not take place: give everybody their money back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCancelled {
    pub event_id: Uuid,
    pub revision: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An event is not shown any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDeleted {
    pub event_id: Uuid,
    pub revision: i64,
    /// Whether it has taken place: then nobody gets money back.
    pub is_over: bool,
}

/// The ticket office has made and counted what was ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryReady {
    pub event_id: Uuid,
    pub revision: i64,
    pub seats: i64,
    /// How many types of tickets there are.
    pub ticket_types: i64,
    /// Seats and tickets together.
    pub total: i64,
}

/// The ticket office has added or changed a type of tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TicketTypeChanged {
    pub event_id: Uuid,
    pub ticket_type_id: Uuid,
    pub name: String,
    pub description: String,
    pub price: Won,
    pub total: u32,
    /// Grows with every change of the event's sale: an older one does not overwrite a newer one.
    pub fence: i64,
}

macro_rules! event_data {
    ($($type:ty => $topic:expr, $name:literal, $id:expr;)*) => {$(
        impl EventData for $type {
            const TOPIC: &'static str = $topic;
            const TYPE: &'static str = $name;

            fn aggregate_id(&self) -> Uuid {
                let id: fn(&$type) -> Uuid = $id;
                id(self)
            }
        }
    )*};
}

event_data! {
    ArtistCreated => TOPIC, "ARTIST_CREATED", |data| data.artist_id;
    ArtistUpdated => TOPIC, "ARTIST_UPDATED", |data| data.artist_id;
    EventCreated => TOPIC, "EVENT_CREATED", |data| data.0.event_id;
    EventUpdated => TOPIC, "EVENT_UPDATED", |data| data.0.event_id;
    EventCancelled => TOPIC, "EVENT_CANCELLED", |data| data.event_id;
    EventDeleted => TOPIC, "EVENT_DELETED", |data| data.event_id;
    InventoryReady => "inventory-events", "INVENTORY_READY", |data| data.event_id;
    TicketTypeChanged => "inventory-events", "TICKET_TYPE_CHANGED", |data| data.event_id;
}

impl From<&Artist> for ArtistCreated {
    fn from(artist: &Artist) -> ArtistCreated {
        ArtistCreated {
            artist_id: artist.id.0,
            name: artist.name.to_string(),
            membership_price: artist.membership_price,
        }
    }
}

impl From<&Artist> for ArtistUpdated {
    fn from(artist: &Artist) -> ArtistUpdated {
        let ArtistCreated { artist_id, name, membership_price } = ArtistCreated::from(artist);
        ArtistUpdated { artist_id, name, membership_price }
    }
}

impl From<&TicketType> for TicketTypeFacts {
    fn from(kind: &TicketType) -> TicketTypeFacts {
        TicketTypeFacts {
            id: kind.id,
            name: kind.name.clone(),
            description: kind.description.clone(),
            price: kind.price,
            total: kind.total,
        }
    }
}

impl From<&EventRecord> for EventFacts {
    /// Without what its seats or tickets are made of.
    fn from(event: &EventRecord) -> EventFacts {
        EventFacts {
            event_id: event.id.0,
            revision: event.revision,
            title: event.title.clone(),
            kind: event.kind.as_str().to_owned(),
            status: event.announced_status.as_str().to_owned(),
            artist_id: event.artist.as_ref().map(|artist| artist.id.0),
            artist_name: event.artist.as_ref().map(|artist| artist.name.clone()),
            venue_id: event.venue.id.0,
            venue_name: event.venue.name.clone(),
            address: event.venue.address.clone(),
            starts_at: event.schedule.starts_at(),
            sale_starts_at: event.schedule.sale_starts_at(),
            sale_ends_at: event.schedule.sale_ends_at(),
            has_presale: event.has_presale,
            seats_per_user_max: event.seats_per_user_max,
            layout: None,
            prices: event.prices.clone(),
            ticket_types: Vec::new(),
        }
    }
}

/// What the ticket office says of its inventory.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &urr_kernel::Event,
    _context: &HandlerContext,
) -> Result<Handled, HandleError> {
    match event.event_type.as_str() {
        InventoryReady::TYPE => handle_ready(tx, &event.decode()?),
        TicketTypeChanged::TYPE => handle_ticket_type(tx, &event.decode()?),
        _ => Ok(Handled::Ignored),
    }
}

/// An event can be booked from when on its inventory is there, completely.
fn handle_ready(tx: &mut Tx<'_>, counted: &InventoryReady) -> Result<Handled, HandleError> {
    catalog_lock(tx)?;
    let id = EventId(counted.event_id);
    let Some(event) = event_find(tx, id)? else {
        return Ok(Handled::Rejected { reason: format!("there is no event {id}") });
    };
    if event.inventory_ready {
        return Ok(Handled::Done);
    }
    let ordered = &event.ordered;
    let expected = (i64::from(ordered.seats), i64::from(ordered.ticket_types), ordered.places);
    let found = (counted.seats, counted.ticket_types, counted.total);
    if found != expected {
        let problem = format!(
            "{} seats, {} types of tickets and {} places were ordered; {}, {} and {} were made",
            expected.0, expected.1, expected.2, found.0, found.1, found.2
        );
        event_note_problem(tx, id, &problem)?;
        tracing::error!(event_id = %id, problem, "an event cannot be booked");
        return Ok(Handled::Rejected { reason: problem });
    }
    event_mark_ready(tx, id)?;
    revision_bump(tx)?;
    Ok(Handled::Done)
}

/// The page of an event shows its tickets as they are sold, whatever was ordered.
fn handle_ticket_type(tx: &mut Tx<'_>, now: &TicketTypeChanged) -> Result<Handled, HandleError> {
    catalog_lock(tx)?;
    let id = EventId(now.event_id);
    let Some(event) = event_find(tx, id)? else {
        return Ok(Handled::Rejected { reason: format!("there is no event {id}") });
    };
    if event.kind != EventKind::Standing {
        return Ok(Handled::Rejected { reason: format!("the event {id} has seats") });
    }
    let kind = TicketType {
        id: now.ticket_type_id,
        name: now.name.clone(),
        description: now.description.clone(),
        price: now.price,
        total: now.total,
    };
    check_ticket_type(&kind).map_err(|invalid| HandleError::Poison(invalid.to_string()))?;
    if ticket_type_write(tx, id, &kind, now.fence)? {
        event_follow_ticket_types(tx, id)?;
        revision_bump(tx)?;
    }
    Ok(Handled::Done)
}
