//! Requests of one event, decided together in one transaction, each with its own outcome.

use std::sync::Arc;

use urr_kernel::{CallContext, Uuid};
use urr_layout::SeatId;
use urr_storage::outbox::Stamp;
use urr_storage::{Db, StorageError, Tx};

use crate::domain::hold::{
    Decision, Hold, HoldRequest, Refusal, RequestKey, Terms, Wanted, decide_hold,
};
use crate::domain::sale::NotOnSale;
use crate::events::{ReservationCreated, ReservationFacts};
use crate::store::reserve::{NewHold, board_load, hold_find, holds_write};
use crate::{Inventory, SOURCE};

/// A request that failed because of a collision is tried again so often.
const ATTEMPTS_MAX: u32 = 3;

/// Requests of one event.
#[derive(Clone)]
pub struct Batch {
    pub inventory: Arc<Inventory>,
    pub terms: Terms,
    pub requests: Vec<Entry>,
}

/// A request with what its announcement needs.
#[derive(Clone)]
pub struct Entry {
    pub request: HoldRequest,
    pub announcement_id: Uuid,
    pub context: CallContext,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Held(Hold),
    /// The answer to a request that was made before, as it stands now.
    Repeated(Hold),
    Refused(Refusal),
}

/// Why a batch was not committed.
#[derive(Debug)]
pub enum NotCommitted {
    /// There was nothing to commit: everyone was refused, or answered before.
    NothingNew(Vec<Outcome>),
    /// A row was not as it had been read, although the sale was locked.
    GuardRefused,
    Storage(StorageError),
}

impl From<StorageError> for NotCommitted {
    fn from(error: StorageError) -> NotCommitted {
        NotCommitted::Storage(error)
    }
}

/// Decides a batch and commits it. If one request breaks it, each is decided alone, so that the
/// others do not suffer.
pub async fn decide_batch(db: &Db, batch: Batch) -> Vec<Result<Outcome, StorageError>> {
    let batch = Arc::new(batch);
    match write(db, Arc::clone(&batch)).await {
        Ok(outcomes) | Err(NotCommitted::NothingNew(outcomes)) => {
            return outcomes.into_iter().map(Ok).collect();
        }
        Err(NotCommitted::GuardRefused) => {
            tracing::warn!(event_id = %batch.inventory.event_id, "a guard refused a batch");
        }
        Err(NotCommitted::Storage(error)) if is_ones_fault(&error) => {
            tracing::warn!(%error, event_id = %batch.inventory.event_id, "a batch failed");
        }
        Err(NotCommitted::Storage(error)) => return vec![Err(error); batch.requests.len()],
    }
    let mut outcomes = Vec::with_capacity(batch.requests.len());
    for entry in &batch.requests {
        let alone = Batch { requests: vec![entry.clone()], ..(*batch).clone() };
        outcomes.push(decide_alone(db, Arc::new(alone)).await);
    }
    outcomes
}

/// Whether a failure can come from a single request, so that the others deserve another chance.
fn is_ones_fault(error: &StorageError) -> bool {
    use StorageError::{Aborted, Constraint, Decode, Panicked, Statement};
    matches!(error, Constraint { .. } | Panicked(_) | Aborted | Decode { .. } | Statement { .. })
}

/// Another event may have used the same key in the same moment: then the second attempt sees it.
async fn decide_alone(db: &Db, batch: Arc<Batch>) -> Result<Outcome, StorageError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let failure = match write(db, Arc::clone(&batch)).await {
            Ok(outcomes) | Err(NotCommitted::NothingNew(outcomes)) => {
                return Ok(outcomes.into_iter().next().expect("one request, one outcome"));
            }
            Err(failure) => failure,
        };
        let is_collision = match &failure {
            NotCommitted::Storage(error) => matches!(error, StorageError::Constraint { .. }),
            _ => true,
        };
        if !is_collision || attempt >= ATTEMPTS_MAX {
            return last_guard(failure, &batch.requests[0].request.wanted);
        }
    }
}

