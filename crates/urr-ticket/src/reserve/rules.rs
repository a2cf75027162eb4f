//! Rules of holds: requests for seats or standing tickets are decided one after another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;

use crate::display_number::display_number;
use crate::inventory::rules::{Inventory, NotOnSale, SalePolicy, Tier};
use crate::reservations::model::{
    ItemSubject, Reservation, ReservationId, ReservationItem, ReservationPaymentStatus,
    ReservationStatus,
};
use crate::reservations::refund::rules::CancelPolicy;

/// A request for seats or tickets of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldRequest {
    /// The id of the reservation that it may become.
    pub reservation_id: ReservationId,
    pub user_id: Uuid,
    pub requested: RequestedItems,
    pub key: Option<HoldRequestKey>,
}

/// At least one, each only once, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedItems {
    Seats(Vec<SeatId>),
    Tickets(Vec<RequestedTickets>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedTickets {
    pub ticket_type_id: Uuid,
    pub quantity: u32,
}

/// The idempotency key of a request and the digest of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldRequestKey {
    pub text: String,
    pub digest: [u8; 32],
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
    pub stock: HashMap<Uuid, AvailableStock>,
    pub buyers: HashMap<Uuid, BuyerHoldings>,
    /// Earlier reservations by user and key.
    pub earlier: HashMap<(Uuid, String), EarlierRequest>,
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierRequest {
    pub digest: [u8; 32],
    pub reservation_id: ReservationId,
}

/// Terms that are the same for all requests of a batch.
#[derive(Clone, Debug)]
pub struct HoldTerms {
    pub now: Timestamp,
    pub hold_ttl: Duration,
    pub cancel_policy: Arc<CancelPolicy>,
    /// See [`crate::TicketSettings::dangerous_without_seat_guard`].
    pub dangerous_without_seat_guard: bool,
}

/// A reservation with its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub reservation: Reservation,
    pub items: Vec<HoldItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldItem {
    pub item: ReservationItem,
    /// The name of the ticket type; a seat's follows from its number.
    pub name: Option<String>,
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
    #[error("another hold of this event waits for its payment")]
    HoldInProgress { reservation_id: ReservationId },
    #[error("more than one person may have")]
    SeatLimit { seats_per_user_max: u32, live_quantity: u32 },
    #[error("seats are taken")]
    SeatsTaken { seat_ids: Vec<SeatId> },
    /// That request may fail, so it is worth trying again.
    #[error("someone else is getting an answer about the seat")]
    SeatBeingDecided { seat_id: SeatId },
    #[error("there is no such ticket type")]
    TicketTypeNotFound { ticket_type_id: Uuid },
    #[error("not enough tickets are left")]
    NotEnough { ticket_type_id: Uuid, name: String, available: u32 },
    #[error("the key was used for another request")]
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
        }
    }

    /// The seats; none if it is about standing tickets.
    pub fn seat_ids(&self) -> &[SeatId] {
        match self {
            RequestedItems::Seats(seat_ids) => seat_ids,
            RequestedItems::Tickets(_) => &[],
        }
    }

    pub fn tickets(&self) -> &[RequestedTickets] {
        match self {
            RequestedItems::Seats(_) => &[],
            RequestedItems::Tickets(lines) => lines,
        }
    }
}

impl Hold {
    pub fn quantity(&self) -> u32 {
        self.items.iter().map(|held| held.item.quantity).sum()
    }

