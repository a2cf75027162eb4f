//! House seats: what the organiser keeps out of the sale, gives away, or sells at the box office.
//!
//! Blocked seats and standing tickets are not available until they are released. Complimentary
//! tickets and sales at the box office are reservations that are confirmed at once, of free or of
//! blocked places. All of it happens under the lock of the sale, like every change of seats and
//! stock, so whoever holds the same seat at the same moment is either first or refused.

pub(crate) mod box_office;
pub(crate) mod complimentary;
pub(crate) mod guests;
pub(crate) mod http;
pub(crate) mod issue;
pub(crate) mod store;
pub(crate) mod tickets_http;

use std::collections::BTreeMap;

use urr_contracts::events::inventory::HouseSeatsChanged;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_layout::SeatId;
use urr_service::admin_log::{self, AdminAction};
use urr_service::idempotency::{KeyClaim, KeyedRequest, key_claim, key_complete};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use crate::alerts::store::gates_note_return;
use crate::inventory::store::{LockedSale, sale_lock};
use crate::reservations::rules::ReservationRejection;
use crate::reservations::transition::TransitionError;
use crate::{SaleStatus, TicketService};

/// More seats or tickets at once are a mistake.
pub(crate) const PLACES_MAX: usize = 2_000;

/// Seats, or standing tickets by type: at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HousePlaces {
    /// In ascending order, each once.
    pub seat_ids: Vec<SeatId>,
    pub items: BTreeMap<Uuid, HouseItem>,
}

/// Standing tickets of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HouseItem {
    pub quantity: u32,
    /// Whether they are taken from the blocked ones, where tickets are issued.
    pub from_blocked: bool,
}

/// A request to block or to release.
#[derive(Clone, Debug)]
pub struct BlockRequest {
    pub event_id: Uuid,
    pub places: HousePlaces,
    pub reason: String,
    pub organiser_id: Uuid,
    pub key: Option<KeyedRequest>,
}

/// What is blocked for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedSeats {
    pub reason: String,
    pub blocked_by: Uuid,
    pub blocked_at: Timestamp,
    pub seat_ids: Vec<SeatId>,
    /// Standing tickets by type.
    pub items: BTreeMap<Uuid, u32>,
}

/// Why house seats were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HouseSeatsError {
    #[error("There is no event with this id on sale.")]
    EventNotFound,
    #[error("This event was cancelled.")]
    EventCancelled,
    #[error("Some of these seats are held or sold.")]
    SeatsTaken(Vec<SeatId>),
    #[error("Some of these seats are not blocked.")]
    SeatsNotBlocked(Vec<SeatId>),
    #[error("The event has no such ticket type.")]
    TicketTypeNotFound(Uuid),
    #[error("There are not that many tickets left.")]
    NotEnough(Uuid),
    #[error("Not that many tickets are blocked.")]
    NotEnoughBlocked(Uuid),
    #[error("There is no account with this id.")]
    UserNotFound,
    #[error("Accounts cannot be looked up at the moment.")]
    UsersUnavailable,
    #[error("This idempotency key was used for another request.")]
    KeyReused,
    #[error(transparent)]
    Reservation(#[from] ReservationRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<TransitionError> for HouseSeatsError {
    fn from(error: TransitionError) -> HouseSeatsError {
        match error {
            TransitionError::Rejected(rejection) => rejection.into(),
            TransitionError::Storage(error) => error.into(),
        }
    }
}

impl TicketService {
    /// Keeps free seats or tickets out of the sale: all of them, or nothing. Seats that are blocked
    /// stay so, for the new reason.
    pub async fn block_seats(
        &self,
        request: BlockRequest,
        context: CallContext,
    ) -> Result<(), HouseSeatsError> {
        let event_id = request.event_id;
        let blocked = self.change_house_seats(request, "HOUSE_SEATS_BLOCKED", context, block_step);
        blocked.await.inspect(|()| self.maps.mark_taken(event_id))
    }

    /// Gives blocked seats or tickets back to the sale: all of them, or nothing. Fans who wait for
    /// seats are told first.
    pub async fn release_seats_of_house(
        &self,
        request: BlockRequest,
        context: CallContext,
    ) -> Result<(), HouseSeatsError> {
        let event_id = request.event_id;
        let released =
            self.change_house_seats(request, "HOUSE_SEATS_RELEASED", context, release_step);
        released.await.inspect(|()| self.seats_changed(event_id))
    }

    /// Runs a step that changes what is blocked, once per key, and announces and logs it with the
    /// step.
    async fn change_house_seats(
        &self,
        request: BlockRequest,
        action: &'static str,
        context: CallContext,
        step: HouseStep,
    ) -> Result<(), HouseSeatsError> {
        let event_id = request.event_id;
        let action = self.admin_action(request.organiser_id, action, "event", event_id);
        let stamp = self.prepare_events(1, context).stamp(0);
        let changed = self.db.write(move |tx| {
            if is_repeated(tx, request.key.as_ref(), action.created_at)?.is_some() {
                return Ok(());
            }
            let fence = step(tx, &request, action.created_at)?;
            announce(tx, event_id, fence, &stamp)?;
            log(tx, &action, &request.places, &request.reason)?;
            Ok(complete(tx, request.key.as_ref(), event_id)?)
        });
        changed.await
    }

    /// What is blocked of an event, by reason, the oldest first.
    pub async fn list_blocked_seats(&self, event_id: Uuid) -> DbResult<Vec<BlockedSeats>> {
        self.db.read(move |tx| store::blocked_list(tx, event_id)).await
    }
}

