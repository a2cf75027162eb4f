//! Sales at the box office: paid in cash or at a card terminal, and confirmed at once.
//!
//! The payment service writes the payment and its ledger entries when it hears of the sale; no
//! provider is asked. A refund there is a cancellation whose reason says that the money was handed
//! over.

use std::sync::Arc;

use urr_contracts::events::reservation::{BoxOfficeSold, REFUNDED_AT_BOX_OFFICE};
use urr_kernel::{CallContext, CancelPolicy, Timestamp, Uuid, named_enum};
use urr_service::admin_log::{self, AdminAction};
use urr_service::idempotency::KeyedRequest;
use urr_storage::{Tx, outbox};

use super::complimentary::announce_if_less;
use super::issue::{
    AgreedTerms, NewHouseReservation, items_of, new_reservation, reservation_write, take_places,
};
use super::{HousePlaces, HouseSeatsError, complete, is_repeated, lock_open_sale, store};
use crate::reservations::model::seat_ids;
use crate::reservations::rules::ReservationRejection;
use crate::reservations::transition::PreparedEvents;
use crate::{
    AdminCancel, CancelTickets, FeeMode, Inventory, ReservationId, ReservationKind,
    ReservationRecord, TicketCanceller, TicketService,
};

/// How a buyer pays at the box office.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxOfficeMethod {
    Cash,
    /// At a card terminal that we do not control.
    Card,
}

named_enum!(BoxOfficeMethod { Cash => "box_office_cash", Card => "box_office_card" });

/// A request to sell at the box office.
#[derive(Clone, Debug)]
pub struct BoxOfficeRequest {
    pub event_id: Uuid,
    /// Free or blocked.
    pub places: HousePlaces,
    pub method: BoxOfficeMethod,
    /// What the card terminal printed.
    pub receipt_number: Option<String>,
    pub seller_id: Uuid,
    pub key: Option<KeyedRequest>,
}

impl TicketService {
    /// Sells free or blocked places: all of them, or nothing.
    pub async fn sell_at_box_office(
        &self,
        request: BoxOfficeRequest,
        context: CallContext,
    ) -> Result<ReservationId, HouseSeatsError> {
        let event_id = request.event_id;
        let inventory = self.inventories.get(event_id).await?;
        let inventory = inventory.ok_or(HouseSeatsError::EventNotFound)?;
        let [id, buyer_id, payment_id] = [(); 3].map(|()| self.ids.next_id());
        let id = ReservationId(id);
        let action = self.admin_action(request.seller_id, "BOX_OFFICE_SOLD", "reservation", id.0);
        let (ids, now) = (self.ids.clone(), action.created_at);
        let sale = BoxOfficeSale {
            // Nobody can log in as the buyer.
            ids: (id, buyer_id),
            payment_id,
            inventory,
            request,
            usual_policy: Arc::clone(&self.settings.cancel_policy),
            events: self.prepare_events(2, context),
        };
        let sold = self.db.write(move |tx| {
            let key = sale.request.key.as_ref();
            if let Some(id) = is_repeated(tx, key, now)? {
                return Ok(ReservationId(id));
            }
            let summary = sale.write(tx, &|_| ids.next_id(), now)?;
            admin_log::insert(tx, &AdminAction { summary, ..action.clone() })?;
            complete(tx, key, id.0)?;
            Ok::<_, HouseSeatsError>(id)
        });
        let sold = sold.await.inspect(|_| self.maps.mark_taken(event_id))?;
        self.metrics.count_confirmed();
        Ok(sold)
    }

    /// Takes tickets of a sale back, all of them by default; the money was handed over. Tickets that
    /// were taken back before stay so.
    pub async fn refund_at_box_office(
        &self,
        event_id: Uuid,
        id: ReservationId,
        refund: BoxOfficeRefund,
        context: CallContext,
    ) -> Result<ReservationRecord, HouseSeatsError> {
        let record = self.find_reservation(id).await?;
        if record.reservation.event_id != event_id {
            return Err(ReservationRejection::NotFound.into());
        }
        if record.kind != ReservationKind::BoxOffice {
            return Err(ReservationRejection::NotSoldHere.into());
        }
        let BoxOfficeRefund { seller_id, fee, receipt_number, ticket_numbers } = refund;
        let reason = match receipt_number {
            None => REFUNDED_AT_BOX_OFFICE.to_owned(),
            Some(receipt) => format!("{REFUNDED_AT_BOX_OFFICE} {receipt}"),
        };
        let by = AdminCancel { admin_id: seller_id, reason, fee, payment_id: None };
        Ok(match ticket_numbers {
            None => self.cancel_as_admin(id, by, context).await?,
            Some(ticket_numbers) => {
                let by = TicketCanceller::Admin(by);
                self.cancel_tickets(id, CancelTickets { ticket_numbers, by }, context).await?
            }
        })
    }
}

/// What is taken back at the box office.
#[derive(Clone, Debug)]
pub struct BoxOfficeRefund {
    pub seller_id: Uuid,
    pub fee: FeeMode,
    /// What the card terminal printed.
    pub receipt_number: Option<String>,
    /// None: the whole sale.
    pub ticket_numbers: Option<Vec<String>>,
}

/// A sale that is about to be written.
struct BoxOfficeSale {
    /// The reservation and its owner.
    ids: (ReservationId, Uuid),
    payment_id: Uuid,
    inventory: Arc<Inventory>,
    request: BoxOfficeRequest,
    usual_policy: Arc<CancelPolicy>,
    events: PreparedEvents,
}

impl BoxOfficeSale {
    /// Returns what the admin log says.
    fn write(
        &self,
        tx: &mut Tx<'_>,
        ticket_id: &dyn Fn(usize) -> Uuid,
        now: Timestamp,
    ) -> Result<String, HouseSeatsError> {
        let (request, event_id) = (&self.request, self.request.event_id);
        let sale = lock_open_sale(tx, event_id)?;
        let items = items_of(tx, &self.inventory, &request.places, false)?;
        let reservation = new_reservation(self.ids, event_id, &items, sale.fence, now);
        let blocked = store::blocked_count(tx, event_id)?;
        take_places(tx, &reservation, &request.places)?;
        let method = request.method.as_str();
        let new = NewHouseReservation {
            reservation: &reservation,
            kind: ReservationKind::BoxOffice,
            payment: Some((self.payment_id, method)),
            issued_by: request.seller_id,
            reason: None,
            receipt_number: request.receipt_number.as_deref(),
        };
        let agreed = AgreedTerms { sale: &sale, usual_policy: &self.usual_policy };
        let stamp = self.events.stamp(0);
        reservation_write(tx, &new, &items, &agreed, (&stamp, ticket_id))?;
        let sold = BoxOfficeSold {
            reservation: reservation.snapshot(seat_ids(&items), stamp.time),
            payment_id: self.payment_id,
            fencing_token: reservation.fence,
            payment_method: method.to_owned(),
            receipt_number: request.receipt_number.clone(),
        };
        outbox::append(tx, &stamp, &sold)?;
        announce_if_less(tx, event_id, (blocked, sale.fence), &self.events.stamp(1))?;
        Ok(format!("{}: {}, {method}", reservation.number, reservation.total_amount))
    }
}
