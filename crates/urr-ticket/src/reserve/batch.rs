//! Requests of one event, decided together in one transaction, each with its own outcome.

use std::collections::BTreeSet;
use std::sync::Arc;

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_layout::SeatId;
use urr_service::idempotency::KeyedRequest;
use urr_storage::outbox::EventMetadata;
use urr_storage::{Db, DbResult, StorageError, Tx};

use crate::alerts::store::seat_alerts_mark_taken;
use crate::inventory::rules::NotOnSale;
use crate::inventory::store::sale_batch;
use crate::reserve::persons::person_insert;
use crate::reserve::rules::{
    Hold, HoldDecision, HoldRejection, HoldRequest, HoldTerms, RequestedItems, decide_hold,
};
use crate::reserve::store::{
    NewHold, earlier_request_list, holds_find, holds_write, sale_state_load,
};
use crate::seat_map::store::seats_changed;
use crate::seat_map::{InventorySnapshot, Statuses};
use crate::{Inventory, ReservationId, SOURCE};
use urr_contracts::events::reservation::ReservationCreated;

/// A single request is retried this often after a collision.
const ATTEMPTS_MAX: u32 = 3;

/// Requests of one event.
#[derive(Clone)]
pub struct HoldBatch {
    pub inventory: Arc<Inventory>,
    /// A recent map, if the best seats are asked for.
    pub map: Option<Arc<InventorySnapshot>>,
    pub terms: HoldTerms,
    pub requests: Vec<HoldEntry>,
}

/// A request with what its announcement needs.
#[derive(Clone)]
pub struct HoldEntry {
    pub request: HoldRequest,
    pub announcement_id: Uuid,
    pub context: CallContext,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldOutcome {
    Held(Hold),
    /// The current state of the hold that an earlier request with the same key made.
    Repeated(Hold),
    Rejected(HoldRejection),
}

/// Why a batch was not committed.
#[derive(Debug)]
pub enum NotCommitted {
    /// Nothing to commit: every request was rejected or answered before.
    NothingNew(Vec<HoldOutcome>),
    /// A row was not as it had been read, although the sale was locked.
    GuardRefused,
    Storage(StorageError),
}

impl From<StorageError> for NotCommitted {
    fn from(error: StorageError) -> NotCommitted {
        NotCommitted::Storage(error)
    }
}

/// Decides a batch and commits it. If a request breaks the transaction, the batch is halved until
/// that request is alone, so that the others are not affected.
pub async fn decide_batch(db: &Db, batch: HoldBatch) -> Vec<DbResult<HoldOutcome>> {
    let mut outcomes = Vec::with_capacity(batch.requests.len());
    // Another event may have used the same key at the same moment: the second attempt sees it.
    let mut attempts_max = 2;
    let mut parts = vec![batch];
    while let Some(part) = parts.pop() {
        if part.requests.len() == 1 {
            attempts_max = ATTEMPTS_MAX;
        }
        let part = Arc::new(part);
        match decide_part(db, &part, attempts_max).await {
            Ok(decided) => outcomes.extend(decided.into_iter().map(Ok)),
            Err(NotCommitted::Storage(error)) if !is_ones_fault(&error) => {
                outcomes.extend(part.requests.iter().map(|_| Err(error.clone())));
            }
            Err(failure) => match part.requests.as_slice() {
                [alone] => outcomes.push(last_guard(failure, &alone.request.requested)),
                _ => parts.extend(part.halves()),
            },
        }
        attempts_max = 1;
    }
    outcomes
}

/// Decides a part of a batch. A collision is tried again.
async fn decide_part(
    db: &Db,
    part: &Arc<HoldBatch>,
    attempts_max: u32,
) -> Result<Vec<HoldOutcome>, NotCommitted> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let batch = Arc::clone(part);
        let key = sale_batch(part.inventory.event_id);
        let failure = match db.write_batched(key, move |tx| decide_together(tx, &batch)).await {
            Ok(outcomes) | Err(NotCommitted::NothingNew(outcomes)) => return Ok(outcomes),
            Err(failure) => failure,
        };
        let (event_id, requests) = (part.inventory.event_id, part.requests.len());
        tracing::warn!(?failure, %event_id, requests, "a batch failed");
        if !failure.is_collision() || attempt >= attempts_max {
            return Err(failure);
        }
    }
}

