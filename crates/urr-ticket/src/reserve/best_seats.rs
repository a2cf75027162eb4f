//! Best available seats, chosen inside the transaction that holds them.
//!
//! The cached map plus the changes since it was read are the true state of the seats, because the
//! sale is locked: one short read by index, however large the hall. So two concurrent requests get
//! different seats, and `SOLD_OUT` is never answered too early.
//!
//! Requests for one event are batched. Otherwise a few of them would block every connection of the
//! process on one row.

pub(crate) mod choose;
pub(crate) mod http;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use urr_kernel::{CallContext, Clock, Uuid};
use urr_storage::{Db, StorageError, Tx};

use crate::batcher::{Batcher, BatcherLimits};
use crate::inventory::rules::NotOnSale;
use crate::inventory::store as sales;
use crate::reserve::batch::{
    HoldBatch, HoldEntry, HoldOutcome, NotCommitted, decide_together, find_repeated, is_ones_fault,
};
use crate::reserve::best_seats::choose::{NoSeatsFit, SeatPreference, choose_best};
use crate::reserve::rules::{
    Hold, HoldRejection, HoldRequest, HoldRequestKey, HoldTerms, RequestedItems,
};
use crate::seat_map::store as map;
use crate::seat_map::{InventorySnapshot, SeatStatus, Statuses};
use crate::{
    IdempotencyKey, InventoryKind, ReservationId, ReserveError, SeatLocks, SeatMaps, TicketService,
    TicketSettings,
};

/// A collision of two requests with one key is over by the second attempt.
const ATTEMPTS_MAX: u32 = 3;

/// Requests of a batch are decided one after the other, so the first waits for all of them. A
/// longer queue would wait longer than users do.
const LIMITS: BatcherLimits = BatcherLimits { batch_max: 32, pending_max: 256 };

