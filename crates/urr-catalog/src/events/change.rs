//! Events: creating, changing, cancelling and deleting them.
//!
//! Each is one transaction here; what follows elsewhere (seats, refunds) follows from the event
//! that it announces, however often that is delivered.

use std::collections::BTreeMap;

use urr_kernel::{Timestamp, Won};
use urr_layout::Layout;
use urr_storage::{StorageError, Tx, outbox};

use crate::admin_log::store::audit_insert;
use crate::admin_log::{Actor, Deed};
use crate::artists::store as artists;
use crate::events::rules::{
    ArtistRef, EditRejection, EventChange, EventId, EventKind, EventRecord, EventStatus, HallRef,
    InvalidPresale, InvalidPrices, InvalidTicketTypes, OrderedInventory, Schedule, TicketType,
    VenueRef, check_presale, check_prices, check_ticket_types, decide_edit, may_delete,
};
use crate::events::search::SearchText;
use crate::events::search_store as search;
use crate::events::store::{self, RequestKey};
use crate::messages::{
    EventCancelled, EventCreated, EventDeleted, EventFacts, EventUpdated, TicketTypeFacts,
};
use crate::venues::store as venues;
use crate::{ArtistId, CatalogService, HallId, VenueId};

/// What a new event is made of.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub title: String,
    pub description: String,
    pub location: EventLocation,
    pub artist: Option<ArtistChoice>,
    pub schedule: Schedule,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    pub poster_image_url: String,
    /// Of a seated event, by grade.
    pub prices: BTreeMap<String, Won>,
    /// Of a standing event. Their ids are made here.
    pub ticket_types: Vec<TicketType>,
    /// The same key and digest give the same event.
    pub request: Option<RequestKey>,
}

