//! Reservations that are confirmed at once: complimentary tickets, and sales at the box office.

use urr_kernel::{CancelPolicy, Timestamp, Uuid, Won};
use urr_storage::outbox::EventMetadata;
use urr_storage::{DbResult, Tx};

use super::guests::{HouseGuest, SealedGuest};
use super::{HousePlaces, HouseSeatsError, check_type, store};
use crate::display_number::display_number;
use crate::inventory::store::LockedSale;
use crate::reservations::history::store::history_insert;
use crate::reservations::history::{HistoryActor, HistoryDetails, HistoryEntry, HistoryKind};
use crate::reservations::hold_steps::tickets_of;
use crate::reservations::store::confirm::{TicketOf, tickets_insert};
use crate::reserve::store::item_insert;
use crate::{
    Inventory, ItemSubject, Reservation, ReservationId, ReservationItem, ReservationKind,
    ReservationPaymentStatus, ReservationStatus, TicketService,
};

/// So many are listed.
const LISTED_MAX: u32 = 500;

/// Complimentary tickets or a sale at the box office, as organisers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HouseReservation {
    pub id: Uuid,
    /// Somebody with an account, or nobody who can log in.
    pub user_id: Uuid,
    pub number: String,
    pub kind: ReservationKind,
    pub status: ReservationStatus,
    pub payment_status: ReservationPaymentStatus,
    pub payment_method: Option<String>,
    pub quantity: u32,
    pub total_amount: Won,
    pub created_at: Timestamp,
    pub issued_by: Uuid,
    pub reason: Option<String>,
    pub receipt_number: Option<String>,
    pub guest: HouseGuest,
}

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HouseList {
    All,
    /// At the box office.
    Sales,
}

/// What is written of a new reservation.
#[derive(Clone, Copy)]
pub(crate) struct NewHouseReservation<'a> {
    pub reservation: &'a Reservation,
    pub kind: ReservationKind,
    /// The payment and its method.
    pub payment: Option<(Uuid, &'a str)>,
    pub issued_by: Uuid,
    pub reason: Option<&'a str>,
    pub receipt_number: Option<&'a str>,
}

/// The reservation of these items, which nobody has yet.
pub(crate) fn new_reservation(
    ids: (ReservationId, Uuid),
    event_id: Uuid,
    items: &[ReservationItem],
    fence: i64,
    now: Timestamp,
) -> Reservation {
    let (id, user_id) = ids;
    let amounts = items.iter().map(|item| item.amount().amount());
    Reservation {
        id,
        number: display_number('R', id.0),
        user_id,
        event_id,
        status: ReservationStatus::Confirmed,
        payment_status: ReservationPaymentStatus::Paid,
        total_amount: Won::new(amounts.sum()),
        booking_fee: Won::ZERO,
        quantity: items.iter().map(|item| item.quantity).sum(),
        fence,
        expires_at: now,
        pinned_by: None,
        created_at: now,
    }
}

/// The items at their price, or for nothing.
pub(crate) fn items_of(
    tx: &mut Tx<'_>,
    inventory: &Inventory,
    places: &HousePlaces,
    is_free: bool,
) -> Result<Vec<ReservationItem>, HouseSeatsError> {
    let mut items = Vec::new();
    for seat_id in &places.seat_ids {
        let place = inventory.layout.place(*seat_id).expect("places are of the hall");
        let price = inventory.prices.get(&place.section.grade).copied();
        items.push((ItemSubject::Seat(*seat_id), 1, price.expect("every grade has a price")));
    }
    for (type_id, item) in &places.items {
        check_type(tx, inventory.event_id, *type_id)?;
        let price = store::type_price(tx, *type_id)?;
        items.push((ItemSubject::TicketType(*type_id), item.quantity, price));
    }
    let item = |(position, (subject, quantity, price)): (usize, (ItemSubject, u32, Won))| {
        ReservationItem {
            position: u16::try_from(position).expect("they are few"),
            subject,
            quantity,
            unit_price: if is_free { Won::ZERO } else { price },
            name: None,
        }
    };
    Ok(items.into_iter().enumerate().map(item).collect())
}

/// Sells seats that are free or blocked, and takes stock: all of it, or an error.
pub(crate) fn take_places(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    places: &HousePlaces,
) -> Result<(), HouseSeatsError> {
    let mut taken = Vec::new();
    for seat_id in &places.seat_ids {
        if !store::seat_sell(tx, reservation, *seat_id)? {
            taken.push(*seat_id);
        }
    }
    if !taken.is_empty() {
        return Err(HouseSeatsError::SeatsTaken(taken));
    }
    for (type_id, item) in &places.items {
        match item.from_blocked {
            true if !store::stock_unblock(tx, *type_id, item.quantity)? => {
                return Err(HouseSeatsError::NotEnoughBlocked(*type_id));
            }
            false if !store::stock_take(tx, *type_id, item.quantity)? => {
                return Err(HouseSeatsError::NotEnough(*type_id));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What the event and the operator agree on with whoever gets a ticket now.
pub(crate) struct AgreedTerms<'a> {
    pub sale: &'a LockedSale,
    pub usual_policy: &'a CancelPolicy,
}

/// Writes the reservation, its items, its tickets and its first entry of the history.
pub(crate) fn reservation_write(
    tx: &mut Tx<'_>,
    new: &NewHouseReservation<'_>,
    items: &[ReservationItem],
    agreed: &AgreedTerms<'_>,
    (stamp, ticket_id): (&EventMetadata, &dyn Fn(usize) -> Uuid),
) -> DbResult<()> {
    let (reservation, policy) = (new.reservation, &agreed.sale.policy);
    let cancel_policy = policy.cancel_policy.as_ref().unwrap_or(agreed.usual_policy);
    store::reservation_insert(tx, new, cancel_policy, policy.starts_at, stamp)?;
    for item in items {
        item_insert(tx, reservation, item, true)?;
    }
    let tickets = tickets_of(items, ticket_id).into_iter();
    let tickets = tickets.map(|new| TicketOf { reservation, new, now: reservation.created_at });
    tickets_insert(tx, &tickets.collect::<Vec<_>>())?;
    let is_sold = new.kind == ReservationKind::BoxOffice;
    let entry = HistoryEntry {
        at: stamp.time,
        kind: if is_sold { HistoryKind::BoxOffice } else { HistoryKind::Complimentary },
        by: HistoryActor::Admin(new.issued_by),
        amount: is_sold.then_some(reservation.total_amount),
        reason: new.reason.or(new.receipt_number).map(str::to_owned),
        details: HistoryDetails {
            payment_id: new.payment.map(|(id, _)| id),
            payment_method: new.payment.map(|(_, method)| method.to_owned()),
            ..HistoryDetails::default()
        },
    };
    history_insert(tx, stamp.event_id, reservation.id, &entry)
}

impl TicketService {
    /// Complimentary tickets and sales at the box office of an event, the newest first.
    pub async fn list_house_reservations(
        &self,
        event_id: Uuid,
        list: HouseList,
    ) -> DbResult<Vec<HouseReservation>> {
        let read = move |tx: &mut Tx<'_>| store::reservation_list(tx, event_id, list, LISTED_MAX);
        let listed = self.db.read(read).await?;
        let open = |(one, guest): (HouseReservation, Option<SealedGuest>)| {
            let id = ReservationId(one.id);
            let guest = guest.map(|guest| self.guest_keys.open_or_unknown(id, &guest));
            HouseReservation { guest: guest.unwrap_or_default(), ..one }
        };
        Ok(listed.into_iter().map(open).collect())
    }
}
