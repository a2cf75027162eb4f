//! Views of reservations.

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use utoipa::ToSchema;

use crate::reservations::buyers::{Buyer, Buyers};
use crate::reservations::rules::ReservationPhase;
use crate::reservations::store::list::StoredTicket;
use crate::reserve::http::{HeldSeatView, HeldTicketsView, item_views};
use crate::{
    CancellationTerm, ReservationDetails, ReservationStatus, Signer, TicketService, etickets,
};

/// A reservation with its items.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationView {
    id: Uuid,
    #[schema(example = "R-7ZQ0-M4KD-91XA")]
    reservation_number: String,
    event_id: Uuid,
    event_title: String,
    venue_name: String,
    event_starts_at: Timestamp,
    /// `online`, `complimentary` or `box_office`.
    #[schema(example = "online")]
    kind: &'static str,
    /// `pending`, `confirmed`, `cancelled` or `expired`.
    #[schema(example = "confirmed")]
    status: &'static str,
    /// `unpaid`, `paid`, `refunding` or `refunded`.
    #[schema(example = "paid")]
    payment_status: &'static str,
    /// A payment is under way: until it is decided the reservation cannot be changed.
    payment_in_progress: bool,
    #[schema(value_type = i64, example = 198_000)]
    total_amount: Won,
    /// Part of the total: what a purchase in a pre-sale, or from someone else, costs beside the
    /// seats or tickets.
    #[schema(value_type = i64, example = 0)]
    booking_fee: Won,
    quantity: u32,
    created_at: Timestamp,
    /// When the hold ends if it is not paid.
    expires_at: Timestamp,
    /// Only of a hold.
    fencing_token: Option<i64>,
    payment_method: Option<String>,
    /// What goes back of a paid reservation that was cancelled.
    #[schema(value_type = Option<i64>)]
    refund_amount: Option<Won>,
    /// What is kept of a paid reservation that was cancelled.
    #[schema(value_type = Option<i64>)]
    cancellation_fee: Option<Won>,
    /// The price of the tickets that were cancelled one by one. It is no part of the total.
    #[schema(value_type = i64, example = 0)]
    cancelled_amount: Won,
    /// What goes back of it.
    #[schema(value_type = i64, example = 0)]
    cancelled_refund_amount: Won,
    /// The start of the event that the owner agreed to. If the event was moved to another day since,
    /// cancelling is free until it begins.
    agreed_starts_at: Timestamp,
    /// Why it was cancelled.
    #[schema(example = "CANCELLED_BY_OWNER")]
    end_reason: Option<String>,
    seats: Vec<HeldSeatView>,
    items: Vec<HeldTicketsView>,
}

/// A ticket for one person.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicketView {
    #[schema(example = "T-4GZ8-0QKX-M2VD")]
    number: String,
    seat_id: Option<SeatId>,
    seat_label: Option<String>,
    ticket_type_name: Option<String>,
    is_valid: bool,
    #[schema(value_type = i64, example = 99_000)]
    price: Won,
    checked_in_at: Option<Timestamp>,
    /// What its QR code says; only of a valid ticket.
    qr: Option<String>,
}

/// A reservation with its tickets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationDetailView {
    #[serde(flatten)]
    reservation: ReservationView,
    /// None until it is paid.
    tickets: Vec<TicketView>,
    /// By how many seconds the hold can still be extended, once. None: it cannot.
    #[schema(example = 180)]
    extension_seconds: Option<u64>,
    /// What cancelling everything costs by date, from the booking to the event: the policy that was
    /// agreed on then. Empty if the reservation has ended.
    cancellation_terms: Vec<CancellationTerm>,
}

/// A reservation as those see it who look after it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminReservationView {
    user_id: Uuid,
    /// Null if the account was deleted or the auth service is away.
    buyer: Option<Buyer>,
    payment_id: Option<Uuid>,
    #[serde(flatten)]
    reservation: ReservationView,
}

impl ReservationView {
    pub fn new(details: &ReservationDetails, now: Timestamp) -> ReservationView {
        let record = &details.record;
        let reservation = &record.reservation;
        let (seats, items) = item_views(&details.items, details.inventory.as_deref());
        let (phase, status) = (record.phase(now), record.status(now));
        ReservationView {
            id: reservation.id.0,
            reservation_number: reservation.number.clone(),
            event_id: reservation.event_id,
            event_title: record.event_title.clone(),
            venue_name: record.venue_name.clone(),
            event_starts_at: record.starts_at,
            kind: record.kind.as_str(),
            status: status.as_str(),
            payment_status: reservation.payment_status.as_str(),
            payment_in_progress: matches!(phase, ReservationPhase::Pinned { .. }),
            total_amount: reservation.total_amount,
            booking_fee: reservation.booking_fee,
            quantity: reservation.quantity,
            created_at: reservation.created_at,
            expires_at: reservation.expires_at,
            fencing_token: (status == ReservationStatus::Pending).then_some(reservation.fence),
            payment_method: record.payment_method.clone(),
            refund_amount: record.refund_amount,
            cancellation_fee: record.cancellation_fee(),
            cancelled_amount: record.cancelled_amount,
            cancelled_refund_amount: record.cancelled_refund_amount,
            agreed_starts_at: record.agreed_starts_at,
            end_reason: record.end_reason.clone(),
            seats,
            items,
        }
    }
}

impl ReservationDetailView {
    pub fn new(
        ticket: &TicketService,
        details: &ReservationDetails,
        cancellation_terms: Vec<CancellationTerm>,
    ) -> ReservationDetailView {
        let (signer, now) = (&ticket.signer, ticket.clock.now());
        let tickets = details.tickets.iter().map(|ticket| TicketView::new(ticket, details, signer));
        ReservationDetailView {
            reservation: ReservationView::new(details, now),
            tickets: tickets.collect(),
            extension_seconds: ticket.extension_of(&details.record, now).map(|it| it.as_secs()),
            cancellation_terms,
        }
    }
}

impl TicketView {
    pub fn new(ticket: &StoredTicket, details: &ReservationDetails, signer: &Signer) -> TicketView {
        let place = details.inventory.as_ref().zip(ticket.seat_id);
        let place = place.and_then(|(inventory, seat_id)| inventory.layout.place(seat_id));
        TicketView {
            number: ticket.number.clone(),
            seat_id: ticket.seat_id,
            seat_label: place.map(|place| place.label()),
            ticket_type_name: ticket.ticket_type_name.clone(),
            is_valid: ticket.is_valid,
            price: ticket.unit_price,
            checked_in_at: ticket.checked_in_at,
            qr: ticket.is_valid.then(|| etickets::payload(ticket, signer)),
        }
    }
}

impl AdminReservationView {
    pub fn new(
        details: &ReservationDetails,
        buyers: Option<&Buyers>,
        now: Timestamp,
    ) -> AdminReservationView {
        let record = &details.record;
        AdminReservationView {
            user_id: record.reservation.user_id,
            buyer: buyers.and_then(|all| all.get(&record.reservation.user_id)).cloned(),
            payment_id: record.payment_id,
            reservation: ReservationView::new(details, now),
        }
    }
}