/// Where it happens. In a hall people sit, in a venue they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLocation {
    Hall { hall_id: HallId, venue_id: Option<VenueId> },
    Venue(VenueId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArtistChoice {
    Id(ArtistId),
    Name(String),
}

/// What an editor sends: the change, and the artist to be looked up. `Some(None)`: no artist.
#[derive(Clone, Debug, Default)]
pub struct EventEdit {
    pub change: EventChange,
    pub artist: Option<Option<ArtistChoice>>,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateEventError {
    #[error("there is no such hall")]
    HallNotFound,
    #[error("there is no such venue")]
    VenueNotFound,
    #[error("the hall belongs to another venue")]
    VenueMismatch,
    #[error("there is no such artist")]
    ArtistNotFound,
    #[error(transparent)]
    Prices(#[from] InvalidPrices),
    #[error(transparent)]
    TicketTypes(#[from] InvalidTicketTypes),
    #[error(transparent)]
    Presale(#[from] InvalidPresale),
    #[error("the key was used for another event")]
    KeyReused,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Debug, thiserror::Error)]
pub enum EditEventError {
    #[error("there is no such event")]
    NotFound,
    #[error("there is no such artist")]
    ArtistNotFound,
    #[error(transparent)]
    Rejected(#[from] EditRejection),
    /// It may have been sold.
    #[error("it may have been sold")]
    NotDeletable,
    #[error("it has begun")]
    Over,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

const fn deed(action: &'static str) -> Deed {
    Deed { action, resource_type: "event" }
}

impl CatalogService {
    /// Creates an event and orders its seats or tickets from the ticket office.
    pub async fn create_event(
        &self,
        mut new: NewEvent,
        actor: Actor,
    ) -> Result<EventRecord, CreateEventError> {
        let (id, now) = (EventId(self.ids.next_id()), self.clock.now());
        for kind in &mut new.ticket_types {
            kind.id = self.ids.next_id();
        }
        let stamp = self.stamp(actor.context);
        let entry = self.audit_entry(&actor, deed("EVENT_CREATED"), id, &new.title);
        self.change(move |tx| {
            if let Some(request) = &new.request {
                match store::event_find_by_key(tx, actor.admin_id, &request.key)? {
                    Some((event, digest)) if digest == request.digest => return Ok(event),
                    Some(_) => return Err(CreateEventError::KeyReused),
                    None => {}
                }
            }
            let (event, layout) = prepare(tx, &new, id, actor, now)?;
            let searchable = searchable(&event);
            let is_new = store::event_insert(tx, &event, &searchable.text, new.request.as_ref())?;
            assert!(is_new, "the key was looked for under the lock of the catalogue");
            for (position, kind) in (0..).zip(&new.ticket_types) {
                store::ticket_type_insert(tx, id, position, kind)?;
            }
            search::grams_replace(tx, id, &searchable)?;
            audit_insert(tx, &entry)?;
            let ticket_types = new.ticket_types.iter().map(TicketTypeFacts::from).collect();
            let facts = EventFacts { layout, ticket_types, ..EventFacts::from(&event) };
            outbox::append(tx, &stamp, &EventCreated(facts))?;
            Ok(event)
        })
        .await
    }

    /// Changes an event that nobody changed since the editor looked.
    pub async fn edit_event(
        &self,
        id: EventId,
        edit: EventEdit,
        actor: Actor,
    ) -> Result<EventRecord, EditEventError> {
        let now = self.clock.now();
        let stamp = self.stamp(actor.context);
        let entry = self.audit_entry(&actor, deed("EVENT_UPDATED"), id, "");
        self.change(move |tx| {
            let event = find_shown(tx, id)?;
            let mut change = edit.change.clone();
            if let Some(choice) = &edit.artist {
                let artist = choice.as_ref().map(|choice| find_artist(tx, choice)).transpose()?;
                change.artist = match artist {
                    Some(None) => return Err(EditEventError::ArtistNotFound),
                    Some(Some(artist)) => Some(Some(artist)),
                    None => Some(None),
                };
            }
            let changed = decide_edit(&event, &change, now)?;
            write_changed(tx, &changed)?;
            let mut entry = entry.clone();
            entry.summary = format!("{} (revision {})", changed.title, changed.revision);
            audit_insert(tx, &entry)?;
            outbox::append(tx, &stamp, &EventUpdated(EventFacts::from(&changed)))?;
            Ok(changed)
        })
        .await
    }

    /// Cancels an event; the ticket office gives everybody their money back. Doing it again
    /// changes nothing.
    pub async fn cancel_event(
        &self,
        id: EventId,
        reason: String,
        actor: Actor,
    ) -> Result<EventRecord, EditEventError> {
        let now = self.clock.now();
        let stamp = self.stamp(actor.context);
        let entry = self.audit_entry(&actor, deed("EVENT_CANCELLED"), id, &reason);
        self.change(move |tx| {
            let event = find_shown(tx, id)?;
            if event.is_cancelled() {
                return Ok(event);
            }
            if event.has_begun(now) {
                return Err(EditEventError::Over);
            }
            let cancelled = EventRecord {
                announced_status: EventStatus::Cancelled,
                cancel_reason: reason.clone(),
                revision: event.revision + 1,
                updated_at: now,
                ..event
            };
            write_changed(tx, &cancelled)?;
            audit_insert(tx, &entry)?;
            let reason = (!reason.is_empty()).then(|| reason.clone());
            let (event_id, revision) = (id.0, cancelled.revision);
            outbox::append(tx, &stamp, &EventCancelled { event_id, revision, reason })?;
            Ok(cancelled)
        })
        .await
    }

    /// Takes an event out of sight, if nothing can have been sold or nobody waits for it any more.
    /// Who was there keeps the ticket and gets no money back. Doing it again changes nothing.
    pub async fn delete_event(&self, id: EventId, actor: Actor) -> Result<(), EditEventError> {
        let now = self.clock.now();
        let stamp = self.stamp(actor.context);
        let entry = self.audit_entry(&actor, deed("EVENT_DELETED"), id, "");
        self.change(move |tx| {
            let event = store::event_find(tx, id)?.ok_or(EditEventError::NotFound)?;
            if event.deleted_at.is_some() {
                return Ok(());
            }
            if !may_delete(&event, now) {
                return Err(EditEventError::NotDeletable);
            }
            let (revision, is_over) = (event.revision + 1, event.has_taken_place(now));
            let deleted = EventRecord { revision, updated_at: now, deleted_at: Some(now), ..event };
            write_changed(tx, &deleted)?;
            let mut entry = entry.clone();
            entry.summary.clone_from(&deleted.title);
            audit_insert(tx, &entry)?;
            outbox::append(tx, &stamp, &EventDeleted { event_id: id.0, revision, is_over })?;
            Ok(())
        })
        .await
    }
}

pub(crate) fn searchable(event: &EventRecord) -> SearchText {
    let artist = event.artist.as_ref().map_or("", |artist| artist.name.as_str());
    SearchText::new([event.title.as_str(), artist, &event.venue.name, &event.venue.address])
}

pub(crate) fn write_changed(tx: &mut Tx<'_>, event: &EventRecord) -> Result<(), StorageError> {
    let searchable = searchable(event);
    let is_written = store::event_update(tx, event, &searchable.text)?;
    assert!(is_written, "the event was read under the lock of the catalogue");
    search::grams_replace(tx, event.id, &searchable)
}

fn find_shown(tx: &mut Tx<'_>, id: EventId) -> Result<EventRecord, EditEventError> {
    let event = store::event_find(tx, id)?;
    event.filter(|event| event.deleted_at.is_none()).ok_or(EditEventError::NotFound)
}

fn find_artist(tx: &mut Tx<'_>, choice: &ArtistChoice) -> Result<Option<ArtistRef>, StorageError> {
    let artist = match choice {
        ArtistChoice::Id(id) => artists::artist_find(tx, *id)?,
        ArtistChoice::Name(name) => artists::artist_find_by_name(tx, name)?,
    };
    Ok(artist.map(|artist| ArtistRef { id: artist.id, name: artist.name.to_string() }))
}

/// The place with its seats, if it has any.
struct ResolvedLocation {
    venue: VenueRef,
    hall: Option<(HallRef, Layout)>,
}

fn find_location(
    tx: &mut Tx<'_>,
    location: EventLocation,
) -> Result<ResolvedLocation, CreateEventError> {
    let (venue_id, hall) = match location {
        EventLocation::Venue(venue_id) => (venue_id, None),
        EventLocation::Hall { hall_id, venue_id } => {
            let hall = venues::hall_find(tx, hall_id)?.ok_or(CreateEventError::HallNotFound)?;
            if venue_id.is_some_and(|venue_id| venue_id != hall.venue_id) {
                return Err(CreateEventError::VenueMismatch);
            }
            let layout = hall.template.layout().clone();
            (hall.venue_id, Some((HallRef { id: hall.id, name: hall.name }, layout)))
        }
    };
    let venue = venues::venue_find(tx, venue_id)?.ok_or(CreateEventError::VenueNotFound)?;
    let venue = VenueRef { id: venue.id, name: venue.name, address: venue.address };
    Ok(ResolvedLocation { venue, hall })
}

/// The event as it will be stored, and the seats to be made.
fn prepare(
    tx: &mut Tx<'_>,
    new: &NewEvent,
    id: EventId,
    actor: Actor,
    now: Timestamp,
) -> Result<(EventRecord, Option<Layout>), CreateEventError> {
    let ResolvedLocation { venue, hall } = find_location(tx, new.location)?;
    let artist = match &new.artist {
        Some(choice) => Some(find_artist(tx, choice)?.ok_or(CreateEventError::ArtistNotFound)?),
        None => None,
    };
    check_presale(new.has_presale, artist.is_some(), &new.schedule)?;
    let (hall, layout) = hall.unzip();
    let (kind, prices) = match &layout {
        Some(layout) => {
            check_prices(layout, &new.prices)?;
            (EventKind::Seated, new.prices.values().copied().collect::<Vec<Won>>())
        }
        None => {
            check_ticket_types(&new.ticket_types)?;
            (EventKind::Standing, new.ticket_types.iter().map(|kind| kind.price).collect())
        }
    };
    let tickets: i64 = new.ticket_types.iter().map(|kind| i64::from(kind.total)).sum();
    let seats = layout.as_ref().map_or(0, Layout::seat_count);
    let ticket_types = u32::try_from(new.ticket_types.len()).expect("they are few");
    let event = EventRecord {
        id,
        revision: 1,
        title: new.title.clone(),
        description: new.description.clone(),
        kind,
        announced_status: new.schedule.status_at(now),
        artist,
        venue,
        hall,
        schedule: new.schedule,
        has_presale: new.has_presale,
        seats_per_user_max: new.seats_per_user_max,
        poster_image_url: new.poster_image_url.clone(),
        prices: new.prices.clone(),
        price_min: prices.iter().copied().min().unwrap_or(Won::ZERO),
        price_max: prices.iter().copied().max().unwrap_or(Won::ZERO),
        ordered: OrderedInventory { seats, ticket_types, places: i64::from(seats) + tickets },
        capacity: i64::from(seats) + tickets,
        inventory_ready: false,
        inventory_problem: String::new(),
        cancel_reason: String::new(),
        created_by: actor.admin_id,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    Ok((event, layout))
}