/// Locks the sale, changes what is blocked, and returns the number of the change.
type HouseStep = fn(&mut Tx<'_>, &BlockRequest, Timestamp) -> Result<i64, HouseSeatsError>;

fn block_step(
    tx: &mut Tx<'_>,
    request: &BlockRequest,
    now: Timestamp,
) -> Result<i64, HouseSeatsError> {
    let sale = lock_open_sale(tx, request.event_id)?;
    block(tx, request, sale.fence, now)?;
    Ok(sale.fence)
}

fn release_step(
    tx: &mut Tx<'_>,
    request: &BlockRequest,
    now: Timestamp,
) -> Result<i64, HouseSeatsError> {
    let event_id = request.event_id;
    let sale = sale_lock(tx, event_id, 1)?.ok_or(HouseSeatsError::EventNotFound)?;
    release(tx, request, sale.fence)?;
    gates_note_return(tx, event_id, now)?;
    Ok(sale.fence)
}

fn block(
    tx: &mut Tx<'_>,
    request: &BlockRequest,
    fence: i64,
    now: Timestamp,
) -> Result<(), HouseSeatsError> {
    let mut taken = Vec::new();
    for seat_id in &request.places.seat_ids {
        if !store::seat_block(tx, request, *seat_id, fence, now)? {
            taken.push(*seat_id);
        }
    }
    if !taken.is_empty() {
        return Err(HouseSeatsError::SeatsTaken(taken));
    }
    for (type_id, item) in &request.places.items {
        check_type(tx, request.event_id, *type_id)?;
        if !store::stock_take(tx, *type_id, item.quantity)? {
            return Err(HouseSeatsError::NotEnough(*type_id));
        }
        store::stock_block(tx, request, *type_id, item.quantity, now)?;
    }
    Ok(())
}

fn release(tx: &mut Tx<'_>, request: &BlockRequest, fence: i64) -> Result<(), HouseSeatsError> {
    let mut free = Vec::new();
    for seat_id in &request.places.seat_ids {
        if !store::seat_release(tx, request.event_id, *seat_id, fence)? {
            free.push(*seat_id);
        }
    }
    if !free.is_empty() {
        return Err(HouseSeatsError::SeatsNotBlocked(free));
    }
    for (type_id, item) in &request.places.items {
        check_type(tx, request.event_id, *type_id)?;
        if !store::stock_unblock(tx, *type_id, item.quantity)? {
            return Err(HouseSeatsError::NotEnoughBlocked(*type_id));
        }
        store::stock_return(tx, *type_id, item.quantity)?;
    }
    Ok(())
}

pub(crate) fn check_type(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    type_id: Uuid,
) -> Result<(), HouseSeatsError> {
    match store::type_exists(tx, event_id, type_id)? {
        true => Ok(()),
        false => Err(HouseSeatsError::TicketTypeNotFound(type_id)),
    }
}

/// Locks a sale that was not cancelled, and numbers the change. Whether it is open to buyers does not
/// matter.
pub(crate) fn lock_open_sale(
    tx: &mut Tx<'_>,
    event_id: Uuid,
) -> Result<LockedSale, HouseSeatsError> {
    let sale = sale_lock(tx, event_id, 1)?.ok_or(HouseSeatsError::EventNotFound)?;
    match sale.policy.status {
        SaleStatus::Open => Ok(sale),
        SaleStatus::Cancelled => Err(HouseSeatsError::EventCancelled),
        SaleStatus::Deleted => Err(HouseSeatsError::EventNotFound),
    }
}

/// Announces how many places are blocked now.
pub(crate) fn announce(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    fence: i64,
    stamp: &EventMetadata,
) -> DbResult<()> {
    let blocked = store::blocked_count(tx, event_id)?;
    outbox::append(tx, stamp, &HouseSeatsChanged { event_id, blocked, fence })
}

/// What came of the same request before.
pub(crate) fn is_repeated(
    tx: &mut Tx<'_>,
    key: Option<&KeyedRequest>,
    now: Timestamp,
) -> Result<Option<Uuid>, HouseSeatsError> {
    let Some(key) = key else { return Ok(None) };
    match key_claim(tx, key, now)? {
        KeyClaim::New => Ok(None),
        KeyClaim::Reused => Err(HouseSeatsError::KeyReused),
        KeyClaim::Repeated { resource_id } => {
            let id = resource_id.expect("the key was committed with what came of it");
            Ok(Some(id.parse().expect("only ids are noted")))
        }
    }
}

pub(crate) fn complete(tx: &mut Tx<'_>, key: Option<&KeyedRequest>, id: Uuid) -> DbResult<()> {
    key.map_or(Ok(()), |key| key_complete(tx, key, &id.to_string()))
}

pub(crate) fn log(
    tx: &mut Tx<'_>,
    action: &AdminAction,
    places: &HousePlaces,
    reason: &str,
) -> DbResult<()> {
    let tickets: u32 = places.items.values().map(|item| item.quantity).sum();
    let summary = match places.seat_ids.len() {
        0 => format!("{tickets} tickets: {reason}"),
        seats => format!("{seats} seats: {reason}"),
    };
    let details =
        (!places.seat_ids.is_empty()).then(|| serde_json::json!({ "seatIds": places.seat_ids }));
    admin_log::insert(tx, &AdminAction { summary, details, ..action.clone() })
}
