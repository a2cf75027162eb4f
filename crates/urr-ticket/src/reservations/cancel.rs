//! Cancellation: owners release holds and cancel reservations, administrators cancel any.

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::Tx;

use crate::reservations::history::HistoryActor;
use crate::reservations::refund::rules::FeeMode;
use crate::reservations::refund::{owners_fee, refund_for};
use crate::reservations::rules::{
    CancelActor, ReservationRecord, ReservationRejection, decide_cancel, decide_release,
};
use crate::reservations::store as transitions;
use crate::reservations::store::{EndedReservation, ReservationEnding};
use crate::reservations::transition::{
    PreparedEvents, TransitionCheck, TransitionError, announce, check_transition, reload,
};
use crate::transfers::end_with_reservations;
use crate::transfers::store::active_listing_find;
use crate::{ReservationId, ReservationStatus, TicketService};

pub(crate) const CANCELLED_BY_OWNER: &str = "CANCELLED_BY_OWNER";
const RELEASED_BY_OWNER: &str = "RELEASED_BY_OWNER";

/// A cancellation by an administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminCancel {
    pub admin_id: Uuid,
    pub reason: String,
    /// Whether the owner bears the fee.
    pub fee: FeeMode,
    /// Only while this payment is the reservation's: it may have been sold on (M-8).
    pub payment_id: Option<Uuid>,
}

impl TicketService {
    /// Cancels one's own reservation. A cancelled one is returned as it is.
    pub async fn cancel_reservation(
        &self,
        id: ReservationId,
        user_id: Uuid,
        context: CallContext,
    ) -> Result<ReservationRecord, TransitionError> {
        let (prepared, now) = (self.prepare_events(1, context), self.clock.now());
        let cancelled = self.db.write(move |tx| {
            let found = check_transition(tx, id, |record| {
                check_owner(record, user_id)?;
                decide_cancel(record, CancelActor::Owner, now)
            })?;
            let TransitionCheck::Apply(record, fence) = found else { return done(found) };
            if transitions::ticket_was_used(tx, id)? {
                return Err(ReservationRejection::CheckedIn.into());
            }
            // A listed reservation must still exist when it is bought (M-8).
            if active_listing_find(tx, id)?.is_some() {
                return Err(ReservationRejection::Listed.into());
            }
            let (fee, reason) = (owners_fee(&record), CANCELLED_BY_OWNER);
            let end = CancelEnd { fence, reason, fee, by: HistoryActor::Owner(user_id) };
            end_one(tx, &record, end, &prepared, now)
        });
        self.after_end(cancelled.await?).await
    }

    /// Releases one's own hold. A stale token releases nothing.
    pub async fn release_hold(
        &self,
        id: ReservationId,
        user_id: Uuid,
        token: Option<i64>,
        context: CallContext,
    ) -> Result<ReservationRecord, TransitionError> {
        let (prepared, now) = (self.prepare_events(1, context), self.clock.now());
        let released = self.db.write(move |tx| {
            let found = check_transition(tx, id, |record| {
                check_owner(record, user_id)?;
                decide_release(record, token, now)
            })?;
            let TransitionCheck::Apply(record, fence) = found else { return done(found) };
            let (reason, fee) = (RELEASED_BY_OWNER, FeeMode::ByPolicy);
            let end = CancelEnd { fence, reason, fee, by: HistoryActor::Owner(user_id) };
            end_one(tx, &record, end, &prepared, now)
        });
        self.after_end(released.await?).await
    }

    /// Cancels any reservation and writes the admin log (M-10).
    pub async fn cancel_as_admin(
        &self,
        id: ReservationId,
        by: AdminCancel,
        context: CallContext,
    ) -> Result<ReservationRecord, TransitionError> {
        let (prepared, now) = (self.prepare_events(2, context), self.clock.now());
        let action = self.admin_action(by.admin_id, "RESERVATION_CANCELLED", "reservation", id.0);
        let cancelled = self.db.write(move |tx| {
            let found = check_transition(tx, id, |record| {
                if by.payment_id.is_some() && by.payment_id != record.payment_id {
                    return Err(ReservationRejection::SoldOn);
                }
                decide_cancel(record, CancelActor::Admin, now)
            })?;
            let TransitionCheck::Apply(record, fence) = found else { return done(found) };
            if active_listing_find(tx, id)?.is_some_and(|listing| listing.is_pinned) {
                return Err(ReservationRejection::BeingBought.into());
            }
            let summary = format!("{}: {}", record.reservation.number, by.reason);
            admin_log::insert(tx, &AdminAction { summary, ..action.clone() })?;
            let actor = HistoryActor::Admin(by.admin_id);
            let end = CancelEnd { fence, reason: &by.reason, fee: by.fee, by: actor };
            end_one(tx, &record, end, &prepared, now)
        });
        self.after_end(cancelled.await?).await
    }

    pub(crate) async fn after_end(
        &self,
        outcome: (ReservationRecord, Vec<EndedReservation>),
    ) -> Result<ReservationRecord, TransitionError> {
        let (record, ended) = outcome;
        self.release_seats(&ended).await;
        self.metrics.count_ended(ReservationStatus::Cancelled, ended.len());
        Ok(record)
    }
}

pub(crate) fn check_owner(
    record: &ReservationRecord,
    user_id: Uuid,
) -> Result<(), ReservationRejection> {
    match record.reservation.user_id == user_id {
        true => Ok(()),
        false => Err(ReservationRejection::NotFound),
    }
}

fn done(
    found: TransitionCheck,
) -> Result<(ReservationRecord, Vec<EndedReservation>), TransitionError> {
    match found {
        TransitionCheck::AlreadyDone(record) | TransitionCheck::Apply(record, _) => {
            Ok((record, Vec::new()))
        }
    }
}

/// The end of one reservation.
#[derive(Clone, Copy)]
pub(crate) struct CancelEnd<'a> {
    pub fence: i64,
    pub reason: &'a str,
    pub fee: FeeMode,
    pub by: HistoryActor,
}

pub(crate) fn end_one(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    end: CancelEnd<'_>,
    prepared: &PreparedEvents,
    now: Timestamp,
) -> Result<(ReservationRecord, Vec<EndedReservation>), TransitionError> {
    let CancelEnd { fence, reason, fee, by } = end;
    let id = record.reservation.id;
    let ending = ReservationEnding::Cancelled { reason, refund: refund_for(tx, record, fee, now)? };
    let ended = transitions::reservations_end(tx, fence, &[id.0], ending, now)?;
    assert_eq!(ended.len(), 1, "the state was seen under the lock");
    announce(tx, &ended, ending, by, prepared)?;
    end_with_reservations(tx, &ended, ending, prepared, now)?;
    Ok((reload(tx, id)?, ended))
}
