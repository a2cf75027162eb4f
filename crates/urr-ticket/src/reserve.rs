//! Reserving seats or tickets: cheap rejections first, then a batch per event.
//!
//! Three layers guard a seat. The seat lock (memory or Redis) rejects all but one request early;
//! the lock of the sale's row with a fresh read of the seat decides; conditional updates and a
//! unique index are the last guard. Only the last two are needed for the right result.

pub(crate) mod batch;
pub(crate) mod best_seats;
pub(crate) mod change_seats;
pub(crate) mod http;
pub(crate) mod persons;
pub(crate) mod precheck;
pub(crate) mod rules;
pub(crate) mod slots;
pub(crate) mod store;
pub(crate) mod store_postgres;

use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{CallContext, Clock, Uuid};
use urr_layout::{SeatId, Section};
use urr_service::idempotency::{KeyedRequest, fingerprint};
use urr_storage::{Db, DbResult, StorageError};

use crate::batcher::{Batcher, BatcherError, BatcherLimits};
use crate::inventory::rules::NotOnSale;
use crate::reservations::rules::ReservationRejection;
use crate::reservations::transition::TransitionError;
use crate::reserve::batch::{HoldBatch, HoldEntry, HoldOutcome, decide_batch, find_all_repeated};
use crate::reserve::best_seats::SeatPreference;
use crate::reserve::persons::PersonHashes;
use crate::reserve::precheck::{EarlyRejection, TierBatcher, tier_batcher};
use crate::reserve::rules::{Hold, HoldRejection, HoldRequest, HoldTerms, RequestedItems};
use crate::{
    IdempotencyKey, Inventory, InventoryKind, LockResult, ReservationId, SeatLocks, SeatMaps,
    TicketService, TicketSettings,
};

/// Idempotency keys are those of a user, whether seats or tickets are reserved.
pub(crate) const OPERATION: &str = "reserve";

/// How often and how long apart a seat is retried while another request for it is being decided:
/// that request may fail. 80 ms is longer than most decisions take and too short to be noticed.
const LOCK_ATTEMPTS_MAX: u32 = 4;
const LOCK_RETRY_EVERY: Duration = Duration::from_millis(20);

/// Choosing the best seats takes longer than taking named ones, and the first request of a batch
/// waits for all of them. A longer queue would wait longer than users do.
const BEST_SEATS_LIMITS: BatcherLimits = BatcherLimits { batch_max: 32, pending_max: 256 };

