//! Transfers: listing, buying, cancelling, the start of the event.
//!
//! The price is paid like any other payable, and every step of a payment can be repeated and has
//! its effect once. Locks are taken in one order: the sale, the tickets, the transfer. Check-in
//! takes only the last two.

pub(crate) mod admin_http;
pub(crate) mod http;
pub(crate) mod rules;
pub(crate) mod store;

use std::sync::Arc;

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::Page;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use crate::inventory::store as sales;
use crate::memberships::points::PointAction;
use crate::memberships::points::store::points_revoke;
use crate::memberships::tiers::tier_find;
use crate::reservations::details::shorten_order_name;
use crate::reservations::payment::mark_refunded as mark_reservation_refunded;
use crate::reservations::reschedule::announce_if_moved;
use crate::reservations::rules::{
    PaymentClaim, ReservationRecord, ReservationRejection, ReturnedMoney, Transition,
};
use crate::reservations::store as transitions;
use crate::reservations::store::items;
use crate::reservations::store::{EndedReservation, ReservationEnding};
use crate::reservations::transition::{
    LockedDecision, PreparedEvents, TransitionError, decide_under_lock,
};
use crate::transfers::rules::{
    Transfer, TransferBuyer, TransferId, TransferOffer, TransferRejection, decide_cancel,
    decide_complete, decide_list, decide_pay, decide_pin, decide_refunded, decide_unpin,
};
use crate::transfers::store::TransferFilter;
use crate::transfers::store::{NewTransfer, TransferChange, TransferSummary};
use crate::{
    CompletedPayment, Inventory, ReservationId, ReservationItem, ReservationPaymentStatus,
    TicketService, Tier,
};
use urr_contracts::events::transfer::{TransferCancelled, TransferCompleted};

pub(crate) const CANCELLED_BY_SELLER: &str = "CANCELLED_BY_SELLER";
const EVENT_STARTED: &str = "EVENT_STARTED";
const TICKET_USED: &str = "TICKET_USED";

/// Why a transfer did not take a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Rejected(#[from] TransferRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A transfer with its items.
#[derive(Clone, Debug)]
pub struct TransferDetails {
    pub shown: TransferSummary,
    pub items: Vec<ReservationItem>,
    /// None: the seats of the event are not complete.
    pub inventory: Option<Arc<Inventory>>,
}

fn load(tx: &mut Tx<'_>, id: TransferId) -> Result<TransferOffer, TransferError> {
    let transfer = store::transfer_find(tx, id)?.ok_or(TransferRejection::NotFound)?;
    let record = transitions::record_find(tx, transfer.reservation_id)?;
    Ok(TransferOffer { transfer, record: record.expect("reservations are never deleted") })
}

