//! Giving back: a hold is released, a reservation is cancelled by its owner or an administrator.

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::admin_audit::{self, AdminAction};
use urr_storage::Tx;

use crate::reservations::refund::rules::Fee;
use crate::reservations::refund::{owners_fee, refund_for};
use crate::reservations::rules::{Canceller, Record, Refused, decide_cancel, decide_release};
use crate::reservations::store as transitions;
use crate::reservations::store::{Ended, Ending};
use crate::reservations::transition::{Found, Stamps, StepError, announce, find, reload};
use crate::transfers::end_with_reservations;
use crate::transfers::store::live_find;
use crate::{ReservationId, Status, Ticket};

const CANCELLED_BY_OWNER: &str = "CANCELLED_BY_OWNER";
const RELEASED_BY_OWNER: &str = "RELEASED_BY_OWNER";

/// An administrator and why they cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminCancel {
    pub admin_id: Uuid,
    pub reason: String,
    /// Whether the owner bears the fee.
    pub fee: Fee,
    /// Only as long as this payment is the reservation's: it may have been sold on (M-8).
    pub payment_id: Option<Uuid>,
}

impl Ticket {
    /// Cancels one's own reservation. What is cancelled already stays so and is returned.
    pub async fn cancel_reservation(
        &self,
        id: ReservationId,
        user_id: Uuid,
        context: CallContext,
    ) -> Result<Record, StepError> {
        let (stamps, now) = (self.stamps(1, context), self.clock.now());
        let cancelled = self.db.write(move |tx| {
            let found = find(tx, id, |record| {
                check_owner(record, user_id)?;
                decide_cancel(record, Canceller::Owner, now)
            })?;
            let Found::Go { record, fence } = found else { return done(found) };
            if transitions::ticket_was_used(tx, id)? {
                return Err(Refused::CheckedIn.into());
            }
            // What is for sale must be there when it is bought (M-8).
            if live_find(tx, id)?.is_some() {
                return Err(Refused::Listed.into());
            }
            let fee = owners_fee(&record);
            let reason = CANCELLED_BY_OWNER;
            end_one(tx, &record, End { fence, reason, fee }, &stamps, now)
        });
        self.after_end(cancelled.await?).await
    }

    /// Releases one's own hold. A token that is not the present one releases nothing.
    pub async fn release_hold(
        &self,
        id: ReservationId,
        user_id: Uuid,
        token: Option<i64>,
        context: CallContext,
    ) -> Result<Record, StepError> {
        let (stamps, now) = (self.stamps(1, context), self.clock.now());
        let released = self.db.write(move |tx| {
            let found = find(tx, id, |record| {
                check_owner(record, user_id)?;
                decide_release(record, token, now)
            })?;
            let Found::Go { record, fence } = found else { return done(found) };
            let end = End { fence, reason: RELEASED_BY_OWNER, fee: Fee::ByPolicy };
            end_one(tx, &record, end, &stamps, now)
        });
        self.after_end(released.await?).await
    }

    /// Cancels anybody's reservation. It is written down with the change (M-10).
    pub async fn cancel_as_admin(
        &self,
        id: ReservationId,
        by: AdminCancel,
        context: CallContext,
    ) -> Result<Record, StepError> {
        let (stamps, now, audit_id) =
            (self.stamps(2, context), self.clock.now(), self.ids.next_id());
        let cancelled = self.db.write(move |tx| {
            let found = find(tx, id, |record| {
                if by.payment_id.is_some() && by.payment_id != record.payment_id {
                    return Err(Refused::SoldOn);
                }
                decide_cancel(record, Canceller::Admin, now)
            })?;
            let Found::Go { record, fence } = found else { return done(found) };
            if live_find(tx, id)?.is_some_and(|listing| listing.is_pinned) {
                return Err(Refused::BeingBought.into());
            }
            let action = AdminAction {
                id: audit_id,
                admin_id: by.admin_id,
                action: "RESERVATION_CANCELLED",
                resource_type: "reservation",
                resource_id: id.0,
                summary: format!("{}: {}", record.reservation.number, by.reason),
                now,
            };
            admin_audit::action_insert(tx, &action)?;
            let end = End { fence, reason: &by.reason, fee: by.fee };
            end_one(tx, &record, end, &stamps, now)
        });
        self.after_end(cancelled.await?).await
    }

    async fn after_end(&self, outcome: (Record, Vec<Ended>)) -> Result<Record, StepError> {
        let (record, ended) = outcome;
        self.give_back(&ended).await;
        self.figures.count_ended(Status::Cancelled, ended.len());
        Ok(record)
    }
}

pub(crate) fn check_owner(record: &Record, user_id: Uuid) -> Result<(), Refused> {
    match record.reservation.user_id == user_id {
        true => Ok(()),
        false => Err(Refused::NotFound),
    }
}

fn done(found: Found) -> Result<(Record, Vec<Ended>), StepError> {
    match found {
        Found::Done(record) | Found::Go { record, .. } => Ok((record, Vec::new())),
    }
}

/// How one reservation ends.
#[derive(Clone, Copy)]
struct End<'a> {
    fence: i64,
    reason: &'a str,
    fee: Fee,
}

fn end_one(
    tx: &mut Tx<'_>,
    record: &Record,
    end: End<'_>,
    stamps: &Stamps,
    now: Timestamp,
) -> Result<(Record, Vec<Ended>), StepError> {
    let End { fence, reason, fee } = end;
    let id = record.reservation.id;
    let ending = Ending::Cancelled { reason, refund: refund_for(tx, record, fee, now)? };
    let ended = transitions::reservations_end(tx, fence, &[id.0], ending, now)?;
    assert_eq!(ended.len(), 1, "the state was seen under the lock");
    announce(tx, &ended, ending, stamps)?;
    end_with_reservations(tx, &ended, ending, stamps, now)?;
    Ok((reload(tx, id)?, ended))
}
