//! Creating, editing, cancelling and deleting events.
//!
//! Each is one transaction here. Other services create seats and refund money when they receive
//! the domain event, which may be delivered more than once.

use std::collections::BTreeMap;

use urr_contracts::events::catalog::{
    EventCancelled, EventCreated, EventDeleted, EventSnapshot, EventUpdated,
};
use urr_kernel::search::SearchText;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::Layout;
use urr_service::idempotency::{KeyClaim, KeyedRequest, key_claim, key_complete};
use urr_service::{EventScope, NotYourEvent};
use urr_storage::{DbResult, StorageError, Tx, outbox};

use super::search_store::grams_replace;
use crate::artists::store::{artist_find, artist_find_by_name};
use crate::events::rules::{
    ArtistRef, EditRejection, EventChange, EventId, EventKind, EventRecord, EventStatus,
    EventTerms, HallRef, InvalidPresale, InvalidPrices, InvalidTicketTypes, OrderedInventory,
    Schedule, StartsInPast, TicketType, VenueRef, check_presale, check_prices, check_start,
    check_ticket_types, decide_edit, may_delete,
};
use crate::events::store;
use crate::venues::store::{hall_find, venue_find};
use crate::{AdminActor, Artist, ArtistId, CatalogService, HallId, HallSummary, VenueId};

#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Given by the demo data only.
    pub id: Option<EventId>,
    pub title: String,
    pub description: String,
    pub location: EventLocation,
    pub artist: Option<ArtistChoice>,
    pub schedule: Schedule,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    pub requires_identity: bool,
    pub allows_reentry: bool,
    /// `None`: the creator's.
    pub organiser_id: Option<Uuid>,
    pub poster_image_url: String,
    pub terms: EventTerms,
    /// By grade, for a seated event.
    pub prices: BTreeMap<String, Won>,
    /// For a standing event. The ids are set when the event is created.
    pub ticket_types: Vec<TicketType>,
    /// The client's name for the request: a repetition returns the event of the first.
    pub request: Option<KeyedRequest>,
}

/// Where an event takes place: seated in a hall, or standing in a venue.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("There is no such artist. Please add them first.")]
pub struct UnknownArtist;

/// An organiser named another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Only an administrator can say whose event it is.")]
pub struct OrganiserFixed;

