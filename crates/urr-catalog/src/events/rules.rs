//! Events: when they happen, when they are sold, and what may still be changed about them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use urr_kernel::ticket_type_limits::{PER_EVENT_MAX, PRICE_MAX_WON};
use urr_kernel::{InvalidTicketType, TicketTypeDraft, Timestamp, Uuid, Won, define_id};
use urr_layout::Layout;

use crate::artists::ArtistId;
use crate::venues::model::{HallId, VenueId};

pub use super::schedule::{EventStatus, InvalidSchedule, PresaleSchedule, Schedule};

define_id!(
    /// Which event.
    EventId
);

pub const TITLE_CHARS_MAX: usize = 200;
pub const DESCRIPTION_CHARS_MAX: usize = 5_000;
pub const REASON_CHARS_MAX: usize = 500;
pub const SEATS_PER_USER_LIMIT: u32 = 10;

/// A sale that is about to open may sell before the ticket office hears of a change.
const OPENING_MARGIN: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Seated,
    Standing,
}

impl EventKind {
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Seated => "seated",
            EventKind::Standing => "standing",
        }
    }

    pub fn from_name(name: &str) -> Option<EventKind> {
        [EventKind::Seated, EventKind::Standing].into_iter().find(|kind| kind.name() == name)
    }
}

/// An event as it is stored, with the names of what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    pub id: EventId,
    pub revision: i64,
    pub title: String,
    pub description: String,
    pub kind: EventKind,
    /// As it was last announced; [`EventRecord::status_at`] is what it is.
    pub announced_status: EventStatus,
    pub artist: Option<ArtistRef>,
    pub venue: VenueRef,
    pub hall: Option<HallRef>,
    pub schedule: Schedule,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    /// Empty: there is none.
    pub poster_image_url: String,
    /// By grade; empty for standing events.
    pub prices: BTreeMap<String, Won>,
    pub price_min: Won,
    pub price_max: Won,
    pub ordered: OrderedInventory,
    /// Seats and tickets together, as the ticket office has them now.
    pub capacity: i64,
    pub inventory_ready: bool,
    /// Why the ticket office's count was not believed. Empty: nothing is wrong.
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

/// What the ticket office was asked to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedInventory {
    pub seats: u32,
    pub ticket_types: u32,
    /// Seats and tickets together.
    pub places: i64,
}

/// Tickets without a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketType {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub price: Won,
    pub total: u32,
}

impl EventRecord {
    /// What the times make of it now, whatever was announced last.
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

    /// Whether the sale has started, or will have before everybody has heard of a change.
    pub fn may_be_selling(&self, now: Timestamp) -> bool {
        now + OPENING_MARGIN > self.schedule.sale_starts_at()
    }

    pub fn has_begun(&self, now: Timestamp) -> bool {
        now >= self.schedule.starts_at()
    }

    /// Whether people have come for it: it has begun and was not cancelled before.
    pub fn has_taken_place(&self, now: Timestamp) -> bool {
        self.has_begun(now) && !self.is_cancelled()
    }

    /// When members of which tier may buy, if they may before others.
    pub fn presale_schedule(&self) -> Option<PresaleSchedule> {
        self.has_presale.then(|| self.schedule.presale())
    }
}

/// What the prices of a seated event must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrices {
    #[error("The grade {0:?} has no price.")]
    Missing(String),
    #[error("The hall has no grade {0:?}.")]
    NoSuchGrade(String),
    #[error("A price is from 0 to {PRICE_MAX_WON} won.")]
    OutOfRange,
}

/// Every grade of the hall has a price, and nothing else has one.
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
    let names: BTreeSet<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
    if names.len() != types.len() {
        return Err(InvalidTicketTypes::SameName);
    }
    types.iter().try_for_each(|kind| Ok(check_ticket_type(kind)?))
}

/// By the same rules as the ticket office.
pub fn check_ticket_type(kind: &TicketType) -> Result<(), InvalidTicketType> {
    let TicketType { id: _, name, description, price, total } = kind;
    TicketTypeDraft::parse(name, description, price.amount(), i64::from(*total)).map(drop)
}

/// A pre-sale that cannot work.
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

/// What an editor wants to be different. `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventChange {
    /// The state that the editor saw.
    pub revision: i64,
    pub title: Option<String>,
    pub description: Option<String>,
    pub artist: Option<Option<ArtistRef>>,
    pub starts_at: Option<Timestamp>,
    pub sale_starts_at: Option<Timestamp>,
    pub sale_ends_at: Option<Timestamp>,
    pub has_presale: Option<bool>,
    pub seats_per_user_max: Option<u32>,
    pub poster_image_url: Option<String>,
    /// These never change; they are compared.
    pub venue_id: Option<VenueId>,
    pub hall_id: Option<HallId>,
    pub prices: Option<BTreeMap<String, Won>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditRejection {
    #[error("the event was changed by someone else")]
    Stale { revision: i64 },
    #[error("a cancelled event cannot be changed")]
    Cancelled,
    #[error("{0} cannot be changed any more: its tickets were made of it")]
    InventoryFixed(&'static str),
    #[error("{0} cannot be changed once the sale has started or is about to")]
    SaleStarted(&'static str),
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    #[error(transparent)]
    Presale(#[from] InvalidPresale),
}

/// The event after a change. Seats and tickets were made when it was created, so what they were
/// made of stays; what buyers relied on stays once the sale has started.
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
    refuse_other_inventory(event, change)?;
    if event.may_be_selling(now) {
        refuse_after_start(event, change)?;
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
    changed.has_presale = change.has_presale.unwrap_or(event.has_presale);
    changed.seats_per_user_max = change.seats_per_user_max.unwrap_or(event.seats_per_user_max);
    check_presale(changed.has_presale, changed.artist.is_some(), &changed.schedule)?;
    changed.announced_status = changed.schedule.status_at(now);
    changed.revision = event.revision + 1;
    changed.updated_at = now;
    Ok(changed)
}

fn refuse_other_inventory(event: &EventRecord, change: &EventChange) -> Result<(), EditRejection> {
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

fn refuse_after_start(event: &EventRecord, change: &EventChange) -> Result<(), EditRejection> {
    let started = |what| Err(EditRejection::SaleStarted(what));
    if change.sale_starts_at.is_some_and(|time| time != event.schedule.sale_starts_at()) {
        return started("The beginning of the sale");
    }
    if change.has_presale.is_some_and(|has_presale| has_presale != event.has_presale) {
        return started("The pre-sale");
    }
    if change.artist.as_ref().is_some_and(|artist| *artist != event.artist) {
        return started("The artist");
    }
    Ok(())
}

/// Whether it may vanish: nothing can have been sold, or nobody waits for it any more.
pub fn may_delete(event: &EventRecord, now: Timestamp) -> bool {
    event.is_cancelled() || !event.may_be_selling(now) || event.has_begun(now)
}

#[cfg(test)]
mod tests;
