//! Payment of reservations: validate, pin, confirm, unpin, record the refund.
//!
//! The same payment can repeat every step, and each has its effect once. Another payment, an old
//! fencing token or another amount is rejected.

use urr_contracts::internal::queue::FinishSlot;
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{BatchKey, DbResult, Tx};

use crate::display_number::display_number;
use crate::memberships::points::PointAction;
use crate::memberships::points::store::{PointAward, points_award_ticket};
use crate::reservations::cancel::check_owner;
use crate::reservations::model::seat_ids;
use crate::reservations::refund::rules::free_until;
use crate::reservations::refund::{RefundTerms, owners_fee};
use crate::reservations::reschedule::announce_if_moved;
use crate::reservations::rules::{
    PaymentClaim, ReservationRecord, ReservationRejection, ReturnedMoney, decide_confirm,
    decide_pay, decide_pin, decide_refunded, decide_unpin,
};
use crate::reservations::store as transitions;
use crate::reservations::store::confirm as confirmation;
use crate::reservations::store::confirm::{NewTicket, SoldHold};
use crate::reservations::store::items;
use crate::reservations::store::list as listing;
use crate::reservations::transition::{TransitionCheck, TransitionError, check_transition};
use crate::transfers::store::was_sold_by;
use crate::{
    EventChain, Reservation, ReservationDetails, ReservationId, ReservationItem, TicketService,
};
use urr_contracts::events::reservation::ReservationConfirmed;

const METHOD_CHARS_MAX: usize = 50;
const METHOD_UNKNOWN: &str = "unknown";

/// A payment that was charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedPayment {
    pub claim: PaymentClaim,
    pub method: String,
}

impl CompletedPayment {
    /// The method is for information only: a missing or long one is accepted.
    pub fn new(claim: PaymentClaim, method: Option<&str>) -> CompletedPayment {
        let method = method.map(str::trim).filter(|method| !method.is_empty());
        let method = method.unwrap_or(METHOD_UNKNOWN).chars().take(METHOD_CHARS_MAX).collect();
        CompletedPayment { claim, method }
    }
}

impl TicketService {
    /// Reservations that were ever paid, a page at a time, and whether there are more.
    pub async fn list_paid(
        &self,
        after: Option<ReservationId>,
        limit: u32,
    ) -> DbResult<(Vec<ReservationRecord>, bool)> {
        let read = move |tx: &mut Tx<'_>| listing::paid_page(tx, after, limit.saturating_add(1));
        let mut records: Vec<ReservationRecord> = self.db.read(read).await?;
        let limit = usize::try_from(limit).expect("32 bits fit");
        let more = records.len() > limit;
        records.truncate(limit);
        Ok((records, more))
    }

    /// A reservation of any user.
    pub async fn find_reservation(
        &self,
        id: ReservationId,
    ) -> Result<ReservationRecord, TransitionError> {
        let check_transition = move |tx: &mut Tx<'_>| transitions::record_find(tx, id);
        let found: DbResult<Option<ReservationRecord>> = self.db.read(check_transition).await;
        Ok(found?.ok_or(ReservationRejection::NotFound)?)
    }

    /// A user's reservation if it can be paid now, and the event chain that its payment continues.
    pub async fn validate_reservation(
        &self,
        id: ReservationId,
        user_id: Uuid,
    ) -> Result<(ReservationDetails, EventChain), TransitionError> {
        let now = self.clock.now();
        let found = self.db.read(move |tx| {
            let record = transitions::record_find(tx, id)?;
            let record = record.ok_or(ReservationRejection::NotFound)?;
            check_owner(&record, user_id)?;
            decide_pay(&record, now)?;
            let items = items::item_list(tx, id)?;
            Ok::<_, TransitionError>((record, items, transitions::flow_find(tx, id)?))
        });
        let (record, items, chain) = found.await?;
        let inventory = self.inventories.get(record.reservation.event_id).await?;
        // What can be paid has no tickets yet.
        let details = ReservationDetails { record, items, tickets: Vec::new(), inventory };
        Ok((details, chain))
    }

