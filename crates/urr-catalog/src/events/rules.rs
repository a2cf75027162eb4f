//! The rules of events: prices, ticket types, pre-sales, and what an edit may still change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use urr_contracts::events::catalog::{EventSnapshot, OrderedTicketType};
use urr_kernel::ticket_type_limits::{PER_EVENT_MAX, PRICE_MAX_WON};
use urr_kernel::{
    CancelPolicy, InvalidTicketType, TicketTypeDraft, Timestamp, Uuid, Won, define_id,
};
use urr_layout::Layout;
use urr_storage::storable_id;
use utoipa::ToSchema;

use crate::artists::ArtistId;
use crate::venues::model::{HallId, VenueId};

pub use super::schedule::{EventStatus, InvalidSchedule, PresaleSchedule, Schedule};
pub use super::terms::{
    AgeRating, CancelPolicyTable, Casting, EventTerms, InvalidCasting, InvalidPolicyTable,
    InvalidRunningTime, Performer, RunningMinutes,
};
pub use urr_contracts::events::catalog::EventKind;

define_id!(
    /// Which event.
    EventId
);
storable_id!(EventId);

pub const TITLE_CHARS_MAX: usize = 200;
pub const DESCRIPTION_CHARS_MAX: usize = 5_000;
pub const REASON_CHARS_MAX: usize = 500;
pub const SEATS_PER_USER_LIMIT: u32 = 10;

/// Shortly before its opening, a sale may sell before the ticket service knows of a change.
const OPENING_MARGIN: Duration = Duration::from_secs(60);