/// Decides about a transition under the locks. Returns whether a ticket was used.
fn check_transition(
    tx: &mut Tx<'_>,
    id: TransferId,
    decide: impl Fn(&mut Tx<'_>, &TransferOffer) -> Result<Transition, TransferError>,
) -> Result<LockedDecision<TransferOffer, bool>, TransferError> {
    decide_under_lock(
        tx,
        |tx| load(tx, id),
        decide,
        |tx, offer| {
            let Transfer { event_id, reservation_id, .. } = offer.transfer;
            sales::sale_lock(tx, event_id, 1)?.expect("a transfer belongs to a sale");
            let is_used = transitions::ticket_was_used(tx, reservation_id)?;
            store::transfer_lock(tx, id)?;
            Ok(is_used)
        },
    )
}

fn tier_of(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    user_id: Uuid,
    now: Timestamp,
) -> DbResult<Option<Tier>> {
    let Some(artist_id) = record.artist_id else { return Ok(None) };
    tier_find(tx, artist_id, user_id, now)
}

/// Loads what the rules ask of a buyer.
fn buyer_find(
    tx: &mut Tx<'_>,
    offer: &TransferOffer,
    user_id: Uuid,
    now: Timestamp,
) -> DbResult<TransferBuyer> {
    let event_id = offer.transfer.event_id;
    let policy = sales::policy_find(tx, event_id)?.expect("a transfer belongs to a sale");
    Ok(TransferBuyer {
        user_id,
        is_member: tier_of(tx, &offer.record, user_id, now)?.is_some(),
        live_quantity: transitions::live_quantity(tx, event_id, user_id)?,
        seats_per_user_max: policy.seats_per_user_max,
    })
}

impl TicketService {
    /// Lists one's own paid reservation for others to buy.
    pub async fn list_for_transfer(
        &self,
        reservation_id: ReservationId,
        user_id: Uuid,
    ) -> Result<Transfer, TransferError> {
        let (id, now) = (TransferId(self.ids.next_id()), self.clock.now());
        let listed = self.db.write(move |tx| {
            let decide = |tx: &mut Tx<'_>| {
                let record = transitions::record_find(tx, reservation_id)?;
                let record = record.filter(|record| record.reservation.user_id == user_id);
                let record = record.ok_or(TransferRejection::ReservationNotFound)?;
                let tier = tier_of(tx, &record, user_id, now)?;
                let price = decide_list(&record, tier, now)?;
                match store::active_listing_find(tx, reservation_id)? {
                    Some(_) => Err(TransferError::Rejected(TransferRejection::AlreadyListed)),
                    None => Ok((record, price)),
                }
            };
            let (record, _) = decide(tx)?;
            let event_id = record.reservation.event_id;
            let sale = sales::sale_lock(tx, event_id, 1)?;
            if sale.expect("a reservation belongs to a sale").policy.requires_identity {
                return Err(TransferRejection::Personal.into());
            }
            let (record, price) = decide(tx)?;
            if transitions::ticket_was_used(tx, reservation_id)? {
                return Err(TransferRejection::CheckedIn.into());
            }
            let seller_payment_id = record.payment_id.expect("what is paid has a payment");
            let seller_id = user_id;
            let new = NewTransfer {
                id,
                reservation_id,
                event_id,
                seller_id,
                seller_payment_id,
                price,
                now,
            };
            store::transfer_insert(tx, &new).map_err(already_listed)?;
            load(tx, id).map(|offer| offer.transfer)
        });
        listed.await
    }

    /// Cancels the seller's listing. A cancelled one is returned as it is.
    pub async fn cancel_transfer(
        &self,
        id: TransferId,
        user_id: Uuid,
        context: CallContext,
    ) -> Result<Transfer, TransferError> {
        let (prepared, now) = (self.prepare_events(1, context), self.clock.now());
        let cancelled = self.db.write(move |tx| {
            let decide =
                |_: &mut Tx<'_>, offer: &TransferOffer| -> Result<Transition, TransferError> {
                    Ok(decide_cancel(&offer.transfer, user_id)?)
                };
            match check_transition(tx, id, decide)? {
                LockedDecision::AlreadyDone(offer) => Ok(offer.transfer),
                LockedDecision::Apply(..) => {
                    let ended = store::transfer_cancel(tx, id, CANCELLED_BY_SELLER, now)?;
                    announce_cancelled(tx, std::slice::from_ref(&ended), &prepared, 0)?;
                    Ok(ended)
                }
            }
        });
        cancelled.await
    }

    /// A transfer and its reservation, in whatever state.
    pub async fn find_transfer(&self, id: TransferId) -> Result<TransferOffer, TransferError> {
        self.db.read(move |tx| load(tx, id)).await
    }

    /// A transfer if this user can buy it now, with the name of its order.
    pub async fn validate_transfer(
        &self,
        id: TransferId,
        user_id: Uuid,
    ) -> Result<(TransferOffer, String), TransferError> {
        let now = self.clock.now();
        let validated = self.db.read(move |tx| {
            let offer = load(tx, id)?;
            let buyer = buyer_find(tx, &offer, user_id, now)?;
            decide_pay(&offer, &buyer, now)?;
            Ok::<_, TransferError>(offer)
        });
        let offer = validated.await?;
        let details = self.reservation_details(offer.transfer.reservation_id).await;
        let details = details.map_err(TransferError::of_reservation)?;
        Ok((offer, shorten_order_name(format!("[양도] {}", details.order_name()))))
    }

    /// Reserves a listing for a payment that is about to charge.
    pub async fn pin_transfer(
        &self,
        id: TransferId,
        user_id: Uuid,
        claim: PaymentClaim,
        attempt: i64,
    ) -> Result<TransferOffer, TransferError> {
        let now = self.clock.now();
        let pinned = self.db.write(move |tx| {
            let decide =
                |tx: &mut Tx<'_>, offer: &TransferOffer| -> Result<Transition, TransferError> {
                    let buyer = buyer_find(tx, offer, user_id, now)?;
                    Ok(decide_pin(offer, &buyer, &claim, attempt, now)?)
                };
            match check_transition(tx, id, decide)? {
                LockedDecision::AlreadyDone(offer) => Ok(offer),
                LockedDecision::Apply(_, true) => Err(TransferRejection::CheckedIn.into()),
                LockedDecision::Apply(..) => {
                    let step = TransferChange { id, payment_id: claim.payment_id, now };
                    store::transfer_pin(tx, step, user_id)?;
                    load(tx, id)
                }
            }
        });
        pinned.await
    }

    /// Releases the listing: this attempt of the payment has failed. If the event has begun, the next sweep ends
    /// it.
    pub async fn unpin_transfer(
        &self,
        id: TransferId,
        payment_id: Uuid,
        attempt: i64,
    ) -> Result<TransferOffer, TransferError> {
        let now = self.clock.now();
        let unpinned = self.db.write(move |tx| {
            let decide =
                |_: &mut Tx<'_>, offer: &TransferOffer| -> Result<Transition, TransferError> {
                    Ok(decide_unpin(&offer.transfer, payment_id, attempt)?)
                };
            match check_transition(tx, id, decide)? {
                LockedDecision::AlreadyDone(offer) => Ok(offer),
                LockedDecision::Apply(offer, _) => {
                    let ended = offer.transfer.ended_attempts.with(payment_id, attempt);
                    store::transfer_unpin(tx, TransferChange { id, payment_id, now }, &ended)?;
                    load(tx, id)
                }
            }
        });
        unpinned.await
    }

    /// Hands the reservation over to the buyer, with new tickets.
    pub async fn complete_transfer(
        &self,
        id: TransferId,
        payment: CompletedPayment,
        context: CallContext,
    ) -> Result<TransferOffer, TransferError> {
        // How many ids are needed is seen in the transaction. If it runs twice, the first ones are
        // not used.
        let (prepared, ids, now) =
            (self.prepare_events(2, context), self.ids.clone(), self.clock.now());
        let completed = self.db.write(move |tx| {
            let (payment, number_id) = (&payment, &|_| ids.next_id());
            let (stamp, moved_stamp) = (&prepared.stamp(0), &prepared.stamp(1));
            complete(tx, &TransferCompletion { id, payment, number_id, stamp, moved_stamp, now })
        });
        completed.await
    }

    /// Records that money of the buyer has gone back.
    pub async fn mark_transfer_refunded(
        &self,
        id: TransferId,
        payment_id: Uuid,
        money: ReturnedMoney,
    ) -> Result<TransferOffer, TransferError> {
        let now = self.clock.now();
        self.db.write(move |tx| mark_refunded(tx, id, payment_id, money, now)).await
    }

    /// One page of transfers, the newest first, and how many there are.
    pub async fn list_transfers(
        &self,
        filter: TransferFilter,
        page: Page,
    ) -> DbResult<(Vec<TransferDetails>, u64)> {
        let read = move |tx: &mut Tx<'_>| {
            let shown = store::transfer_list(tx, &filter, page)?;
            let ids: Vec<Uuid> = shown.iter().map(|one| one.transfer.reservation_id.0).collect();
            let items = items::item_list_of(tx, &ids)?;
            Ok::<_, StorageError>((shown, items, store::transfer_count(tx, &filter)?))
        };
        let (shown, items, total) = self.db.read(read).await?;
        let mut details = Vec::with_capacity(shown.len());
        for one in shown {
            // The same reservation may have been listed several times.
            let items = items.get(&one.transfer.reservation_id.0).cloned().unwrap_or_default();
            let inventory = self.inventories.get(one.transfer.event_id).await?;
            details.push(TransferDetails { shown: one, items, inventory });
        }
        Ok((details, total))
    }

    /// One of them.
    pub async fn transfer_details(&self, id: TransferId) -> Result<TransferDetails, TransferError> {
        let (mut found, _) = self.list_transfers(TransferFilter::One(id), Page::new(1, 1)).await?;
        Ok(found.pop().ok_or(TransferRejection::NotFound)?)
    }

    /// Ends listings of events that have begun, each announced once. Returns how many.
    pub async fn end_started_transfers(&self) -> DbResult<u64> {
        let end = |tx: &mut Tx<'_>, prepared: &PreparedEvents, now, limit| {
            let batch = store::transfers_end_started(tx, EVENT_STARTED, now, limit)?;
            announce_cancelled(tx, &batch, prepared, 0)?;
            Ok(batch.len())
        };
        self.end_in_batches(end).await
    }
}