/// A request for the best seats.
#[derive(Clone, Debug)]
pub struct BestSeatsRequest {
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub preference: SeatPreference,
    pub key: Option<IdempotencyKey>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum BestSeatsError {
    #[error("there is no such grade")]
    GradeNotFound,
    #[error("there is no such section")]
    SectionNotFound,
    #[error(transparent)]
    NoneFits(#[from] NoSeatsFit),
    #[error(transparent)]
    Reserve(#[from] ReserveError),
}

/// The outcome for the chosen seats, or that no seats fit.
type BestSeatsOutcome = Result<HoldOutcome, NoSeatsFit>;
type BestSeatsAnswer = Result<BestSeatsOutcome, StorageError>;

pub(crate) type BestSeatsBatcher = Batcher<BestSeatsJob, BestSeatsAnswer>;

type NotWritten = NotCommitted<BestSeatsOutcome>;

/// Batches requests for best seats.
pub(crate) fn batcher(
    db: &Db,
    clock: &Clock,
    locks: &SeatLocks,
    maps: &SeatMaps,
    settings: &TicketSettings,
) -> BestSeatsBatcher {
    let (db, clock, maps, terms_of) = (db.clone(), clock.clone(), maps.clone(), settings.clone());
    let work = move |event_id, requests| {
        let terms = terms_of.hold_terms(clock.now());
        let (db, maps) = (db.clone(), maps.clone());
        async move {
            let answers = answer_all(&db, BestSeatsBatch { terms, requests }).await;
            // Marked before the answer, so that a user who reserves and then reads the map sees it.
            if answers.iter().any(|answer| matches!(answer, Ok(Ok(HoldOutcome::Held(_))) | Err(_)))
            {
                maps.mark_taken(event_id);
            }
            answers
        }
    };
    let (locks, lock_ttl) = (locks.clone(), settings.lock_ttl);
    // The client is gone: the hold lives until it expires, and so does its lock.
    let abandoned = move |answer: BestSeatsAnswer| {
        let locks = locks.clone();
        tokio::spawn(async move { keep_locks(&locks, &answer, lock_ttl).await });
    };
    Batcher::with_limits(LIMITS, work, abandoned)
}

async fn keep_locks(locks: &SeatLocks, answer: &BestSeatsAnswer, lock_ttl: Duration) {
    if let Ok(Ok(HoldOutcome::Held(hold))) = answer {
        let reservation = &hold.reservation;
        let (event_id, user_id) = (reservation.event_id, reservation.user_id);
        locks.confirm(event_id, &hold.seat_ids(), user_id, reservation.fence, lock_ttl).await;
    }
}

impl TicketService {
    /// Holds the best seats, by the same rules as seats that a user picked.
    pub async fn reserve_best_seats(
        &self,
        request: BestSeatsRequest,
        context: CallContext,
    ) -> Result<Hold, BestSeatsError> {
        use ReserveError::Rejected;
        match self.reserve_best_seats_once(request.clone(), context).await {
            // The earlier hold may have expired without having been swept yet.
            Err(BestSeatsError::Reserve(Rejected(HoldRejection::HoldInProgress {
                reservation_id,
            }))) if self.end_if_overdue(reservation_id).await.map_err(ReserveError::from)? => {
                self.reserve_best_seats_once(request, context).await
            }
            answer => answer,
        }
    }

    async fn reserve_best_seats_once(
        &self,
        request: BestSeatsRequest,
        context: CallContext,
    ) -> Result<Hold, BestSeatsError> {
        let event_id = request.event_id;
        let view = self.maps.load(event_id).await.map_err(ReserveError::from)?;
        let view = view.ok_or(ReserveError::EventNotFound)?;
        check_preference(&view, &request.preference)?;
        let digest = digest(event_id, &request.preference);
        let job = BestSeatsJob {
            view,
            preference: request.preference,
            user_id: request.user_id,
            key: request.key.map(|key| HoldRequestKey { text: key.as_str().to_owned(), digest }),
            reservation_id: ReservationId(self.ids.next_id()),
            announcement_id: self.ids.next_id(),
            context,
        };
        let answer = self.best.submit(event_id, job).await.map_err(ReserveError::from)?;
        keep_locks(&self.locks, &answer, self.settings.lock_ttl).await;
        match answer.map_err(ReserveError::from)?? {
            HoldOutcome::Held(hold) | HoldOutcome::Repeated(hold) => Ok(hold),
            HoldOutcome::Rejected(HoldRejection::NotOnSale(NotOnSale::NotFound)) => {
                Err(ReserveError::EventNotFound.into())
            }
            HoldOutcome::Rejected(refusal) => Err(ReserveError::from(refusal).into()),
        }
    }
}

/// A request with everything that its transaction needs.
#[derive(Clone)]
pub(crate) struct BestSeatsJob {
    view: Arc<InventorySnapshot>,
    preference: SeatPreference,
    user_id: Uuid,
    key: Option<HoldRequestKey>,
    reservation_id: ReservationId,
    announcement_id: Uuid,
    context: CallContext,
}

/// Requests for seats of one event.
struct BestSeatsBatch {
    terms: HoldTerms,
    requests: Vec<BestSeatsJob>,
}

/// One transaction for all. If one request breaks it, each request gets its own transaction.
async fn answer_all(db: &Db, batch: BestSeatsBatch) -> Vec<BestSeatsAnswer> {
    let batch = Arc::new(batch);
    match write(db, &batch).await {
        Ok(decided) | Err(NotWritten::NothingNew(decided)) => {
            return decided.into_iter().map(Ok).collect();
        }
        Err(NotWritten::Storage(error)) if !is_ones_fault(&error) => {
            return vec![Err(error); batch.requests.len()];
        }
        Err(NotWritten::GuardRefused | NotWritten::Storage(_)) => {}
    }
    let mut answers = Vec::with_capacity(batch.requests.len());
    for request in &batch.requests {
        let alone = BestSeatsBatch { terms: batch.terms.clone(), requests: vec![request.clone()] };
        answers.push(answer_alone(db, Arc::new(alone)).await);
    }
    answers
}

/// Another event may have used the same key in the same moment: the next attempt sees it.
async fn answer_alone(db: &Db, batch: Arc<BestSeatsBatch>) -> BestSeatsAnswer {
    for _ in 0..ATTEMPTS_MAX {
        match write(db, &batch).await {
            Ok(decided) | Err(NotWritten::NothingNew(decided)) => {
                return Ok(decided.into_iter().next().expect("one request, one outcome"));
            }
            Err(
                NotWritten::GuardRefused | NotWritten::Storage(StorageError::Constraint { .. }),
            ) => {}
            Err(NotWritten::Storage(error)) => return Err(error),
        }
    }
    Err(StorageError::Contention)
}

async fn write(db: &Db, batch: &Arc<BestSeatsBatch>) -> Result<Vec<BestSeatsOutcome>, NotWritten> {
    let batch = Arc::clone(batch);
    db.write(move |tx| batch.decide(tx)).await
}

impl BestSeatsBatch {
    /// Locks the sale and decides the requests in order; each sees the seats that earlier ones got.
    fn decide(&self, tx: &mut Tx<'_>) -> Result<Vec<BestSeatsOutcome>, NotWritten> {
        let newest = &self.requests.last().expect("a batch is not empty").view;
        let event_id = newest.inventory.event_id;
        let Some(sale) = sales::sale_lock_only(tx, event_id)? else {
            let unknown = Ok(HoldOutcome::Rejected(NotOnSale::NotFound.into()));
            return Err(NotWritten::NothingNew(vec![unknown; self.requests.len()]));
        };
        let mut statuses = statuses_load(tx, newest, sale.fence)?;
        let mut decided = Vec::with_capacity(self.requests.len());
        for request in &self.requests {
            let outcome = request.decide(tx, &statuses, &self.terms)?;
            if let Ok(HoldOutcome::Held(hold)) = &outcome {
                hold.seat_ids().into_iter().for_each(|id| statuses.set(id, SeatStatus::Held));
            }
            decided.push(outcome);
        }
        let is_new = decided.iter().any(|decided| matches!(decided, Ok(HoldOutcome::Held(_))));
        if is_new { Ok(decided) } else { Err(NotWritten::NothingNew(decided)) }
    }
}

/// The current seats: the cached map and the changes since. The sale is locked.
fn statuses_load(
    tx: &mut Tx<'_>,
    view: &InventorySnapshot,
    fence: i64,
) -> Result<Statuses, StorageError> {
    let known = view.seats.statuses();
    // After a restore of the database the map contains changes that did not happen.
    let (mut statuses, after) = match view.seen <= fence {
        true => (known.clone(), view.seen),
        false => (Statuses::all_available(known.count()), 0),
    };
    for change in map::seats_changed(tx, view.inventory.event_id, after)? {
        statuses.set(change.seat_id, change.status);
    }
    Ok(statuses)
}

impl BestSeatsJob {
    /// Replays, chooses seats, then decides like every other request for seats.
    fn decide(
        &self,
        tx: &mut Tx<'_>,
        statuses: &Statuses,
        terms: &HoldTerms,
    ) -> Result<BestSeatsOutcome, NotWritten> {
        if let Some(key) = &self.key
            && let Some(outcome) = find_repeated(tx, self.user_id, key)?
        {
            return Ok(Ok(outcome));
        }
        let inventory = &self.view.inventory;
        let is_free = |id| statuses.is_available(id);
        let seat_ids = match choose_best(&inventory.layout, &self.preference, is_free) {
            Ok(seat_ids) => seat_ids,
            Err(none_fits) => return Ok(Err(none_fits)),
        };
        let entry = HoldEntry {
            request: HoldRequest {
                reservation_id: self.reservation_id,
                user_id: self.user_id,
                requested: RequestedItems::Seats(seat_ids),
                key: self.key.clone(),
            },
            announcement_id: self.announcement_id,
            context: self.context,
        };
        let batch = HoldBatch {
            inventory: Arc::clone(inventory),
            terms: terms.clone(),
            requests: vec![entry],
        };
        match decide_together(tx, &batch) {
            Ok(outcomes) | Err(NotCommitted::NothingNew(outcomes)) => {
                Ok(Ok(outcomes.into_iter().next().expect("one request, one outcome")))
            }
            Err(NotCommitted::GuardRefused) => Err(NotWritten::GuardRefused),
            Err(NotCommitted::Storage(error)) => Err(NotWritten::Storage(error)),
        }
    }
}

/// Checks that need no look at the stock.
fn check_preference(
    view: &InventorySnapshot,
    preference: &SeatPreference,
) -> Result<(), BestSeatsError> {
    let inventory = &view.inventory;
    if inventory.kind != InventoryKind::Seated {
        return Err(ReserveError::OtherKind(inventory.kind).into());
    }
    let mut sections = inventory.layout.sections.iter();
    if let Some(name) = &preference.section {
        let section = sections.find(|section| section.name == *name);
        let section = section.ok_or(BestSeatsError::SectionNotFound)?;
        return match &preference.grade {
            Some(grade) if *grade != section.grade => Err(BestSeatsError::GradeNotFound),
            _ => Ok(()),
        };
    }
    match &preference.grade {
        Some(grade) if !sections.any(|section| section.grade == *grade) => {
            Err(BestSeatsError::GradeNotFound)
        }
        _ => Ok(()),
    }
}

/// Equal for requests with the same preference.
fn digest(event_id: Uuid, preference: &SeatPreference) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(event_id.as_bytes());
    hasher.update(b"best");
    hasher.update(preference.count.to_be_bytes());
    hasher.update([u8::from(preference.accessible)]);
    for name in [&preference.grade, &preference.section] {
        // Their Debug form has quotes, so that a letter cannot move from one name to the other.
        hasher.update(format!("{name:?}").as_bytes());
    }
    hasher.finalize().into()
}