impl NotCommitted {
    /// Whether a retry would see what another transaction did.
    fn is_collision(&self) -> bool {
        match self {
            NotCommitted::Storage(error) => matches!(error, StorageError::Constraint { .. }),
            NotCommitted::GuardRefused => true,
            NotCommitted::NothingNew(_) => false,
        }
    }
}

impl HoldBatch {
    /// The second half first: the order of a stack.
    fn halves(&self) -> [HoldBatch; 2] {
        let (first, second) = self.requests.split_at(self.requests.len() / 2);
        [second, first].map(|requests| HoldBatch {
            requests: requests.to_vec(),
            inventory: Arc::clone(&self.inventory),
            map: self.map.clone(),
            terms: self.terms.clone(),
        })
    }
}

/// Whether a single request can cause the failure, so that the others deserve another attempt.
fn is_ones_fault(error: &StorageError) -> bool {
    use StorageError::{Aborted, Constraint, Decode, Panicked, Statement};
    matches!(error, Constraint { .. } | Panicked(_) | Aborted | Decode { .. } | Statement { .. })
}

/// Maps a schema guard that refused again and again.
fn last_guard(failure: NotCommitted, requested: &RequestedItems) -> DbResult<HoldOutcome> {
    let taken = |seat_ids: &[SeatId]| {
        tracing::error!(?seat_ids, "seats that look free are held or sold: run the audit");
        Ok(HoldOutcome::Rejected(HoldRejection::SeatsTaken { seat_ids: seat_ids.to_vec() }))
    };
    match (failure, requested) {
        (NotCommitted::GuardRefused, RequestedItems::Seats(seat_ids)) => taken(seat_ids),
        (NotCommitted::Storage(error), RequestedItems::Seats(seat_ids))
            if error.violates("reservation_items_one_live_per_seat") =>
        {
            taken(seat_ids)
        }
        (NotCommitted::Storage(error), _) => Err(error),
        (NotCommitted::GuardRefused | NotCommitted::NothingNew(_), _) => {
            Err(StorageError::Contention)
        }
    }
}

/// Loads, decides, writes, announces. The caller's transaction commits if it is `Ok`.
fn decide_together(tx: &mut Tx<'_>, batch: &HoldBatch) -> Result<Vec<HoldOutcome>, NotCommitted> {
    let HoldBatch { inventory, map, terms, requests } = batch;
    let asked: Vec<HoldRequest> = requests.iter().map(|entry| entry.request.clone()).collect();
    let Some(mut state) = sale_state_load(tx, inventory.event_id, &asked, terms)? else {
        let unknown = HoldOutcome::Rejected(HoldRejection::NotOnSale(NotOnSale::NotFound));
        return Err(NotCommitted::NothingNew(vec![unknown; requests.len()]));
    };
    if asked.iter().any(|request| matches!(request.requested, RequestedItems::Best(_))) {
        state.map = Some(statuses_load(tx, inventory, map.as_deref(), state.fence)?);
    }
    let decisions: Vec<Result<HoldDecision, HoldRejection>> =
        asked.iter().map(|request| decide_hold(&mut state, request, inventory, terms)).collect();
    let mut holds: Vec<NewHold<'_>> = Vec::new();
    let mut announcements = Vec::new();
    for (decision, entry) in decisions.iter().zip(requests) {
        if let Ok(HoldDecision::Hold(hold)) = decision {
            holds.push((hold, entry.request.key.as_ref()));
            announcements.push((entry.stamp(terms), created(hold, terms.now)));
        }
    }
    if !holds_write(tx, &state, &holds, &announcements, terms)? {
        return Err(NotCommitted::GuardRefused);
    }
    for (decision, entry) in decisions.iter().zip(requests) {
        if let (Ok(HoldDecision::Hold(hold)), Some(person)) = (decision, &entry.request.person) {
            person_insert(tx, hold.reservation.id, inventory.event_id, person)?;
        }
    }
    for (hold, _) in &holds {
        if state.gates.was_told(hold.reservation.user_id) {
            seat_alerts_mark_taken(tx, inventory.event_id, hold.reservation.user_id)?;
        }
    }
    let is_new = !holds.is_empty();
    let outcomes = outcomes(tx, decisions)?;
    if is_new { Ok(outcomes) } else { Err(NotCommitted::NothingNew(outcomes)) }
}