impl TransferError {
    fn of_reservation(error: TransitionError) -> TransferError {
        match error {
            TransitionError::Rejected(_) => TransferRejection::ReservationNotFound.into(),
            TransitionError::Storage(error) => error.into(),
        }
    }
}

/// Of two concurrent listings the index accepts one.
fn already_listed(error: StorageError) -> TransferError {
    match error {
        StorageError::Constraint { ref name, .. } if name == store::ONE_LISTED => {
            TransferRejection::AlreadyListed.into()
        }
        error => error.into(),
    }
}

/// A completion, the ids of its new ticket numbers and the metadata of its event.
pub(crate) struct TransferCompletion<'a> {
    pub id: TransferId,
    pub payment: &'a CompletedPayment,
    /// The id that the number of the nth new ticket is made of.
    pub number_id: &'a dyn Fn(u32) -> Uuid,
    pub stamp: &'a EventMetadata,
    /// If the event was moved since the buyer began to pay.
    pub moved_stamp: &'a EventMetadata,
    pub now: Timestamp,
}

/// Hands the reservation over, reissues its tickets, announces it. A repeated completion has no
/// effect (K-1); a rejected one writes nothing.
pub(crate) fn complete(
    tx: &mut Tx<'_>,
    completing: &TransferCompletion<'_>,
) -> Result<TransferOffer, TransferError> {
    let TransferCompletion { id, payment, number_id, stamp, moved_stamp, now } = *completing;
    let decide = |tx: &mut Tx<'_>, offer: &TransferOffer| -> Result<Transition, TransferError> {
        let buyer = match offer.transfer.buyer_id {
            Some(user_id) => Some(buyer_find(tx, offer, user_id, now)?),
            None => None,
        };
        Ok(decide_complete(offer, &payment.claim, buyer.as_ref())?)
    };
    let offer = match check_transition(tx, id, decide)? {
        LockedDecision::AlreadyDone(offer) => return Ok(offer),
        LockedDecision::Apply(_, true) => {
            return Err(TransferRejection::CheckedIn.into());
        }
        LockedDecision::Apply(offer, _) => offer,
    };
    let (transfer, reservation_id) = (&offer.transfer, offer.transfer.reservation_id);
    let step = TransferChange { id, payment_id: payment.claim.payment_id, now };
    store::transfer_complete(tx, step)?;
    store::reservation_hand_over(tx, transfer, step, &payment.method)?;
    let number_ids: Vec<Uuid> = (0..offer.record.reservation.quantity).map(number_id).collect();
    store::tickets_reissue(tx, reservation_id, &number_ids)?;
    // The seller is refunded, so the purchase does not count for points any more.
    points_revoke(tx, PointAction::TicketPurchase, &[reservation_id.0], now)?;
    outbox::append(tx, stamp, &completed_event(transfer, payment.claim.payment_id, stamp.time))?;
    let offer = load(tx, id)?;
    announce_if_moved(tx, &offer.record, moved_stamp)?;
    Ok(offer)
}