    pub fn seat_ids(&self) -> Vec<SeatId> {
        let seat_id = |held: &HoldItem| match held.item.subject {
            ItemSubject::Seat(seat_id) => Some(seat_id),
            ItemSubject::TicketType(_) => None,
        };
        self.items.iter().filter_map(seat_id).collect()
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
    if buyer.live_quantity.saturating_add(quantity) > seats_per_user_max {
        let live_quantity = buyer.live_quantity;
        return Err(HoldRejection::SeatLimit { seats_per_user_max, live_quantity });
    }
    let items = match &request.requested {
        RequestedItems::Seats(seat_ids) => take_seats(state, seat_ids, inventory, terms)?,
        RequestedItems::Tickets(lines) => take_tickets(state, lines)?,
    };
    state.fence += 1;
    let booking_fee = state.policy.booking_fee(buyer.tier, terms.now);
    let priced = PricedItems { items, booking_fee };
    let hold = make_hold(state.fence, request, priced, inventory, terms);
    record_hold(state, request, &hold);
    Ok(HoldDecision::Hold(hold))
}

/// The reservation that an earlier request with the same key made.
fn find_repeated(
    state: &SaleState,
    request: &HoldRequest,
) -> Result<Option<ReservationId>, HoldRejection> {
    let Some(key) = &request.key else { return Ok(None) };
    match state.earlier.get(&(request.user_id, key.text.clone())) {
        None => Ok(None),
        Some(earlier) if earlier.digest == key.digest => Ok(Some(earlier.reservation_id)),
        Some(_) => Err(HoldRejection::KeyReused),
    }
}

fn take_seats(
    state: &mut SaleState,
    seat_ids: &[SeatId],
    inventory: &Inventory,
    terms: &HoldTerms,
) -> Result<Vec<HoldItem>, HoldRejection> {
    let is_taken = |seat_id: &&SeatId| {
        let is_free = state.seats.get(*seat_id).expect("the caller loads every seat asked for");
        !is_free && !terms.dangerous_without_seat_guard
    };
    let taken: Vec<SeatId> = seat_ids.iter().filter(is_taken).copied().collect();
    if !taken.is_empty() {
        return Err(HoldRejection::SeatsTaken { seat_ids: taken });
    }
    let take = |&seat_id: &SeatId| {
        state.seats.insert(seat_id, false);
        let unit_price = inventory.price(seat_id).expect("the caller knows the seats");
        HoldItem {
            item: ReservationItem { subject: ItemSubject::Seat(seat_id), quantity: 1, unit_price },
            name: None,
        }
    };
    Ok(seat_ids.iter().map(take).collect())
}

fn take_tickets(
    state: &mut SaleState,
    lines: &[RequestedTickets],
) -> Result<Vec<HoldItem>, HoldRejection> {
    for &RequestedTickets { ticket_type_id, quantity } in lines {
        let stock = state.stock.get(&ticket_type_id);
        let stock = stock.ok_or(HoldRejection::TicketTypeNotFound { ticket_type_id })?;
        if stock.available < quantity {
            let (name, available) = (stock.name.clone(), stock.available);
            return Err(HoldRejection::NotEnough { ticket_type_id, name, available });
        }
    }
    let take = |&RequestedTickets { ticket_type_id, quantity }: &RequestedTickets| {
        let stock = state.stock.get_mut(&ticket_type_id).expect("it was found above");
        stock.available -= quantity;
        let subject = ItemSubject::TicketType(ticket_type_id);
        let item = ReservationItem { subject, quantity, unit_price: stock.price };
        HoldItem { item, name: Some(stock.name.clone()) }
    };
    Ok(lines.iter().map(take).collect())
}

/// The items and the fee of a hold.
struct PricedItems {
    items: Vec<HoldItem>,
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
    let total_amount = items.iter().try_fold(booking_fee, |sum, held| {
        sum.plus(held.item.unit_price.times(i64::from(held.item.quantity))?)
    });
    let reservation = Reservation {
        id: request.reservation_id,
        number: display_number('R', request.reservation_id.0),
        user_id: request.user_id,
        event_id: inventory.event_id,
        status: ReservationStatus::Pending,
        payment_status: ReservationPaymentStatus::Unpaid,
        total_amount: total_amount.expect("prices are bounded where they enter"),
        booking_fee,
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
    buyer.live_quantity += hold.quantity();
    if let Some(key) = &request.key {
        let earlier = EarlierRequest { digest: key.digest, reservation_id };
        state.earlier.insert((request.user_id, key.text.clone()), earlier);
    }
}

#[cfg(test)]
mod tests;