    /// Changes a reservation, in one transaction with other changes of the same event: all of them
    /// wait for the lock of its sale. A wrong event costs that time and nothing else.
    async fn write_of_event<T: Send + 'static>(
        &self,
        event_id: Option<Uuid>,
        work: impl Fn(&mut Tx<'_>) -> Result<T, TransitionError> + Send + 'static,
    ) -> Result<T, TransitionError> {
        let key = BatchKey { name: "payables", id: event_id.unwrap_or_default() };
        self.db.write_batched(key, work).await
    }

    /// Pins a hold for a payment that is about to charge. It does not expire any more.
    pub async fn pin_hold(
        &self,
        id: ReservationId,
        user_id: Uuid,
        claim: PaymentClaim,
        event_id: Option<Uuid>,
    ) -> Result<(), TransitionError> {
        let now = self.clock.now();
        let pinned = self.write_of_event(event_id, move |tx| {
            let found = check_transition(tx, id, |record| {
                check_owner(record, user_id)?;
                decide_pin(record, &claim, now)
            })?;
            match found {
                TransitionCheck::AlreadyDone(_) => Ok(()),
                TransitionCheck::Apply(..) => {
                    Ok(transitions::hold_pin(tx, id, claim.payment_id, now)?)
                }
            }
        });
        pinned.await
    }

    /// Releases the hold: the payment has failed. An expired hold ends with the next sweep.
    pub async fn unpin_hold(
        &self,
        id: ReservationId,
        payment_id: Uuid,
    ) -> Result<(), TransitionError> {
        let now = self.clock.now();
        let unpinned = self.db.write(move |tx| {
            match check_transition(tx, id, |record| decide_unpin(record, payment_id))? {
                TransitionCheck::AlreadyDone(_) => Ok(()),
                TransitionCheck::Apply(..) => Ok(transitions::hold_unpin(tx, id, payment_id, now)?),
            }
        });
        unpinned.await
    }

    /// Sells the seats and issues the tickets.
    pub async fn confirm_reservation(
        &self,
        id: ReservationId,
        payment: CompletedPayment,
        context: CallContext,
        event_id: Option<Uuid>,
    ) -> Result<(), TransitionError> {
        // How many ids are needed is seen in the transaction. If it runs twice, the first ones are
        // not used.
        let (prepared, ids, now) =
            (self.prepare_events(2, context), self.ids.clone(), self.clock.now());
        let confirmed = self.write_of_event(event_id, move |tx| {
            let (payment, ticket_id) = (&payment, &|_| ids.next_id());
            let (stamp, moved_stamp) = (&prepared.stamp(0), &prepared.stamp(1));
            confirm(tx, &HoldConfirmation { id, payment, ticket_id, stamp, moved_stamp, now })
        });
        if let Some(Purchase { event_id, user_id }) = confirmed.await? {
            self.maps.mark_taken(event_id);
            self.metrics.count_confirmed();
            // Only the first time: later the user may have another slot, to buy something else.
            self.slots.finish(FinishSlot { event_id, user_id, bought_at: now }, context).await;
        }
        Ok(())
    }

    /// Records that the money of a cancelled reservation has gone back.
    pub async fn mark_refunded(
        &self,
        id: ReservationId,
        payment_id: Uuid,
        money: ReturnedMoney,
    ) -> Result<(), TransitionError> {
        let now = self.clock.now();
        self.db.write(move |tx| mark_refunded(tx, id, payment_id, money, now)).await
    }
}

/// A confirmation with the ids of its tickets and its event.
pub(crate) struct HoldConfirmation<'a> {
    pub id: ReservationId,
    pub payment: &'a CompletedPayment,
    /// The id of the ticket with this number.
    pub ticket_id: &'a dyn Fn(usize) -> Uuid,
    pub stamp: &'a EventMetadata,
    /// If the event was moved since the hold was made.
    pub moved_stamp: &'a EventMetadata,
    pub now: Timestamp,
}

/// The buyer and the event.
pub(crate) struct Purchase {
    pub event_id: Uuid,
    pub user_id: Uuid,
}