#[derive(Debug, thiserror::Error)]
pub enum CreateEventError {
    #[error("There is no hall with this hallId.")]
    HallNotFound,
    #[error("There is no venue with this venueId.")]
    VenueNotFound,
    #[error("The hall belongs to another venue.")]
    VenueMismatch,
    #[error(transparent)]
    Artist(#[from] UnknownArtist),
    #[error(transparent)]
    Prices(#[from] InvalidPrices),
    #[error(transparent)]
    TicketTypes(#[from] InvalidTicketTypes),
    #[error(transparent)]
    Presale(#[from] InvalidPresale),
    #[error(transparent)]
    Organiser(#[from] OrganiserFixed),
    #[error(transparent)]
    Past(#[from] StartsInPast),
    #[error("the key was used for another event")]
    KeyReused,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Debug, thiserror::Error)]
pub enum EditEventError {
    #[error("There is no event with this id.")]
    NotFound,
    #[error(transparent)]
    Artist(#[from] UnknownArtist),
    #[error(transparent)]
    Rejected(#[from] EditRejection),
    #[error("Tickets may have been sold. Cancel the event first, or wait until it is over.")]
    NotDeletable,
    #[error("The event has begun and cannot be cancelled.")]
    HasBegun,
    #[error(transparent)]
    NotYours(#[from] NotYourEvent),
    #[error(transparent)]
    Organiser(#[from] OrganiserFixed),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CatalogService {
    /// Creates an event and orders its inventory from the ticket service.
    pub async fn create_event(
        &self,
        mut new: NewEvent,
        actor: AdminActor,
    ) -> Result<EventRecord, CreateEventError> {
        let (id, now) =
            (new.id.unwrap_or_else(|| EventId(self.0.ids.next_id())), self.0.clock.now());
        for ticket_type in &mut new.ticket_types {
            ticket_type.id = self.0.ids.next_id();
        }
        let organiser_id = decide_organiser(actor, new.organiser_id, actor.admin_id)?;
        let metadata = self.event_metadata(actor.context);
        self.admin_change(actor, ("EVENT_CREATED", "event", id), move |tx| {
            if let Some(request) = &new.request {
                match key_claim(tx, request, now)? {
                    KeyClaim::New => {}
                    KeyClaim::Repeated { resource_id } => {
                        return Ok((find_created(tx, resource_id)?, None));
                    }
                    KeyClaim::Reused => return Err(CreateEventError::KeyReused),
                }
                key_complete(tx, request, &id.to_string())?;
            }
            let (event, layout) = build_event(tx, &new, id, (actor.admin_id, organiser_id), now)?;
            let search_text = search_text(&event);
            store::event_insert(tx, &event, &search_text.text)?;
            for (position, ticket_type) in (0..).zip(&new.ticket_types) {
                store::ticket_type_insert(tx, id, position, ticket_type)?;
            }
            grams_replace(tx, id, &search_text)?;
            let ticket_types = new.ticket_types.iter().map(TicketType::order).collect();
            let snapshot = EventSnapshot { layout, ticket_types, ..event.snapshot() };
            outbox::append(tx, &metadata, &EventCreated(snapshot))?;
            Ok((event, Some(new.title.clone())))
        })
        .await
    }

    /// Edits an event, unless it was changed since the revision that the editor saw.
    pub async fn edit_event(
        &self,
        id: EventId,
        (change, artist): (EventChange, Option<Option<ArtistChoice>>),
        actor: AdminActor,
    ) -> Result<EventRecord, EditEventError> {
        let now = self.0.clock.now();
        let metadata = self.event_metadata(actor.context);
        self.admin_change(actor, ("EVENT_UPDATED", "event", id), move |tx| {
            let event = find_not_deleted(tx, id, actor)?;
            decide_organiser(actor, change.organiser_id, event.organiser_id)?;
            let mut change = change.clone();
            if let Some(choice) = &artist {
                change.artist = Some(find_artist::<EditEventError>(tx, choice.as_ref())?);
            }
            let changed = decide_edit(&event, &change, now)?;
            event_store_change(tx, &changed)?;
            let summary = format!("{} (revision {})", changed.title, changed.revision);
            outbox::append(tx, &metadata, &EventUpdated(changed.snapshot()))?;
            Ok((changed, Some(summary)))
        })
        .await
    }

    /// Cancels an event; the ticket service then refunds everybody. A repetition changes nothing.
    pub async fn cancel_event(
        &self,
        id: EventId,
        reason: String,
        actor: AdminActor,
    ) -> Result<EventRecord, EditEventError> {
        let now = self.0.clock.now();
        let metadata = self.event_metadata(actor.context);
        self.admin_change(actor, ("EVENT_CANCELLED", "event", id), move |tx| {
            let event = find_not_deleted(tx, id, actor)?;
            if event.is_cancelled() {
                return Ok((event, None));
            }
            if event.has_begun(now) {
                return Err(EditEventError::HasBegun);
            }
            let cancelled = EventRecord {
                announced_status: EventStatus::Cancelled,
                cancel_reason: reason.clone(),
                revision: event.revision + 1,
                updated_at: now,
                ..event
            };
            event_store_change(tx, &cancelled)?;
            let (event_id, revision) = (id.0, cancelled.revision);
            let summary = reason.clone();
            let reason = Some(summary.clone()).filter(|reason| !reason.is_empty());
            outbox::append(tx, &metadata, &EventCancelled { event_id, revision, reason })?;
            Ok((cancelled, Some(summary)))
        })
        .await
    }

    /// Deletes an event, if nothing can have been sold, or if it has begun or was cancelled. There are
    /// no refunds for an event that has taken place. A repetition changes nothing.
    pub async fn delete_event(&self, id: EventId, actor: AdminActor) -> Result<(), EditEventError> {
        let now = self.0.clock.now();
        let metadata = self.event_metadata(actor.context);
        self.admin_change(actor, ("EVENT_DELETED", "event", id), move |tx| {
            let event = store::event_find(tx, id)?.ok_or(EditEventError::NotFound)?;
            actor.scope.check(Some(event.organiser_id))?;
            if event.deleted_at.is_some() {
                return Ok(((), None));
            }
            if !may_delete(&event, now) {
                return Err(EditEventError::NotDeletable);
            }
            let (revision, is_over) = (event.revision + 1, event.has_taken_place(now));
            let deleted = EventRecord { revision, updated_at: now, deleted_at: Some(now), ..event };
            event_store_change(tx, &deleted)?;
            let announced = EventDeleted { event_id: id.0, revision, is_over: Some(is_over) };
            outbox::append(tx, &metadata, &announced)?;
            Ok(((), Some(deleted.title)))
        })
        .await
    }
}

/// What an event is found by.
pub(crate) fn search_text(event: &EventRecord) -> SearchText {
    let artist = event.artist.as_ref().map_or("", |artist| artist.name.as_str());
    SearchText::new([event.title.as_str(), artist, &event.venue.name, &event.venue.address])
}

pub(crate) fn event_store_change(tx: &mut Tx<'_>, event: &EventRecord) -> DbResult<()> {
    let search_text = search_text(event);
    let is_written = store::event_update(tx, event, &search_text.text)?;
    assert!(is_written, "the event was read under the lock of the catalogue");
    grams_replace(tx, event.id, &search_text)
}

/// The event of the first request with a key, which was committed with the key.
fn find_created(
    tx: &mut Tx<'_>,
    resource_id: Option<String>,
) -> Result<EventRecord, CreateEventError> {
    let id = resource_id.and_then(|id| id.parse().ok());
    let id = id.expect("the key was completed in the transaction that claimed it");
    let event = store::event_find(tx, EventId(id))?;
    Ok(event.expect("events are never removed from the table"))
}

fn find_not_deleted(
    tx: &mut Tx<'_>,
    id: EventId,
    actor: AdminActor,
) -> Result<EventRecord, EditEventError> {
    let event = store::event_find(tx, id)?;
    let event = event.filter(|event| event.deleted_at.is_none());
    let event = event.ok_or(EditEventError::NotFound)?;
    actor.scope.check(Some(event.organiser_id))?;
    Ok(event)
}

/// Whose event it is: as it was, unless an administrator names somebody else.
fn decide_organiser(
    actor: AdminActor,
    named: Option<Uuid>,
    present: Uuid,
) -> Result<Uuid, OrganiserFixed> {
    match named.unwrap_or(present) {
        organiser_id if organiser_id == present => Ok(present),
        organiser_id if actor.scope == EventScope::All => Ok(organiser_id),
        _ => Err(OrganiserFixed),
    }
}

fn find_artist<E: From<StorageError> + From<UnknownArtist>>(
    tx: &mut Tx<'_>,
    choice: Option<&ArtistChoice>,
) -> Result<Option<ArtistRef>, E> {
    let artist = match choice {
        None => return Ok(None),
        Some(ArtistChoice::Id(id)) => artist_find(tx, *id)?,
        Some(ArtistChoice::Name(name)) => artist_find_by_name(tx, name)?,
    };
    let Artist { id, name, .. } = artist.ok_or(UnknownArtist)?;
    Ok(Some(ArtistRef { id, name }))
}

/// The venue of an event, and its hall with the layout, if it has one.
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
            let hall = hall_find(tx, hall_id)?.ok_or(CreateEventError::HallNotFound)?;
            if venue_id.is_some_and(|venue_id| venue_id != hall.summary.venue_id) {
                return Err(CreateEventError::VenueMismatch);
            }
            let HallSummary { id, venue_id, name, .. } = hall.summary;
            (venue_id, Some((HallRef { id, name }, hall.template.layout)))
        }
    };
    let venue = venue_find(tx, venue_id)?.ok_or(CreateEventError::VenueNotFound)?;
    let venue = VenueRef { id: venue.id, name: venue.name, address: venue.address };
    Ok(ResolvedLocation { venue, hall })
}

/// The event to store, and the layout to order.
fn build_event(
    tx: &mut Tx<'_>,
    new: &NewEvent,
    id: EventId,
    (created_by, organiser_id): (Uuid, Uuid),
    now: Timestamp,
) -> Result<(EventRecord, Option<Layout>), CreateEventError> {
    let ResolvedLocation { venue, hall } = find_location(tx, new.location)?;
    let artist = find_artist::<CreateEventError>(tx, new.artist.as_ref())?;
    check_presale(new.has_presale, artist.is_some(), &new.schedule)?;
    // The demo shows an event that is over.
    if new.id.is_none() {
        check_start(new.schedule.starts_at(), now)?;
    }
    let (hall, layout) = hall.unzip();
    let (kind, prices) = match &layout {
        Some(layout) => {
            check_prices(layout, &new.prices)?;
            (EventKind::Seated, new.prices.values().copied().collect::<Vec<Won>>())
        }
        None => {
            check_ticket_types(&new.ticket_types)?;
            (
                EventKind::Standing,
                new.ticket_types.iter().map(|ticket_type| ticket_type.price).collect(),
            )
        }
    };
    let tickets: i64 =
        new.ticket_types.iter().map(|ticket_type| i64::from(ticket_type.total)).sum();
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
        requires_identity: new.requires_identity,
        allows_reentry: new.allows_reentry,
        organiser_id,
        poster_image_url: new.poster_image_url.clone(),
        terms: new.terms.clone(),
        prices: new.prices.clone(),
        price_min: prices.iter().copied().min().unwrap_or(Won::ZERO),
        price_max: prices.iter().copied().max().unwrap_or(Won::ZERO),
        ordered: OrderedInventory { seats, ticket_types, places: i64::from(seats) + tickets },
        capacity: i64::from(seats) + tickets,
        inventory_ready: false,
        inventory_problem: String::new(),
        cancel_reason: String::new(),
        created_by,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    Ok((event, layout))
}