/// Records that money of the buyer has gone back. For a reservation that they cancelled it is the
/// refund.
pub(crate) fn mark_refunded(
    tx: &mut Tx<'_>,
    id: TransferId,
    payment_id: Uuid,
    money: ReturnedMoney,
    now: Timestamp,
) -> Result<TransferOffer, TransferError> {
    let decide = |_: &mut Tx<'_>, offer: &TransferOffer| -> Result<Transition, TransferError> {
        Ok(decide_refunded(&offer.transfer, payment_id, money.requested)?)
    };
    let offer = match check_transition(tx, id, decide)? {
        LockedDecision::AlreadyDone(offer) => return Ok(offer),
        LockedDecision::Apply(offer, _) => offer,
    };
    if offer.payment_status() == ReservationPaymentStatus::Paid {
        return Err(TransferRejection::NotRefunding.into());
    }
    if offer.record.payment_id == Some(payment_id) {
        let reservation_id = offer.transfer.reservation_id;
        let marked = mark_reservation_refunded(tx, reservation_id, payment_id, money, now);
        marked.map_err(|error| match error {
            TransitionError::Rejected(ReservationRejection::WrongAmount) => {
                TransferRejection::WrongAmount.into()
            }
            TransitionError::Rejected(_) => TransferRejection::NotRefunding.into(),
            TransitionError::Storage(error) => TransferError::Storage(error),
        })?;
    }
    store::transfer_set_refund(tx, TransferChange { id, payment_id, now }, money.requested)?;
    load(tx, id)
}