/// Sells a pinned hold, issues the tickets, announces it. None: that was done before. A rejected
/// confirmation writes nothing.
pub(crate) fn confirm(
    tx: &mut Tx<'_>,
    confirming: &HoldConfirmation<'_>,
) -> Result<Option<Purchase>, TransitionError> {
    let HoldConfirmation { id, payment, ticket_id, stamp, moved_stamp, now } = *confirming;
    let found = check_transition(tx, id, |record| decide_confirm(record, &payment.claim, now));
    if found == Err(TransitionError::Rejected(ReservationRejection::Confirmed))
        && was_sold_by(tx, id, payment.claim.payment_id)?
    {
        // The payment has confirmed it, before its owner sold it on.
        return Ok(None);
    }
    let TransitionCheck::Apply(record, fence) = found? else { return Ok(None) };
    let seats = confirmation::own_seats_count(tx, id)?.ok_or(ReservationRejection::SeatLost)?;
    let (payment_id, payment_method) = (payment.claim.payment_id, payment.method.as_str());
    let event_id = stamp.event_id;
    let sold = SoldHold { id, payment_id, payment_method, seats, fence, event_id, now };
    confirmation::hold_confirm(tx, &sold)?;
    let items = items::item_list(tx, id)?;
    let tickets = tickets_of(&items, ticket_id);
    assert_eq!(
        tickets.len(),
        record.reservation.quantity as usize,
        "the quantity is the sum of the items"
    );
    for ticket in &tickets {
        confirmation::ticket_insert(tx, &record.reservation, ticket, now)?;
    }
    award_points(tx, &record, &items, now)?;
    let event = ReservationConfirmed {
        reservation: record.reservation.snapshot(seat_ids(&items), stamp.time),
        payment_id,
        payment_method: Some(payment.method.clone()),
    };
    outbox::append(tx, stamp, &event)?;
    announce_if_moved(tx, &record, moved_stamp)?;
    let Reservation { event_id, user_id, .. } = record.reservation;
    Ok(Some(Purchase { event_id, user_id }))
}

/// The points of a purchase. They count when it cannot be cancelled for free any more; what costs
/// nothing gives none.
fn award_points(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    items: &[ReservationItem],
    now: Timestamp,
) -> DbResult<()> {
    let Some(artist_id) = record.artist_id else { return Ok(()) };
    if items.iter().all(|item| item.unit_price == Won::ZERO) {
        return Ok(());
    }
    let policy = transitions::cancel_policy_find(tx, record.reservation.id)?;
    let terms = RefundTerms { policy, items: items.to_vec() };
    let settles_at = free_until(&terms.policy, &terms.booking(record, owners_fee(record)), now);
    let (action, reference_id) = (PointAction::TicketPurchase, record.reservation.id.0);
    let award = PointAward { action, reference_id, now, settles_at };
    points_award_ticket(tx, record.reservation.user_id, artist_id, award)
}

/// Records that the money of a cancelled reservation has gone back.
pub(crate) fn mark_refunded(
    tx: &mut Tx<'_>,
    id: ReservationId,
    payment_id: Uuid,
    money: ReturnedMoney,
    now: Timestamp,
) -> Result<(), TransitionError> {
    match check_transition(tx, id, |record| decide_refunded(record, payment_id, money))? {
        TransitionCheck::AlreadyDone(_) => Ok(()),
        TransitionCheck::Apply(..) => {
            Ok(transitions::reservation_mark_refunded(tx, id, money.returned, now)?)
        }
    }
}

/// One ticket per person: one for a seat, several for a ticket type.
fn tickets_of(items: &[ReservationItem], ticket_id: &dyn Fn(usize) -> Uuid) -> Vec<NewTicket> {
    let units = items.iter().flat_map(|item| {
        let quantity = u16::try_from(item.quantity).expect("limits are small");
        (0..quantity).map(move |unit| (item, unit))
    });
    let ticket = |(number, (item, unit)): (usize, (&ReservationItem, u16))| {
        let (id, position, seat_id) = (ticket_id(number), item.position, item.seat_id());
        NewTicket { id, number: display_number('T', id), position, unit, seat_id }
    };
    units.enumerate().map(ticket).collect()
}
