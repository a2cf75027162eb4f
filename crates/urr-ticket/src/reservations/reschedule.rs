//! Tells owners of tickets that their event was moved, each once per move.
//!
//! The projection only marks the sale. This job then announces one event per paid reservation, a
//! batch per transaction under the lock of the sale. A hold that is paid later announces it itself.

use urr_contracts::events::reservation::ReservationRescheduled;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, Tx};

use crate::inventory::store as sales;
use crate::memberships::points::store::points_recheck;
use crate::reservations::history::store::history_insert;
use crate::reservations::history::{HistoryActor, HistoryDetails, HistoryEntry, HistoryKind};
use crate::reservations::model::seat_ids;
use crate::reservations::refund::RefundTerms;
use crate::reservations::refund::rules::FeeMode;
use crate::reservations::rules::ReservationRecord;
use crate::reservations::store as transitions;
use crate::reservations::store::moved;
use crate::reservations::transition::PreparedEvents;
use crate::{ReservationKind, TicketService};

impl TicketService {
    /// Announces moved events to the owners of their tickets. Returns to how many.
    pub async fn announce_moved_events(&self) -> DbResult<u64> {
        self.end_in_batches(announce_batch).await
    }
}

/// One batch of one event. Returns how many reservations it announced.
fn announce_batch(
    tx: &mut Tx<'_>,
    prepared: &PreparedEvents,
    now: Timestamp,
    limit: u32,
) -> DbResult<usize> {
    let Some(event_id) = moved::sale_find_moved(tx)? else { return Ok(0) };
    let Some(sale) = sales::sale_lock_only(tx, event_id)? else { return Ok(0) };
    let batch = moved::record_list_moved(tx, event_id, sale.policy.starts_at, limit)?;
    for (at, record) in batch.iter().enumerate() {
        let flow = transitions::flow_find(tx, record.reservation.id)?;
        announce(tx, record, &prepared.stamp_in(flow, at))?;
    }
    // Whether their points count depends on whether they can be cancelled for free.
    let ids: Vec<Uuid> = batch.iter().map(|record| record.reservation.id.0).collect();
    points_recheck(tx, &ids, now)?;
    if batch.len() < limit as usize {
        moved::sale_mark_announced(tx, event_id)?;
    }
    Ok(batch.len())
}

/// Announces the present start to the owner, unless they know it. The sale is locked.
pub(crate) fn announce_if_moved(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    stamp: &EventMetadata,
) -> DbResult<()> {
    match record.announced_starts_at == record.starts_at {
        true => Ok(()),
        false => announce(tx, record, stamp),
    }
}

fn announce(tx: &mut Tx<'_>, record: &ReservationRecord, stamp: &EventMetadata) -> DbResult<()> {
    let terms = RefundTerms::load(tx, record.reservation.id)?;
    let event = ReservationRescheduled {
        reservation: record.reservation.snapshot(seat_ids(&terms.items), stamp.time),
        previous_starts_at: record.announced_starts_at,
        starts_at: record.starts_at,
        // Complimentary tickets cost nothing: there is no fee to waive.
        is_free_to_cancel: record.kind != ReservationKind::Complimentary
            && terms.booking(record, FeeMode::ByPolicy).is_moved(),
    };
    moved::reservation_mark_announced(tx, record)?;
    let entry = HistoryEntry {
        at: stamp.time,
        kind: HistoryKind::EventMoved,
        by: HistoryActor::System,
        amount: None,
        reason: None,
        details: HistoryDetails {
            previous_starts_at: Some(record.announced_starts_at),
            starts_at: Some(record.starts_at),
            ..HistoryDetails::default()
        },
    };
    history_insert(tx, stamp.event_id, record.reservation.id, &entry)?;
    outbox::append(tx, stamp, &event)
}
