//! Reservations and their states.

use urr_contracts::events::reservation::ReservationSnapshot;
use urr_kernel::{CallContext, Timestamp, Uuid, Won, define_id};
use urr_layout::SeatId;
use urr_storage::{storable_enum, storable_id};

define_id!(
    /// Which reservation.
    ReservationId
);
storable_id!(ReservationId);

/// A hold is a pending reservation. It ends as exactly one of the others; only a confirmed one can
/// still be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservationStatus {
    Pending,
    Confirmed,
    Cancelled,
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservationPaymentStatus {
    Unpaid,
    Paid,
    /// Cancelled after it was paid: the money is on its way back.
    Refunding,
    Refunded,
}

/// How a reservation came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservationKind {
    Online,
    /// Given away: it costs nothing and has no payment.
    Complimentary,
    BoxOffice,
}

/// Seats or standing tickets of one person for one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub id: ReservationId,
    /// For people: on tickets, in mails, on the phone.
    pub number: String,
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub status: ReservationStatus,
    pub payment_status: ReservationPaymentStatus,
    /// The price of its items and the booking fee.
    pub total_amount: Won,
    /// The surcharge of a pre-sale, and the fees of the transfers by which it came to its owner.
    pub booking_fee: Won,
    /// Seats or standing tickets together.
    pub quantity: u32,
    /// The fencing token. It grows with every change of the event's seats and stock.
    pub fence: i64,
    pub expires_at: Timestamp,
    /// The payment that is under way.
    pub pinned_by: Option<Uuid>,
    pub created_at: Timestamp,
}

/// The events of a reservation: their flow, and the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventChain {
    /// The correlation id of the request that made the reservation.
    pub correlation_id: Option<Uuid>,
    /// The last event before it ended.
    pub last_event_id: Option<Uuid>,
}

impl EventChain {
    /// The context of the next event: the same flow, caused by what the call names, or else by the
    /// last event.
    pub fn follow(self, call: CallContext) -> CallContext {
        CallContext {
            correlation_id: self.correlation_id.unwrap_or(call.correlation_id),
            causation_id: call.causation_id.or(self.last_event_id),
            trace: call.trace,
        }
    }
}

impl Reservation {
    /// What its events say about it.
    pub fn snapshot(&self, seat_ids: Vec<SeatId>, now: Timestamp) -> ReservationSnapshot {
        ReservationSnapshot {
            reservation_id: self.id.0,
            reservation_number: self.number.clone(),
            user_id: self.user_id,
            event_id: self.event_id,
            total_amount: self.total_amount,
            booking_fee: self.booking_fee,
            quantity: self.quantity,
            seat_ids,
            timestamp: now,
        }
    }
}

/// An item of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationItem {
    /// Its place in the reservation.
    pub position: u16,
    pub subject: ItemSubject,
    pub quantity: u32,
    pub unit_price: Won,
    /// The name of the ticket type; a seat's follows from its number.
    pub name: Option<String>,
}

impl ReservationItem {
    pub fn seat_id(&self) -> Option<SeatId> {
        match self.subject {
            ItemSubject::Seat(seat_id) => Some(seat_id),
            ItemSubject::TicketType(_) => None,
        }
    }

    pub fn amount(&self) -> Won {
        self.unit_price.times(i64::from(self.quantity)).expect("prices are bounded")
    }
}

/// The seats among the items, in order.
pub fn seat_ids(items: &[ReservationItem]) -> Vec<SeatId> {
    let mut seat_ids: Vec<SeatId> = items.iter().filter_map(ReservationItem::seat_id).collect();
    seat_ids.sort_unstable();
    seat_ids
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemSubject {
    Seat(SeatId),
    TicketType(Uuid),
}

storable_enum!(ReservationStatus { Pending => "pending", Confirmed => "confirmed", Cancelled => "cancelled", Expired => "expired" });

storable_enum!(ReservationKind { Online => "online", Complimentary => "complimentary", BoxOffice => "box_office" });

storable_enum!(ReservationPaymentStatus { Unpaid => "unpaid", Paid => "paid", Refunding => "refunding", Refunded => "refunded" });