/// The current seats: the cached map and the changes since. The sale is locked.
pub(crate) fn statuses_load(
    tx: &mut Tx<'_>,
    inventory: &Inventory,
    map: Option<&InventorySnapshot>,
    fence: i64,
) -> DbResult<Statuses> {
    // After a restore of the database the map contains changes that did not happen.
    let (mut statuses, after) = match map.filter(|map| map.seen <= fence) {
        Some(map) => (map.seats.statuses().clone(), map.seen),
        None => (Statuses::all_available(inventory.layout.seat_count()), 0),
    };
    for change in seats_changed(tx, inventory.event_id, after)? {
        statuses.set(change.seat_id, change.status);
    }
    Ok(statuses)
}

/// The outcomes of decisions. Holds of repeated requests are loaded together.
fn outcomes(
    tx: &mut Tx<'_>,
    decisions: Vec<Result<HoldDecision, HoldRejection>>,
) -> DbResult<Vec<HoldOutcome>> {
    let repeated = |decision: &Result<HoldDecision, HoldRejection>| match decision {
        Ok(HoldDecision::Repeated(id)) => Some(*id),
        _ => None,
    };
    let repeated: BTreeSet<ReservationId> = decisions.iter().filter_map(repeated).collect();
    let earlier = holds_find(tx, &repeated)?;
    let outcome = |decision| match decision {
        Ok(HoldDecision::Hold(hold)) => HoldOutcome::Held(hold),
        Ok(HoldDecision::Repeated(id)) => {
            HoldOutcome::Repeated(earlier.get(&id).expect("reservations are not deleted").clone())
        }
        Err(refusal) => HoldOutcome::Rejected(refusal),
    };
    Ok(decisions.into_iter().map(outcome).collect())
}

impl HoldEntry {
    fn stamp(&self, terms: &HoldTerms) -> EventMetadata {
        let (event_id, context) = (self.announcement_id, self.context);
        EventMetadata { event_id, source: SOURCE, time: terms.now, context }
    }
}

fn created(hold: &Hold, now: Timestamp) -> ReservationCreated {
    ReservationCreated {
        reservation: hold.reservation.snapshot(hold.seat_ids(), now),
        expires_at: hold.reservation.expires_at,
    }
}

/// The outcomes that these keys stand for, if they were used before.
pub fn find_all_repeated(
    tx: &mut Tx<'_>,
    asked: &[KeyedRequest],
    now: Timestamp,
) -> DbResult<Vec<Option<HoldOutcome>>> {
    let earlier = earlier_request_list(tx, asked, now)?;
    let decide = |request: &KeyedRequest| {
        let earlier = earlier.get(&(request.user_id, request.key.clone()))?;
        Some(earlier.repeat(request).map(HoldDecision::Repeated))
    };
    let decisions: Vec<Option<Result<HoldDecision, HoldRejection>>> =
        asked.iter().map(decide).collect();
    let is_known: Vec<bool> = decisions.iter().map(Option::is_some).collect();
    let mut outcomes = outcomes(tx, decisions.into_iter().flatten().collect())?.into_iter();
    let outcome =
        |is_known: bool| is_known.then(|| outcomes.next().expect("every decision has an outcome"));
    Ok(is_known.into_iter().map(outcome).collect())
}