/// Ends the listings of reservations that have just ended. Their events come after those of the
/// reservations.
pub(crate) fn end_with_reservations(
    tx: &mut Tx<'_>,
    ended: &[EndedReservation],
    ending: ReservationEnding<'_>,
    prepared: &PreparedEvents,
    now: Timestamp,
) -> DbResult<()> {
    let ReservationEnding::Cancelled { reason, .. } = ending else { return Ok(()) };
    let paid: Vec<Uuid> = ended.iter().filter_map(EndedReservation::paid_id).collect();
    if paid.is_empty() {
        return Ok(());
    }
    let listings = store::transfers_end_of(tx, &paid, reason, now)?;
    announce_cancelled(tx, &listings, prepared, ended.len())
}

/// Ends the listings of reservations of which a ticket was just checked in. The tickets are locked,
/// and an event is prepared for each reservation.
pub(crate) fn end_with_entry(
    tx: &mut Tx<'_>,
    reservation_ids: &[Uuid],
    prepared: &PreparedEvents,
    now: Timestamp,
) -> DbResult<()> {
    let listings = store::transfers_end_of(tx, reservation_ids, TICKET_USED, now)?;
    announce_cancelled(tx, &listings, prepared, 0)
}

fn announce_cancelled(
    tx: &mut Tx<'_>,
    ended: &[Transfer],
    prepared: &PreparedEvents,
    from: usize,
) -> DbResult<()> {
    let facts = ended.iter().enumerate();
    let facts = facts.map(|(at, ended)| {
        let stamp = prepared.stamp(from + at);
        (stamp, cancelled_event(ended, stamp.time))
    });
    outbox::append_all(tx, &facts.collect::<Vec<_>>())
}

fn completed_event(
    transfer: &Transfer,
    payment_id: Uuid,
    timestamp: Timestamp,
) -> TransferCompleted {
    TransferCompleted {
        transfer_id: transfer.id.0,
        reservation_id: transfer.reservation_id.0,
        event_id: transfer.event_id,
        seller_id: transfer.seller_id,
        buyer_id: transfer.buyer_id.expect("a pin is that of a buyer"),
        original_price: transfer.price.original,
        fee: transfer.price.fee,
        total_price: transfer.price.total(),
        payment_id,
        seller_payment_id: Some(transfer.seller_payment_id),
        seller_payout: transfer.price.original,
        timestamp: Some(timestamp),
    }
}

fn cancelled_event(ended: &Transfer, timestamp: Timestamp) -> TransferCancelled {
    TransferCancelled {
        transfer_id: ended.id.0,
        reservation_id: ended.reservation_id.0,
        event_id: ended.event_id,
        seller_id: ended.seller_id,
        reason: ended.end_reason.clone().expect("what was cancelled has a reason"),
        timestamp: Some(timestamp),
    }
}
