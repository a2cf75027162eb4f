//! Rules of holds: requests for seats or standing tickets are decided one after another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{CancelPolicy, IdempotencyKey, Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_service::idempotency::KeyedRequest;
use utoipa::ToSchema;

use crate::alerts::gates::AlertGates;
use crate::display_number::display_number;
use crate::inventory::rules::{Inventory, NotOnSale, SalePolicy, Tier};
use crate::reservations::model::{
    ItemSubject, Reservation, ReservationId, ReservationItem, ReservationPaymentStatus,
    ReservationStatus, seat_ids,
};
use crate::reserve::best_seats::{NoSeatsFit, SeatPreference, choose_best};
use crate::reserve::persons::PersonHashes;
use crate::seat_map::{SeatStatus, Statuses};

/// A request for seats or tickets of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldRequest {
    /// The id of the reservation that it may become.
    pub reservation_id: ReservationId,
    pub user_id: Uuid,
    /// The person behind the account, if the event requires a checked identity.
    pub person: Option<PersonHashes>,
    pub requested: RequestedItems,
    pub key: Option<KeyedRequest>,
}

/// At least one, each only once, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RequestedItems {
    Seats(Vec<SeatId>),
    Tickets(Vec<RequestedTickets>),
    /// The best of the free seats.
    Best(SeatPreference),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestedTickets {
    pub ticket_type_id: Uuid,
    #[schema(minimum = 1, maximum = 10)]
    pub quantity: u32,
}

/// The state that requests of one event are decided on. It is loaded under the lock of the sale,
/// and every accepted request changes it for those after it.
#[derive(Clone, Debug)]
pub struct SaleState {
    pub policy: SalePolicy,
    /// The last fencing token that was given out.
    pub fence: i64,
    /// Whether each requested seat is free.
    pub seats: HashMap<SeatId, bool>,
    /// All seats of the event, if the best ones are asked for.
    pub map: Option<Statuses>,
    pub stock: HashMap<Uuid, AvailableStock>,
    pub buyers: HashMap<Uuid, BuyerHoldings>,
    /// What persons have of the event, by their current hash, if it requires a checked identity.
    pub persons: HashMap<String, u32>,
    /// Earlier reservations by user and key.
    pub earlier: EarlierRequests,
    /// What has returned and is for fans who were told.
    pub gates: AlertGates,
}

impl SaleState {
    /// The cancellation fees that are agreed on now: those of the event, or the usual ones.
    pub fn cancel_policy<'a>(&'a self, terms: &'a HoldTerms) -> &'a CancelPolicy {
        self.policy.cancel_policy.as_ref().unwrap_or(&terms.cancel_policy)
    }
}

/// Requests that were answered before, by user and key.
pub type EarlierRequests = HashMap<(Uuid, IdempotencyKey), EarlierRequest>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailableStock {
    pub name: String,
    pub price: Won,
    pub available: u32,
}

/// What a user already has of the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuyerHoldings {
    pub tier: Option<Tier>,
    /// Seats or tickets that are held or bought.
    pub live_quantity: u32,
    pub pending: Option<ReservationId>,
}

/// What is known of a key that was used before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRequest {
    pub fingerprint: String,
    pub reservation_id: ReservationId,
    pub used_at: Timestamp,
}

impl EarlierRequest {
    /// The reservation that it made, if it was the same request.
    pub fn repeat(&self, request: &KeyedRequest) -> Result<ReservationId, HoldRejection> {
        match self.fingerprint == request.fingerprint {
            true => Ok(self.reservation_id),
            false => Err(HoldRejection::KeyReused),
        }
    }
}

/// Terms that are the same for all requests of a batch.
#[derive(Clone, Debug)]
pub struct HoldTerms {
    pub now: Timestamp,
    pub hold_ttl: Duration,
    pub cancel_policy: Arc<CancelPolicy>,
    /// How long returned seats are for fans who were told.
    pub gate_max: Duration,
    /// See [`crate::TicketSettings::dangerous_without_seat_guard`].
    pub dangerous_without_seat_guard: bool,
}

