//! The common part of all transitions: load, decide, lock, decide again, announce.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use crate::inventory::store as sales;
use crate::reservations::history::store::history_insert;
use crate::reservations::history::{HistoryActor, HistoryDetails, HistoryEntry, HistoryKind};
use crate::reservations::rules::{ReservationRecord, ReservationRejection, Transition};
use crate::reservations::store as transitions;
use crate::reservations::store::{EndedReservation, ReservationEnding};
use crate::{EventChain, ReservationId, SOURCE, TicketService};
use urr_contracts::events::reservation::{
    ReservationCancelled, ReservationExpired, ReservationSnapshot,
};

/// Enough concurrent calls to hide the latency of Redis.
const RELEASES_AT_ONCE: usize = 32;

/// Small batches, so that nobody waits long for them.
const ENDED_AT_ONCE: u32 = 250;

/// Why a transition failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    #[error(transparent)]
    Rejected(#[from] ReservationRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The result of [`decide_under_lock`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LockedDecision<T, L> {
    /// It was done before.
    AlreadyDone(T),
    /// It is to be done now, under the lock.
    Apply(T, L),
}

/// Decides about a transition under a lock.
///
/// It decides without the lock first: transitions that are rejected or already done take no lock
/// and write nothing, so that they neither delay a sale nor spoil a group commit.
pub(crate) fn decide_under_lock<T, L, E>(
    tx: &mut Tx<'_>,
    load: impl Fn(&mut Tx<'_>) -> Result<T, E>,
    decide: impl Fn(&mut Tx<'_>, &T) -> Result<Transition, E>,
    lock: impl FnOnce(&mut Tx<'_>, &T) -> Result<L, E>,
) -> Result<LockedDecision<T, L>, E> {
    let loaded = load(tx)?;
    if decide(tx, &loaded)? == Transition::AlreadyDone {
        return Ok(LockedDecision::AlreadyDone(loaded));
    }
    let locked = lock(tx, &loaded)?;
    let loaded = load(tx)?;
    Ok(match decide(tx, &loaded)? {
        Transition::AlreadyDone => LockedDecision::AlreadyDone(loaded),
        Transition::Apply => LockedDecision::Apply(loaded, locked),
    })
}

/// With the number of the change.
pub(crate) type TransitionCheck = LockedDecision<ReservationRecord, i64>;

/// Decides about a transition of a reservation under the lock of its sale.
pub(crate) fn check_transition(
    tx: &mut Tx<'_>,
    id: ReservationId,
    decide: impl Fn(&ReservationRecord) -> Result<Transition, ReservationRejection>,
) -> Result<TransitionCheck, TransitionError> {
    decide_under_lock(
        tx,
        |tx| Ok(transitions::record_find(tx, id)?.ok_or(ReservationRejection::NotFound)?),
        |_, record| Ok(decide(record)?),
        |tx, record| {
            let sale = sales::sale_lock(tx, record.reservation.event_id, 1)?;
            Ok(sale.expect("a reservation belongs to a sale").fence)
        },
    )
}

/// The reservation after the transition.
pub(crate) fn reload(
    tx: &mut Tx<'_>,
    id: ReservationId,
) -> Result<ReservationRecord, TransitionError> {
    Ok(transitions::record_find(tx, id)?.expect("reservations are never deleted"))
}

/// Ids and time of the events of a change, made before its transaction.
#[derive(Clone, Debug)]
pub(crate) struct PreparedEvents {
    event_ids: Vec<Uuid>,
    time: Timestamp,
    context: CallContext,
}

impl PreparedEvents {
    pub(crate) fn stamp(&self, position: usize) -> EventMetadata {
        let (event_id, time, context) = (self.event_ids[position], self.time, self.context);
        EventMetadata { event_id, source: SOURCE, time, context }
    }

    /// The metadata of an event that continues the chain of a reservation.
    pub(crate) fn stamp_in(&self, flow: EventChain, position: usize) -> EventMetadata {
        let stamp = self.stamp(position);
        EventMetadata { context: flow.follow(stamp.context), ..stamp }
    }
}

impl EndedReservation {
    /// What is kept of the paid amount. None: it was never paid.
    fn cancellation_fee(&self) -> Option<Won> {
        let kept = self.reservation.total_amount.minus(self.refund_amount?);
        Some(kept.expect("a refund is not more than the total"))
    }

    fn snapshot(&self, now: Timestamp) -> ReservationSnapshot {
        self.reservation.snapshot(self.seat_ids.clone(), now)
    }
}

/// Announces reservations that have ended, each by one event. That a hold has expired is seen in its
/// row; what else ended it, and who did, is written into its history.
pub(crate) fn announce(
    tx: &mut Tx<'_>,
    ended: &[EndedReservation],
    ending: ReservationEnding<'_>,
    by: HistoryActor,
    prepared: &PreparedEvents,
) -> DbResult<()> {
    let stamped = ended.iter().enumerate();
    let stamped = stamped.map(|(at, ended)| (prepared.stamp_in(ended.flow, at), ended));
    match ending {
        ReservationEnding::Expired => {
            let fact = |(stamp, reservation): (EventMetadata, &EndedReservation)| {
                (stamp, ReservationExpired { reservation: reservation.snapshot(stamp.time) })
            };
            outbox::append_all(tx, &stamped.map(fact).collect::<Vec<_>>())
        }
        ReservationEnding::Cancelled { reason, .. } | ReservationEnding::Withdrawn { reason } => {
            for (stamp, one) in stamped.clone() {
                let entry = HistoryEntry {
                    at: stamp.time,
                    kind: HistoryKind::Cancelled,
                    by,
                    amount: one.refund_amount,
                    reason: Some(reason.to_owned()),
                    details: HistoryDetails::default(),
                };
                history_insert(tx, stamp.event_id, one.reservation.id, &entry)?;
            }
            let fact = |(stamp, reservation): (EventMetadata, &EndedReservation)| {
                let cancelled = ReservationCancelled {
                    reservation: reservation.snapshot(stamp.time),
                    reason: reason.to_owned(),
                    refund_amount: reservation.refund_amount.unwrap_or(Won::ZERO),
                    cancellation_fee: reservation.cancellation_fee().unwrap_or(Won::ZERO),
                    payment_id: reservation.payment_id,
                };
                (stamp, cancelled)
            };
            outbox::append_all(tx, &stamped.map(fact).collect::<Vec<_>>())
        }
    }
}

impl TicketService {
    pub(crate) fn prepare_events(&self, events_max: usize, context: CallContext) -> PreparedEvents {
        let event_ids = (0..events_max).map(|_| self.ids.next_id()).collect();
        PreparedEvents { event_ids, time: self.clock.now(), context }
    }

    /// Ends what is due, a batch per transaction, until a batch is not full. `end` returns how many
    /// it ended, each announced once.
    pub(crate) async fn end_in_batches(
        &self,
        end: impl Fn(&mut Tx<'_>, &PreparedEvents, Timestamp, u32) -> DbResult<usize>
        + Copy
        + Send
        + Sync
        + 'static,
    ) -> DbResult<u64> {
        let mut ended = 0;
        loop {
            let context = CallContext::root(self.ids.next_id());
            let (prepared, now) =
                (self.prepare_events(ENDED_AT_ONCE as usize, context), self.clock.now());
            let batch = self.db.write(move |tx| end(tx, &prepared, now, ENDED_AT_ONCE)).await?;
            ended += u64::try_from(batch).expect("a batch is small");
            if batch < ENDED_AT_ONCE as usize {
                return Ok(ended);
            }
        }
    }

    /// Releases the locks after the commit: others may have the seats.
    pub(crate) async fn release_seats(&self, ended: &[EndedReservation]) {
        for chunk in ended.chunks(RELEASES_AT_ONCE) {
            let releases = chunk.iter().filter(|ended| !ended.seat_ids.is_empty());
            let releases = releases.map(|EndedReservation { reservation, seat_ids, .. }| {
                self.locks.release(reservation.event_id, seat_ids, reservation.fence)
            });
            join_all(releases).await;
        }
        for ended in ended.iter().filter(|ended| ended.seats_lost > 0) {
            let (id, lost) = (ended.reservation.id, ended.seats_lost);
            tracing::error!(reservation = %id, lost, "seats of a reservation were not its own and stay as they are");
        }
        let events: BTreeSet<Uuid> = ended.iter().map(|ended| ended.reservation.event_id).collect();
        events.into_iter().for_each(|event_id| self.seats_changed(event_id));
    }

    /// After the commit: the next read of the map sees it.
    pub(crate) fn seats_changed(&self, event_id: Uuid) {
        self.maps.mark_dirty(event_id);
    }
}
