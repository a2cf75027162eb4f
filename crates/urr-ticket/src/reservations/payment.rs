//! Payment of reservations: validate, pin, confirm, unpin, record the refund.
//!
//! The same payment can repeat every step, and each has its effect once. Another payment, an old
//! fencing token or another amount is rejected.

use urr_contracts::internal::queue::FinishSlot;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_storage::{DbResult, Tx};

use crate::inventory::store::sale_batch;
use crate::reservations::cancel::check_owner;
use crate::reservations::details::StoredReservation;
use crate::reservations::hold_steps::{HoldStepCall, HoldStepResult, Purchase};
use crate::reservations::rules::{
    PaymentClaim, ReservationRecord, ReservationRejection, ReturnedMoney, decide_pay,
    decide_refunded, decide_unpin,
};
use crate::reservations::store as transitions;
use crate::reservations::store::list as listing;
use crate::reservations::transition::{TransitionCheck, TransitionError, check_transition};
use crate::{EventChain, ReservationDetails, ReservationId, TicketService};

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
        let StoredReservation { record, chain, items, tickets } = self.read_reservation(id).await?;
        check_owner(&record, user_id)?;
        decide_pay(&record, self.clock.now())?;
        let inventory = self.inventories.get(record.reservation.event_id).await?;
        Ok((ReservationDetails { record, items, tickets, inventory }, chain))
    }

    /// Takes a step with a hold, in one transaction with those of other holds of the same event: all
    /// of them wait for the lock of its sale. A wrong event costs that time and nothing else.
    async fn take_step(&self, event_id: Option<Uuid>, step: HoldStepCall) -> HoldStepResult {
        self.db.write_in_set(sale_batch(event_id.unwrap_or_default()), step).await
    }

    /// Pins a hold for a payment that is about to charge. It does not expire any more.
    pub async fn pin_hold(
        &self,
        id: ReservationId,
        user_id: Uuid,
        claim: PaymentClaim,
        attempt: i64,
        event_id: Option<Uuid>,
    ) -> Result<(), TransitionError> {
        let now = self.clock.now();
        let pin = HoldStepCall::Pin { id, user_id, claim, attempt, now };
        self.take_step(event_id, pin).await.map(drop)
    }

    /// Releases the hold: this attempt of the payment has failed. An expired hold ends with the next sweep.
    pub async fn unpin_hold(
        &self,
        id: ReservationId,
        payment_id: Uuid,
        attempt: i64,
    ) -> Result<(), TransitionError> {
        let now = self.clock.now();
        let unpinned = self.db.write(move |tx| {
            match check_transition(tx, id, |record| decide_unpin(record, payment_id, attempt))? {
                TransitionCheck::AlreadyDone(_) => Ok(()),
                TransitionCheck::Apply(record, _) => {
                    let ended = record.ended_attempts.with(payment_id, attempt);
                    Ok(transitions::hold_unpin(tx, id, payment_id, &ended, now)?)
                }
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
        let (events, ids, now) =
            (self.prepare_events(2, context), self.ids.clone(), self.clock.now());
        let confirm = HoldStepCall::Confirm { id, payment, events, ids, now };
        let confirmed = self.take_step(event_id, confirm);
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