/// An event as it is stored, with the names of what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    pub id: EventId,
    pub revision: i64,
    pub title: String,
    pub description: String,
    pub kind: EventKind,
    /// The status of the last announcement. [`EventRecord::status_at`] gives the present one.
    pub announced_status: EventStatus,
    pub artist: Option<ArtistRef>,
    pub venue: VenueRef,
    pub hall: Option<HallRef>,
    pub schedule: Schedule,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    /// Whether only persons with a checked identity may buy, each within the limit.
    pub requires_identity: bool,
    /// Whether a ticket that was checked out admits again.
    pub allows_reentry: bool,
    /// Whose event it is.
    pub organiser_id: Uuid,
    /// Empty if there is none.
    pub poster_image_url: String,
    pub terms: EventTerms,
    /// By grade; empty for standing events.
    pub prices: BTreeMap<String, Won>,
    pub price_min: Won,
    pub price_max: Won,
    pub ordered: OrderedInventory,
    /// Seats and tickets together, as the ticket service has them now.
    pub capacity: i64,
    pub inventory_ready: bool,
    /// Why the count of the ticket service was rejected. Empty if it was not.
    pub inventory_problem: String,
    pub cancel_reason: String,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtistRef {
    pub id: ArtistId,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueRef {
    pub id: VenueId,
    pub name: String,
    pub address: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HallRef {
    pub id: HallId,
    pub name: String,
}

/// The inventory that the ticket service was asked to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedInventory {
    pub seats: u32,
    pub ticket_types: u32,
    /// Seats and tickets together.
    pub places: i64,
}

/// A ticket type of a standing event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TicketTypeView)]
pub struct TicketType {
    pub id: Uuid,
    #[schema(example = "스탠딩 A")]
    pub name: String,
    pub description: String,
    /// In won.
    #[schema(value_type = i64)]
    pub price: Won,
    pub total: u32,
}

impl EventRecord {
    /// The status by the times, whatever was announced last.
    pub fn status_at(&self, now: Timestamp) -> EventStatus {
        match self.announced_status {
            EventStatus::Cancelled => EventStatus::Cancelled,
            EventStatus::Upcoming | EventStatus::OnSale | EventStatus::Ended => {
                self.schedule.status_at(now)
            }
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.announced_status == EventStatus::Cancelled
    }

    /// Whether the sale has started, or will start before all services know of a change.
    pub fn may_be_selling(&self, now: Timestamp) -> bool {
        now + OPENING_MARGIN > self.schedule.sale_starts_at()
    }

    pub fn has_begun(&self, now: Timestamp) -> bool {
        now >= self.schedule.starts_at()
    }

    /// Whether it has begun and was not cancelled before.
    pub fn has_taken_place(&self, now: Timestamp) -> bool {
        self.has_begun(now) && !self.is_cancelled()
    }

    /// When each tier may buy, if there is a pre-sale.
    pub fn presale_schedule(&self) -> Option<PresaleSchedule> {
        self.has_presale.then(|| self.schedule.presale())
    }

    /// The event for a domain event, without the layout and the ticket types.
    pub fn snapshot(&self) -> EventSnapshot {
        EventSnapshot {
            event_id: self.id.0,
            revision: self.revision,
            title: self.title.clone(),
            kind: self.kind,
            status: self.announced_status.into(),
            artist_id: self.artist.as_ref().map(|artist| artist.id.0),
            artist_name: self.artist.as_ref().map(|artist| artist.name.clone()),
            venue_id: self.venue.id.0,
            venue_name: self.venue.name.clone(),
            address: self.venue.address.clone(),
            starts_at: self.schedule.starts_at(),
            sale_starts_at: self.schedule.sale_starts_at(),
            sale_ends_at: self.schedule.sale_ends_at(),
            has_presale: self.has_presale,
            seats_per_user_max: self.seats_per_user_max,
            organiser_id: Some(self.organiser_id),
            requires_identity: self.requires_identity,
            allows_reentry: self.allows_reentry,
            cancel_policy: self.terms.cancel_policy.clone(),
            layout: None,
            prices: self.prices.clone(),
            ticket_types: Vec::new(),
        }
    }
}

impl TicketType {
    /// The order to the ticket service.
    pub fn order(&self) -> OrderedTicketType {
        let TicketType { id, name, description, price, total } = self.clone();
        OrderedTicketType { id, name, description, price, total }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrices {
    #[error("The grade {0:?} has no price.")]
    Missing(String),
    #[error("The hall has no grade {0:?}.")]
    NoSuchGrade(String),
    #[error("A price is from 0 to {PRICE_MAX_WON} won.")]
    OutOfRange,
}

/// Checks that every grade of the hall has a price, and nothing else has one.
pub fn check_prices(layout: &Layout, prices: &BTreeMap<String, Won>) -> Result<(), InvalidPrices> {
    let grades: BTreeSet<&str> = layout.grades().into_iter().collect();
    if let Some(grade) = grades.iter().find(|grade| !prices.contains_key(**grade)) {
        return Err(InvalidPrices::Missing((*grade).to_owned()));
    }
    if let Some(grade) = prices.keys().find(|grade| !grades.contains(grade.as_str())) {
        return Err(InvalidPrices::NoSuchGrade(grade.clone()));
    }
    match prices.values().all(|price| TicketTypeDraft::is_price(*price)) {
        true => Ok(()),
        false => Err(InvalidPrices::OutOfRange),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTicketTypes {
    #[error("A standing event has 1 to {PER_EVENT_MAX} types of tickets.")]
    Number,
    #[error("Two types of tickets have the same name.")]
    SameName,
    #[error(transparent)]
    Type(#[from] InvalidTicketType),
}

pub fn check_ticket_types(types: &[TicketType]) -> Result<(), InvalidTicketTypes> {
    if !(1..=PER_EVENT_MAX).contains(&types.len()) {
        return Err(InvalidTicketTypes::Number);
    }
    let names: BTreeSet<&str> = types.iter().map(|ticket_type| ticket_type.name.as_str()).collect();
    if names.len() != types.len() {
        return Err(InvalidTicketTypes::SameName);
    }
    types.iter().try_for_each(|ticket_type| Ok(check_ticket_type(ticket_type)?))
}

/// Checks a ticket type by the same rules as the ticket service.
pub fn check_ticket_type(ticket_type: &TicketType) -> Result<(), InvalidTicketType> {
    let TicketType { id: _, name, description, price, total } = ticket_type;
    TicketTypeDraft::parse(name, description, price.amount(), i64::from(*total)).map(drop)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPresale {
    #[error("A pre-sale is for the members of an artist, and the event has none.")]
    NoArtist,
    #[error("The sale must last longer than 48 hours, or only members could buy.")]
    TooShort,
}

pub fn check_presale(
    has_presale: bool,
    has_artist: bool,
    schedule: &Schedule,
) -> Result<(), InvalidPresale> {
    if !has_presale {
        return Ok(());
    }
    if !has_artist {
        return Err(InvalidPresale::NoArtist);
    }
    match schedule.presale().general < schedule.sale_ends_at() {
        true => Ok(()),
        false => Err(InvalidPresale::TooShort),
    }
}

/// Fields that are left out keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = EditEventBody)]
pub struct EventChange {
    /// The revision that the editor saw. If there is a newer one, the edit is refused.
    #[schema(minimum = 1)]
    pub revision: i64,
    #[schema(max_length = 200)]
    pub title: Option<String>,
    #[schema(max_length = 5_000)]
    pub description: Option<String>,
    pub artist_id: Option<Uuid>,
    /// The exact name of an artist; an empty text removes the artist.
    #[schema(max_length = 100)]
    pub artist_name: Option<String>,
    /// The artist that was found by id or name; `Some(None)` removes the artist.
    #[serde(skip)]
    pub artist: Option<Option<ArtistRef>>,
    pub starts_at: Option<Timestamp>,
    /// It can change until one minute before the sale starts.
    pub sale_starts_at: Option<Timestamp>,
    pub sale_ends_at: Option<Timestamp>,
    /// It can change until one minute before the sale starts.
    pub has_presale: Option<bool>,
    #[schema(minimum = 1, maximum = 10)]
    pub seats_per_user_max: Option<u32>,
    /// Whether only persons with a checked identity may buy. It can change until one minute before
    /// the sale starts.
    pub requires_identity: Option<bool>,
    /// Whether one may leave and come in again with the same ticket.
    pub allows_reentry: Option<bool>,
    /// Another organiser, whose event it is from now on. Only administrators may name one.
    pub organiser_id: Option<Uuid>,
    /// An empty text removes it.
    #[schema(max_length = 500)]
    pub poster_image_url: Option<String>,
    /// For reservations from now on; who has booked keeps what was agreed. Null: the usual fees.
    #[serde(default, deserialize_with = "deserialize_given")]
    #[schema(value_type = Option<CancelPolicyTable>)]
    pub cancel_policy: Option<Option<CancelPolicyTable>>,
    #[schema(value_type = Option<String>)]
    pub age_rating: Option<AgeRating>,
    #[schema(minimum = 1, maximum = 1_440)]
    pub running_minutes: Option<u32>,
    /// An empty text removes them.
    #[schema(max_length = 5_000)]
    pub notices: Option<String>,
    /// Who performs; an empty list names nobody.
    #[schema(max_items = 100)]
    pub casting: Option<Vec<Performer>>,
    /// The venue, the hall and the prices cannot change: other values are refused with 409.
    #[schema(value_type = Option<Uuid>)]
    pub venue_id: Option<VenueId>,
    #[schema(value_type = Option<Uuid>)]
    pub hall_id: Option<HallId>,
    #[schema(value_type = Option<BTreeMap<String, i64>>)]
    pub prices: Option<BTreeMap<String, Won>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditRejection {
    #[error("Somebody else changed the event. Please load it again.")]
    Stale { revision: i64 },
    #[error("A cancelled event cannot be changed.")]
    Cancelled,
    #[error("{0} cannot be changed any more, because the tickets exist already.")]
    InventoryFixed(&'static str),
    #[error("{0} cannot be changed once the sale has started or is about to.")]
    SaleStarted(&'static str),
    #[error("The event has begun. Its start cannot be changed any more.")]
    HasBegun,
    #[error(transparent)]
    Past(#[from] StartsInPast),
    #[error(transparent)]
    CancelPolicy(#[from] InvalidPolicyTable),
    #[error(transparent)]
    RunningTime(#[from] InvalidRunningTime),
    #[error(transparent)]
    Casting(#[from] InvalidCasting),
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    #[error(transparent)]
    Presale(#[from] InvalidPresale),
}

/// Nobody can come to an event that is over, or get their money back for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("An event cannot begin in the past.")]
pub struct StartsInPast;

pub fn check_start(starts_at: Timestamp, now: Timestamp) -> Result<(), StartsInPast> {
    match starts_at > now {
        true => Ok(()),
        false => Err(StartsInPast),
    }
}

/// Applies a change. Seats and tickets were made when the event was created, so what they were made
/// of cannot change; what buyers rely on cannot change once the sale has started.
pub fn decide_edit(
    event: &EventRecord,
    change: &EventChange,
    now: Timestamp,
) -> Result<EventRecord, EditRejection> {
    if change.revision != event.revision {
        return Err(EditRejection::Stale { revision: event.revision });
    }
    if event.is_cancelled() {
        return Err(EditRejection::Cancelled);
    }
    reject_inventory_change(event, change)?;
    if event.may_be_selling(now) {
        reject_change_after_start(event, change)?;
    }
    if let Some(starts_at) = change.starts_at.filter(|time| *time != event.schedule.starts_at()) {
        // Visitors of the event would get a free cancellation.
        if event.has_begun(now) {
            return Err(EditRejection::HasBegun);
        }
        check_start(starts_at, now)?;
    }
    let mut changed = event.clone();
    changed.schedule = Schedule::parse(
        change.starts_at.unwrap_or(event.schedule.starts_at()),
        change.sale_starts_at.unwrap_or(event.schedule.sale_starts_at()),
        change.sale_ends_at.unwrap_or(event.schedule.sale_ends_at()),
    )?;
    let EventChange { title, description, artist, poster_image_url, .. } = change.clone();
    changed.title = title.unwrap_or(changed.title);
    changed.description = description.unwrap_or(changed.description);
    changed.artist = artist.unwrap_or(changed.artist);
    changed.poster_image_url = poster_image_url.unwrap_or(changed.poster_image_url);
    changed.terms = change_terms(&event.terms, change)?;
    changed.has_presale = change.has_presale.unwrap_or(event.has_presale);
    changed.seats_per_user_max = change.seats_per_user_max.unwrap_or(event.seats_per_user_max);
    changed.requires_identity = change.requires_identity.unwrap_or(event.requires_identity);
    changed.allows_reentry = change.allows_reentry.unwrap_or(event.allows_reentry);
    changed.organiser_id = change.organiser_id.unwrap_or(event.organiser_id);
    check_presale(changed.has_presale, changed.artist.is_some(), &changed.schedule)?;
    changed.announced_status = changed.schedule.status_at(now);
    changed.revision = event.revision + 1;
    changed.updated_at = now;
    Ok(changed)
}

/// A field that is given, also as null.
fn deserialize_given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn change_terms(terms: &EventTerms, change: &EventChange) -> Result<EventTerms, EditRejection> {
    let running_minutes = change.running_minutes.map(RunningMinutes::new).transpose()?;
    let cancel_policy = match change.cancel_policy.clone() {
        None => terms.cancel_policy.clone(),
        Some(table) => table.map(CancelPolicy::try_from).transpose()?,
    };
    let casting = change.casting.clone().map(Casting::parse).transpose()?;
    Ok(EventTerms {
        casting: casting.unwrap_or_else(|| terms.casting.clone()),
        cancel_policy,
        age_rating: change.age_rating.unwrap_or(terms.age_rating),
        running_minutes: running_minutes.or(terms.running_minutes),
        notices: change.notices.clone().unwrap_or_else(|| terms.notices.clone()),
    })
}

fn reject_inventory_change(event: &EventRecord, change: &EventChange) -> Result<(), EditRejection> {
    let fixed = |what| Err(EditRejection::InventoryFixed(what));
    if change.venue_id.is_some_and(|id| id != event.venue.id) {
        return fixed("The venue");
    }
    if change.hall_id.is_some_and(|id| event.hall.as_ref().map(|hall| hall.id) != Some(id)) {
        return fixed("The hall");
    }
    if change.prices.as_ref().is_some_and(|prices| *prices != event.prices) {
        return fixed("The prices");
    }
    Ok(())
}

fn reject_change_after_start(
    event: &EventRecord,
    change: &EventChange,
) -> Result<(), EditRejection> {
    let started = |what| Err(EditRejection::SaleStarted(what));
    if change.sale_starts_at.is_some_and(|time| time != event.schedule.sale_starts_at()) {
        return started("The beginning of the sale");
    }
    if change.has_presale.is_some_and(|has_presale| has_presale != event.has_presale) {
        return started("The pre-sale");
    }
    if change.requires_identity.is_some_and(|requires| requires != event.requires_identity) {
        return started("Whether an identity is required");
    }
    if change.artist.as_ref().is_some_and(|artist| *artist != event.artist) {
        return started("The artist");
    }
    Ok(())
}

/// Whether an event may be deleted: nothing can have been sold, or it has begun or was cancelled.
pub fn may_delete(event: &EventRecord, now: Timestamp) -> bool {
    event.is_cancelled() || !event.may_be_selling(now) || event.has_begun(now)
}

#[cfg(test)]
mod tests;