/// A reservation with its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub reservation: Reservation,
    pub items: Vec<ReservationItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldDecision {
    Hold(Hold),
    /// The request was answered before.
    Repeated(ReservationId),
}

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoldRejection {
    #[error(transparent)]
    NotOnSale(#[from] NotOnSale),
    #[error("You hold something of this event already. Pay for it or give it back first.")]
    HoldInProgress { reservation_id: ReservationId },
    #[error("Nobody may have more than {seats_per_user_max} of this event.")]
    SeatLimit { seats_per_user_max: u32, live_quantity: u32 },
    #[error("This event is for persons with a checked identity. Please verify yours first.")]
    IdentityRequired,
    #[error("This seat is no longer free.")]
    SeatsTaken { seat_ids: Vec<SeatId> },
    /// That request may fail, so it is worth trying again.
    #[error("Someone else is asking for this seat. Please try again in a moment.")]
    SeatBeingDecided { seat_id: SeatId },
    #[error(transparent)]
    NoneFits(#[from] NoSeatsFit),
    #[error("The event has no such ticket type.")]
    TicketTypeNotFound { ticket_type_id: Uuid },
    #[error("Only {available} of {name} are left.")]
    NotEnough { ticket_type_id: Uuid, name: String, available: u32 },
    /// At the latest everybody may take them at `opens_at`.
    #[error("These seats have just returned. Fans who asked for them go first.")]
    SeatsOffered { opens_at: Option<Timestamp> },
    #[error("The key was used for another request.")]
    KeyReused,
}

/// The most seats or tickets of an event that a user may have.
pub const REQUESTED_MAX: usize = 10;

/// A request that is wrong for every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequestedItems {
    #[error("Please choose at least one.")]
    Empty,
    #[error("At most 10 can be asked for at once.")]
    TooMany,
    #[error("The same is asked for twice.")]
    Duplicate,
}

impl RequestedItems {
    pub fn of_seats(mut seat_ids: Vec<SeatId>) -> Result<RequestedItems, InvalidRequestedItems> {
        check_count(seat_ids.len())?;
        seat_ids.sort_unstable();
        match seat_ids.is_sorted_by(|a, b| a < b) {
            true => Ok(RequestedItems::Seats(seat_ids)),
            false => Err(InvalidRequestedItems::Duplicate),
        }
    }

    pub fn of_tickets(
        mut lines: Vec<RequestedTickets>,
    ) -> Result<RequestedItems, InvalidRequestedItems> {
        check_count(lines.len())?;
        lines.sort_unstable_by_key(|line| line.ticket_type_id);
        if !lines.is_sorted_by(|a, b| a.ticket_type_id < b.ticket_type_id) {
            return Err(InvalidRequestedItems::Duplicate);
        }
        for line in &lines {
            check_count(usize::try_from(line.quantity).unwrap_or(usize::MAX))?;
        }
        Ok(RequestedItems::Tickets(lines))
    }

    /// Seats or tickets together.
    pub fn quantity(&self) -> u32 {
        match self {
            RequestedItems::Seats(seat_ids) => u32::try_from(seat_ids.len()).unwrap_or(u32::MAX),
            RequestedItems::Tickets(lines) => lines.iter().map(|line| line.quantity).sum(),
            RequestedItems::Best(preference) => preference.count,
        }
    }

    /// The seats that are named.
    pub fn seat_ids(&self) -> &[SeatId] {
        match self {
            RequestedItems::Seats(seat_ids) => seat_ids,
            RequestedItems::Tickets(_) | RequestedItems::Best(_) => &[],
        }
    }
}

impl Hold {
    pub fn seat_ids(&self) -> Vec<SeatId> {
        seat_ids(&self.items)
    }
}

fn check_count(count: usize) -> Result<(), InvalidRequestedItems> {
    match count {
        0 => Err(InvalidRequestedItems::Empty),
        1..=REQUESTED_MAX => Ok(()),
        _ => Err(InvalidRequestedItems::TooMany),
    }
}

/// Decides one request and records in the state what it takes.
pub fn decide_hold(
    state: &mut SaleState,
    request: &HoldRequest,
    inventory: &Inventory,
    terms: &HoldTerms,
) -> Result<HoldDecision, HoldRejection> {
    if let Some(reservation_id) = find_repeated(state, request)? {
        return Ok(HoldDecision::Repeated(reservation_id));
    }
    let buyer = state.buyers.get(&request.user_id).copied().unwrap_or_default();
    state.policy.check_open(buyer.tier, terms.now)?;
    if let Some(reservation_id) = buyer.pending {
        return Err(HoldRejection::HoldInProgress { reservation_id });
    }
    let quantity = request.requested.quantity();
    let seats_per_user_max = state.policy.seats_per_user_max;
    let live_quantity = live_quantity(state, request, &buyer)?;
    if live_quantity.saturating_add(quantity) > seats_per_user_max {
        return Err(HoldRejection::SeatLimit { seats_per_user_max, live_quantity });
    }
    let items = match &request.requested {
        RequestedItems::Seats(seat_ids) => {
            let is_free = |id: &SeatId| state.seats.get(id).copied().unwrap_or(false);
            let free: Vec<SeatId> = seat_ids.iter().copied().filter(is_free).collect();
            state.gates.check_seats(request.user_id, inventory, &free)?;
            take_seats(state, seat_ids, inventory, terms)?
        }
        RequestedItems::Tickets(lines) => {
            let is_there = |line: &&RequestedTickets| {
                let stock = state.stock.get(&line.ticket_type_id);
                stock.is_some_and(|stock| stock.available >= line.quantity)
            };
            state.gates.check_tickets(request.user_id, lines.iter().filter(is_there))?;
            take_tickets(state, lines)?
        }
        RequestedItems::Best(preference) => {
            let seat_ids = choose_seats(state, request.user_id, preference, inventory)?;
            state.seats.extend(seat_ids.iter().map(|seat_id| (*seat_id, true)));
            take_seats(state, &seat_ids, inventory, terms)?
        }
    };
    state.fence += 1;
    let booking_fee = state.policy.booking_fee(buyer.tier, terms.now);
    let priced = PricedItems { items, booking_fee };
    let hold = make_hold(state.fence, request, priced, inventory, terms);
    record_hold(state, request, &hold);
    Ok(HoldDecision::Hold(hold))
}

/// The best of the seats that the user may take.
fn choose_seats(
    state: &SaleState,
    user_id: Uuid,
    preference: &SeatPreference,
    inventory: &Inventory,
) -> Result<Vec<SeatId>, HoldRejection> {
    let map = state.map.as_ref().expect("the caller loads the map for such requests");
    let closed = state.gates.closed_seats(user_id, &inventory.layout, preference.count);
    let is_closed = |id: SeatId| closed.ranges.iter().any(|range| range.contains(&id));
    let is_free = |id| map.is_available(id) && !is_closed(id);
    choose_best(&inventory.layout, preference, is_free).map_err(|none| {
        // They are free, but not for this user.
        match choose_best(&inventory.layout, preference, |id| map.is_available(id)) {
            Ok(_) => HoldRejection::SeatsOffered { opens_at: closed.opens_at },
            Err(_) => none.into(),
        }
    })
}

/// What counts against the limit: the account's, or the person's with all their accounts.
fn live_quantity(
    state: &SaleState,
    request: &HoldRequest,
    buyer: &BuyerHoldings,
) -> Result<u32, HoldRejection> {
    if !state.policy.requires_identity {
        return Ok(buyer.live_quantity);
    }
    let person = request.person.as_ref().ok_or(HoldRejection::IdentityRequired)?;
    let of_person = state.persons.get(person.current()).copied().unwrap_or_default();
    Ok(of_person.max(buyer.live_quantity))
}

/// The reservation that an earlier request with the same key made.
fn find_repeated(
    state: &SaleState,
    request: &HoldRequest,
) -> Result<Option<ReservationId>, HoldRejection> {
    let Some(key) = &request.key else { return Ok(None) };
    let earlier = state.earlier.get(&(request.user_id, key.key.clone()));
    earlier.map(|earlier| earlier.repeat(key)).transpose()
}

fn take_seats(
    state: &mut SaleState,
    seat_ids: &[SeatId],
    inventory: &Inventory,
    terms: &HoldTerms,
) -> Result<Vec<ReservationItem>, HoldRejection> {
    let is_taken = |seat_id: &&SeatId| {
        let is_free = state.seats.get(*seat_id).expect("the caller loads every seat asked for");
        !is_free && !terms.dangerous_without_seat_guard
    };
    let taken: Vec<SeatId> = seat_ids.iter().filter(is_taken).copied().collect();
    if !taken.is_empty() {
        return Err(HoldRejection::SeatsTaken { seat_ids: taken });
    }
    let take = |(position, &seat_id): (u16, &SeatId)| {
        state.seats.insert(seat_id, false);
        if let Some(map) = &mut state.map {
            map.set(seat_id, SeatStatus::Held);
        }
        let unit_price = inventory.price(seat_id).expect("the caller knows the seats");
        let subject = ItemSubject::Seat(seat_id);
        ReservationItem { position, subject, quantity: 1, unit_price, name: None }
    };
    Ok((0..).zip(seat_ids).map(take).collect())
}

fn take_tickets(
    state: &mut SaleState,
    lines: &[RequestedTickets],
) -> Result<Vec<ReservationItem>, HoldRejection> {
    for &RequestedTickets { ticket_type_id, quantity } in lines {
        let stock = state.stock.get(&ticket_type_id);
        let stock = stock.ok_or(HoldRejection::TicketTypeNotFound { ticket_type_id })?;
        if stock.available < quantity {
            let (name, available) = (stock.name.clone(), stock.available);
            return Err(HoldRejection::NotEnough { ticket_type_id, name, available });
        }
    }
    let take = |(position, line): (u16, &RequestedTickets)| {
        let RequestedTickets { ticket_type_id, quantity } = *line;
        let stock = state.stock.get_mut(&ticket_type_id).expect("it was found above");
        stock.available -= quantity;
        let (unit_price, name) = (stock.price, Some(stock.name.clone()));
        let subject = ItemSubject::TicketType(ticket_type_id);
        ReservationItem { position, subject, quantity, unit_price, name }
    };
    Ok((0..).zip(lines).map(take).collect())
}

/// The items and the fee of a hold.
struct PricedItems {
    items: Vec<ReservationItem>,
    booking_fee: Won,
}

fn make_hold(
    fence: i64,
    request: &HoldRequest,
    priced: PricedItems,
    inventory: &Inventory,
    terms: &HoldTerms,
) -> Hold {
    let PricedItems { items, booking_fee } = priced;
    let total_amount = items.iter().try_fold(booking_fee, |sum, item| sum.plus(item.amount()));
    let reservation = Reservation {
        id: request.reservation_id,
        number: display_number('R', request.reservation_id.0),
        user_id: request.user_id,
        event_id: inventory.event_id,
        status: ReservationStatus::Pending,
        payment_status: ReservationPaymentStatus::Unpaid,
        total_amount: total_amount.expect("prices are bounded where they enter"),
        booking_fee,
        quantity: request.requested.quantity(),
        fence,
        expires_at: terms.now + terms.hold_ttl,
        pinned_by: None,
        created_at: terms.now,
    };
    Hold { reservation, items }
}

/// Records the hold for the requests after it.
fn record_hold(state: &mut SaleState, request: &HoldRequest, hold: &Hold) {
    let reservation_id = hold.reservation.id;
    let buyer = state.buyers.entry(request.user_id).or_default();
    buyer.pending = Some(reservation_id);
    buyer.live_quantity += hold.reservation.quantity;
    if let Some(person) = &request.person {
        let of_person = state.persons.entry(person.current().to_owned()).or_default();
        *of_person += hold.reservation.quantity;
    }
    if let Some(key) = &request.key {
        let (fingerprint, used_at) = (key.fingerprint.clone(), hold.reservation.created_at);
        let earlier = EarlierRequest { fingerprint, reservation_id, used_at };
        state.earlier.insert((request.user_id, key.key.clone()), earlier);
    }
}

#[cfg(test)]
mod tests;