/// A request for seats or tickets.
#[derive(Clone, Debug)]
pub struct ReserveRequest {
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub requested: RequestedItems,
    pub key: Option<IdempotencyKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReserveError {
    #[error("There is no event with this id.")]
    EventNotFound,
    #[error("The event sells something else.")]
    OtherKind(InventoryKind),
    #[error("The event has no such seat.")]
    SeatsNotFound(Vec<SeatId>),
    #[error("There are no seats of this grade there.")]
    GradeNotFound,
    #[error("The event has no such section.")]
    SectionNotFound,
    /// The hold cannot get other seats.
    #[error(transparent)]
    NotChangeable(#[from] ReservationRejection),
    #[error(transparent)]
    Rejected(#[from] HoldRejection),
    /// The event requires a checked identity, and the auth service does not answer.
    #[error("We cannot check your identity at the moment. Please try again.")]
    PersonUnavailable,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The batchers of a process.
#[derive(Clone)]
pub(crate) struct ReserveBatchers {
    holds: Batcher<HoldJob, DecidedHold>,
    /// Those for the best seats.
    best: Batcher<HoldJob, DecidedHold>,
    keys: Batcher<KeyedRequest, DbResult<Option<HoldOutcome>>>,
    tiers: TierBatcher,
}

struct HoldJob {
    inventory: Arc<Inventory>,
    entry: HoldEntry,
    attempt: Uuid,
}

/// An outcome and the locks that depend on it.
struct DecidedHold {
    outcome: DbResult<HoldOutcome>,
    event_id: Uuid,
    user_id: Uuid,
    seat_ids: Vec<SeatId>,
    attempt: Uuid,
}

impl ReserveBatchers {
    pub fn new(
        db: &Db,
        clock: &Clock,
        locks: &SeatLocks,
        maps: &SeatMaps,
        settings: &TicketSettings,
    ) -> ReserveBatchers {
        ReserveBatchers {
            holds: hold_batcher(BatcherLimits::DEFAULT, db, clock, locks, maps, settings),
            best: hold_batcher(BEST_SEATS_LIMITS, db, clock, locks, maps, settings),
            keys: key_batcher(db, clock),
            tiers: tier_batcher(db, clock),
        }
    }

    /// How many holds were asked for so far.
    pub fn holds_asked(&self) -> u64 {
        self.holds.submitted() + self.best.submitted()
    }
}

fn hold_batcher(
    limits: BatcherLimits,
    db: &Db,
    clock: &Clock,
    locks: &SeatLocks,
    maps: &SeatMaps,
    settings: &TicketSettings,
) -> Batcher<HoldJob, DecidedHold> {
    let (db, clock, maps, terms_of) = (db.clone(), clock.clone(), maps.clone(), settings.clone());
    let work = move |_, jobs: Vec<HoldJob>| {
        let terms = terms_of.hold_terms(clock.now());
        decide_jobs(db.clone(), maps.clone(), jobs, terms)
    };
    // The client is gone before the decision: nothing is held, and the seats are unlocked.
    let left_locks = locks.clone();
    let left = move |job: HoldJob| {
        let locks = left_locks.clone();
        tokio::spawn(async move {
            let HoldJob { inventory, entry, attempt } = job;
            let seat_ids = entry.request.requested.seat_ids();
            locks.abandon(inventory.event_id, seat_ids, attempt).await;
        });
    };
    let (locks, lock_ttl) = (locks.clone(), settings.lock_ttl);
    // The client is gone: the hold lives until it expires, and so does its lock.
    let abandoned = move |decided: DecidedHold| {
        let locks = locks.clone();
        tokio::spawn(async move { settle_locks(&locks, &decided, lock_ttl).await });
    };
    Batcher::with_limits(limits, work, abandoned).on_cancelled(left)
}

async fn decide_jobs(
    db: Db,
    maps: SeatMaps,
    jobs: Vec<HoldJob>,
    terms: HoldTerms,
) -> Vec<DecidedHold> {
    let first = jobs.first().expect("a batch is not empty");
    let inventory = Arc::clone(&first.inventory);
    let event_id = inventory.event_id;
    let (mut entries, mut duties) = (Vec::new(), Vec::new());
    for HoldJob { entry, attempt, .. } in jobs {
        let seat_ids = entry.request.requested.seat_ids().to_vec();
        duties.push((entry.request.user_id, seat_ids, attempt));
        entries.push(entry);
    }
    let is_best = |entry: &HoldEntry| matches!(entry.request.requested, RequestedItems::Best(_));
    // Without the map all changes are read from the database.
    let map = match entries.iter().any(is_best) {
        true => maps.load(event_id).await.ok().flatten(),
        false => None,
    };
    let outcomes = decide_batch(&db, HoldBatch { inventory, map, terms, requests: entries }).await;
    // Marked before the answer, so that a user who reserves and then reads the map sees it.
    if outcomes.iter().any(|outcome| !matches!(outcome, Ok(HoldOutcome::Rejected(_)))) {
        maps.mark_taken(event_id);
    }
    let decided = outcomes.into_iter().zip(duties);
    decided
        .map(|(outcome, (user_id, seat_ids, attempt))| DecidedHold {
            outcome,
            event_id,
            user_id,
            seat_ids,
            attempt,
        })
        .collect()
}

fn key_batcher(db: &Db, clock: &Clock) -> Batcher<KeyedRequest, DbResult<Option<HoldOutcome>>> {
    let (db, clock) = (db.clone(), clock.clone());
    let work = move |_, requests: Vec<KeyedRequest>| {
        let (db, now, count) = (db.clone(), clock.now(), requests.len());
        async move {
            match db.read(move |tx| find_all_repeated(tx, &requests, now)).await {
                Ok(found) => found.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); count],
            }
        }
    };
    Batcher::new(work, |_| {})
}

/// After the commit: the seats of a hold stay locked, and whatever a failed attempt took is free.
async fn settle_locks(locks: &SeatLocks, decided: &DecidedHold, lock_ttl: Duration) {
    let DecidedHold { outcome, event_id, user_id, seat_ids, attempt } = decided;
    match outcome {
        Ok(HoldOutcome::Held(hold)) => {
            let token = hold.reservation.fence;
            locks.confirm(*event_id, &hold.seat_ids(), *user_id, token, lock_ttl).await;
        }
        // It may have been committed: the lock's short life decides.
        Err(StorageError::OutcomeUnknown(_)) => {}
        Ok(HoldOutcome::Repeated(_) | HoldOutcome::Rejected(_)) | Err(_) => {
            locks.abandon(*event_id, seat_ids, *attempt).await;
        }
    }
}

impl TicketService {
    /// Holds seats or tickets, or rejects the request.
    pub async fn reserve(
        &self,
        request: ReserveRequest,
        context: CallContext,
    ) -> Result<Hold, ReserveError> {
        let (event_id, user_id) = (request.event_id, request.user_id);
        let person = match request.requested {
            // Requests for the best seats do not read the policy beforehand.
            RequestedItems::Best(_) => None,
            _ => self.find_person(event_id, user_id, &context).await?,
        };
        match self.reserve_once(request.clone(), person.clone(), context).await {
            // The earlier hold may have expired without having been swept yet.
            Err(ReserveError::Rejected(HoldRejection::HoldInProgress { reservation_id }))
                if self.end_if_overdue(reservation_id).await? =>
            {
                self.reserve_once(request, person, context).await
            }
            Err(ReserveError::Rejected(HoldRejection::IdentityRequired)) if person.is_none() => {
                let person = self.find_person(event_id, user_id, &context).await?;
                self.reserve_once(request, person, context).await
            }
            answer => answer,
        }
    }

    async fn reserve_once(
        &self,
        request: ReserveRequest,
        person: Option<PersonHashes>,
        context: CallContext,
    ) -> Result<Hold, ReserveError> {
        let inventory = self.inventories.get(request.event_id).await?;
        let inventory = inventory.ok_or(ReserveError::EventNotFound)?;
        check_requested(&inventory, &request.requested)?;
        let (event_id, user_id) = (request.event_id, request.user_id);
        let key = request.key.map(|key| KeyedRequest {
            user_id,
            operation: OPERATION,
            key,
            fingerprint: fingerprint(&(event_id, &request.requested)),
        });
        let attempt = self.ids.next_id();
        let batcher = match &request.requested {
            RequestedItems::Best(_) => &self.batchers.best,
            _ => &self.batchers.holds,
        };
        let rejected_early = self.find_early_rejection(event_id, user_id, &request.requested).await;
        let refusal = match (rejected_early, request.requested.seat_ids()) {
            (Some(EarlyRejection::NotOnSale(reason)), _) => Some(reason.into()),
            // The database decides; no seat is locked for them meanwhile.
            (Some(EarlyRejection::Undecided), _) | (None, []) => None,
            (None, seat_ids) => self.lock_seats(event_id, seat_ids, user_id, attempt).await,
        };
        if let Some(refusal) = refusal {
            return self.reject_unless_repeated(event_id, refusal, key).await;
        }
        let entry = HoldEntry {
            request: HoldRequest {
                reservation_id: ReservationId(self.ids.next_id()),
                user_id,
                person,
                requested: request.requested,
                key,
            },
            announcement_id: self.ids.next_id(),
            context,
        };
        let job = HoldJob { inventory, entry, attempt };
        let decided = batcher.submit(event_id, job).await?;
        settle_locks(&self.locks, &decided, self.settings.lock_ttl).await;
        if matches!(decided.outcome, Ok(HoldOutcome::Held(_))) {
            self.metrics.count_created();
        }
        into_answer(decided.outcome?)
    }

    /// Locks the seats, or tells why they cannot be had, as far as is known without the database.
    async fn lock_seats(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        user_id: Uuid,
        attempt: Uuid,
    ) -> Option<HoldRejection> {
        let taken = |seat_id| HoldRejection::SeatsTaken { seat_ids: vec![seat_id] };
        let mut attempts = 1;
        loop {
            match self.locks.acquire(event_id, seat_ids, user_id, attempt).await {
                LockResult::Acquired => return None,
                LockResult::Unknown => return self.maps.taken_hint(event_id, seat_ids).map(taken),
                // A lock can outlive its hold if its release was lost. The map is newer then.
                LockResult::Refused { seat_id, token: Some(token) } => {
                    let is_free = self.maps.is_free_at(event_id, seat_id, token);
                    return (!is_free).then(|| taken(seat_id));
                }
                LockResult::Refused { seat_id, token: None } if attempts == LOCK_ATTEMPTS_MAX => {
                    return Some(HoldRejection::SeatBeingDecided { seat_id });
                }
                LockResult::Refused { token: None, .. } => {
                    tokio::time::sleep(LOCK_RETRY_EVERY).await
                }
            }
            attempts += 1;
        }
    }

    /// Rejects the request, unless this very request was answered before.
    async fn reject_unless_repeated(
        &self,
        event_id: Uuid,
        refusal: HoldRejection,
        key: Option<KeyedRequest>,
    ) -> Result<Hold, ReserveError> {
        if let Some(key) = key
            && let Some(outcome) = self.batchers.keys.submit(event_id, key).await??
        {
            return into_answer(outcome);
        }
        into_answer(HoldOutcome::Rejected(refusal))
    }
}

fn into_answer(outcome: HoldOutcome) -> Result<Hold, ReserveError> {
    match outcome {
        HoldOutcome::Held(hold) | HoldOutcome::Repeated(hold) => Ok(hold),
        HoldOutcome::Rejected(HoldRejection::NotOnSale(NotOnSale::NotFound)) => {
            Err(ReserveError::EventNotFound)
        }
        HoldOutcome::Rejected(refusal) => Err(refusal.into()),
    }
}

/// Checks that need no look at the stock.
pub(crate) fn check_requested(
    inventory: &Inventory,
    requested: &RequestedItems,
) -> Result<(), ReserveError> {
    match (inventory.kind, requested) {
        (InventoryKind::Standing, RequestedItems::Tickets(_)) => Ok(()),
        (InventoryKind::Seated, RequestedItems::Seats(seat_ids)) => {
            let is_missing = |seat_id: &&SeatId| inventory.layout.place(**seat_id).is_none();
            let missing: Vec<SeatId> = seat_ids.iter().filter(is_missing).copied().collect();
            if missing.is_empty() { Ok(()) } else { Err(ReserveError::SeatsNotFound(missing)) }
        }
        (InventoryKind::Seated, RequestedItems::Best(preference)) => {
            check_preference(inventory, preference)
        }
        (kind, _) => Err(ReserveError::OtherKind(kind)),
    }
}

fn check_preference(
    inventory: &Inventory,
    preference: &SeatPreference,
) -> Result<(), ReserveError> {
    let SeatPreference { grade, section, .. } = preference;
    let is_section = |one: &&Section| section.as_ref().is_none_or(|name| one.name == *name);
    let mut sections = inventory.layout.sections.iter().filter(is_section).peekable();
    if sections.peek().is_none() {
        return Err(ReserveError::SectionNotFound);
    }
    match grade.as_ref().is_none_or(|grade| sections.any(|one| one.grade == *grade)) {
        true => Ok(()),
        false => Err(ReserveError::GradeNotFound),
    }
}

impl From<TransitionError> for ReserveError {
    fn from(error: TransitionError) -> ReserveError {
        match error {
            TransitionError::Rejected(refused) => ReserveError::NotChangeable(refused),
            TransitionError::Storage(error) => ReserveError::Storage(error),
        }
    }
}

impl From<BatcherError> for ReserveError {
    fn from(no_answer: BatcherError) -> ReserveError {
        ReserveError::Storage(match no_answer {
            BatcherError::Full => StorageError::Overloaded,
            BatcherError::Failed => {
                StorageError::Panicked("a batch of requests panicked".to_owned())
            }
        })
    }
}