/// What it means that a guard of the schema refused again and again.
fn last_guard(failure: NotCommitted, wanted: &Wanted) -> Result<Outcome, StorageError> {
    let taken = |seat_ids: &[SeatId]| {
        tracing::error!(?seat_ids, "seats that look free are held or sold: run the audit");
        Ok(Outcome::Refused(Refusal::SeatsTaken { seat_ids: seat_ids.to_vec() }))
    };
    match (failure, wanted) {
        (NotCommitted::GuardRefused, Wanted::Seats(seat_ids)) => taken(seat_ids),
        (NotCommitted::Storage(error), Wanted::Seats(seat_ids))
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

async fn write(db: &Db, batch: Arc<Batch>) -> Result<Vec<Outcome>, NotCommitted> {
    db.write(move |tx| decide_together(tx, &batch)).await
}

/// Loads, decides, writes, announces. The caller's transaction commits if it is `Ok`.
pub fn decide_together(tx: &mut Tx<'_>, batch: &Batch) -> Result<Vec<Outcome>, NotCommitted> {
    let Batch { inventory, terms, requests } = batch;
    let asked: Vec<HoldRequest> = requests.iter().map(|entry| entry.request.clone()).collect();
    let Some(mut board) = board_load(tx, inventory.event_id, &asked, terms.now)? else {
        let unknown = Outcome::Refused(Refusal::NotOnSale(NotOnSale::Unknown));
        return Err(NotCommitted::NothingNew(vec![unknown; requests.len()]));
    };
    let decisions: Vec<Result<Decision, Refusal>> =
        asked.iter().map(|request| decide_hold(&mut board, request, inventory, terms)).collect();
    let mut holds: Vec<NewHold<'_>> = Vec::new();
    let mut announcements = Vec::new();
    for (decision, entry) in decisions.iter().zip(requests) {
        if let Ok(Decision::Hold(hold)) = decision {
            holds.push((hold, entry.request.key.as_ref()));
            announcements.push((entry.stamp(terms), created(hold)));
        }
    }
    if !holds_write(tx, &board, &holds, &announcements, terms)? {
        return Err(NotCommitted::GuardRefused);
    }
    let is_new = !holds.is_empty();
    let outcomes = decisions.into_iter().map(|decision| outcome(tx, decision));
    let outcomes = outcomes.collect::<Result<Vec<Outcome>, StorageError>>()?;
    if is_new { Ok(outcomes) } else { Err(NotCommitted::NothingNew(outcomes)) }
}

fn outcome(tx: &mut Tx<'_>, decision: Result<Decision, Refusal>) -> Result<Outcome, StorageError> {
    Ok(match decision {
        Ok(Decision::Hold(hold)) => Outcome::Held(hold),
        Ok(Decision::Repeated(id)) => {
            let hold = hold_find(tx, id)?;
            Outcome::Repeated(hold.expect("reservations are not deleted"))
        }
        Err(refusal) => Outcome::Refused(refusal),
    })
}

impl Entry {
    fn stamp(&self, terms: &Terms) -> Stamp {
        let (event_id, context) = (self.announcement_id, self.context);
        Stamp { event_id, source: SOURCE, time: terms.now, context }
    }
}

fn created(hold: &Hold) -> ReservationCreated {
    let reservation = &hold.reservation;
    ReservationCreated {
        facts: ReservationFacts {
            reservation_id: reservation.id.0,
            reservation_number: reservation.number.clone(),
            user_id: reservation.user_id,
            event_id: reservation.event_id,
            total_amount: reservation.total_amount,
            quantity: hold.quantity(),
            seat_ids: hold.seat_ids(),
        },
        expires_at: reservation.expires_at,
    }
}

/// What someone's key stands for, if it was used before.
pub fn find_repeated(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    key: &RequestKey,
) -> Result<Option<Outcome>, StorageError> {
    let Some(kept) = crate::store::reserve::kept_find(tx, user_id, key)? else { return Ok(None) };
    if kept.digest != key.digest {
        return Ok(Some(Outcome::Refused(Refusal::KeyReused)));
    }
    outcome(tx, Ok(Decision::Repeated(kept.reservation_id))).map(Some)
}
