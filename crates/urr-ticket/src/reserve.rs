//! Reserving: parse, turn the crowd away cheaply, then stand in line at the desk of the event.
//!
//! Three layers guard a seat. The lock (memory or Redis) refuses all but one early; the lock of the
//! sale's row with a fresh look at the seat decides; conditional updates and a unique index are the
//! last guard. Only the last two are needed for the right result.

pub(crate) mod batch;
pub(crate) mod best_seats;
pub(crate) mod change_seats;
pub(crate) mod http;
pub(crate) mod policy_cache;
pub(crate) mod precheck;
pub(crate) mod rules;
pub(crate) mod slots;
pub(crate) mod store;
pub(crate) mod store_postgres;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use urr_kernel::{CallContext, Clock, Uuid};
use urr_layout::SeatId;
use urr_storage::{Db, StorageError};

use crate::batcher::{Desk, NoAnswer};
use crate::inventory::rules::NotOnSale;
use crate::reserve::batch::{Batch, Entry, Outcome, decide_batch, find_all_repeated};
use crate::reserve::policy_cache::Policies;
use crate::reserve::precheck::{Barred, TierDesk, tier_desk};
use crate::reserve::rules::{Hold, HoldRequest, Refusal, RequestKey, Terms, Wanted};
use crate::{
    IdempotencyKey, Inventory, Kind, ReservationId, SeatLocks, SeatMaps, Settings, Taken, Ticket,
};

/// So often, and so long apart, is asked again for a seat about which someone is being decided:
/// they may not get it. Longer than most decisions take, and too short to be felt.
const LOOKS_MAX: u32 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Someone asks for seats or tickets.
#[derive(Clone, Debug)]
pub struct ReserveRequest {
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub wanted: Wanted,
    pub key: Option<IdempotencyKey>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ReserveError {
    #[error("there is no such event")]
    EventNotFound,
    #[error("the event sells something else")]
    OtherKind(Kind),
    #[error("there are no such seats")]
    SeatsNotFound(Vec<SeatId>),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The desks of a process.
#[derive(Clone)]
pub(crate) struct Desks {
    holds: Desk<Question, Decided>,
    keys: Desk<(Uuid, RequestKey), Result<Option<Outcome>, StorageError>>,
    policies: Policies,
    tiers: TierDesk,
}

struct Question {
    inventory: Arc<Inventory>,
    entry: Entry,
    attempt: Uuid,
}

/// An outcome with what is to be done about the locks.
struct Decided {
    outcome: Result<Outcome, StorageError>,
    event_id: Uuid,
    user_id: Uuid,
    seat_ids: Vec<SeatId>,
    attempt: Uuid,
}

impl Desks {
    pub fn new(
        db: &Db,
        clock: &Clock,
        locks: &SeatLocks,
        maps: &SeatMaps,
        settings: &Settings,
    ) -> Desks {
        Desks {
            holds: hold_desk(db, clock, locks, maps, settings),
            keys: key_desk(db),
            policies: Policies::new(db, clock),
            tiers: tier_desk(db, clock),
        }
    }
}

fn hold_desk(
    db: &Db,
    clock: &Clock,
    locks: &SeatLocks,
    maps: &SeatMaps,
    settings: &Settings,
) -> Desk<Question, Decided> {
    let (db, clock, maps, terms_of) = (db.clone(), clock.clone(), maps.clone(), settings.clone());
    let work = move |_, questions: Vec<Question>| {
        let terms = Terms {
            now: clock.now(),
            hold_ttl: terms_of.hold_ttl,
            cancel_policy: Arc::clone(&terms_of.cancel_policy),
            dangerous_without_seat_guard: terms_of.dangerous_without_seat_guard,
        };
        decide_questions(db.clone(), maps.clone(), questions, terms)
    };
    // Who asked left the line: nothing is held for them, and their seats are the next one's.
    let left_locks = locks.clone();
    let left = move |question: Question| {
        let locks = left_locks.clone();
        tokio::spawn(async move {
            let Question { inventory, entry, attempt } = question;
            let seat_ids = entry.request.wanted.seat_ids();
            locks.give_up(inventory.event_id, seat_ids, attempt).await;
        });
    };
    let (locks, lock_ttl) = (locks.clone(), settings.lock_ttl);
    // Who asked has gone away: their hold stands until it expires, and so should its lock.
    let abandoned = move |decided: Decided| {
        let locks = locks.clone();
        tokio::spawn(async move { settle_locks(&locks, &decided, lock_ttl).await });
    };
    Desk::new(work, abandoned).when_left(left)
}

async fn decide_questions(
    db: Db,
    maps: SeatMaps,
    questions: Vec<Question>,
    terms: Terms,
) -> Vec<Decided> {
    let first = questions.first().expect("a batch is not empty");
    let inventory = Arc::clone(&first.inventory);
    let event_id = inventory.event_id;
    let (mut entries, mut duties) = (Vec::new(), Vec::new());
    for Question { entry, attempt, .. } in questions {
        let seat_ids = entry.request.wanted.seat_ids().to_vec();
        duties.push((entry.request.user_id, seat_ids, attempt));
        entries.push(entry);
    }
    let outcomes = decide_batch(&db, Batch { inventory, terms, requests: entries }).await;
    // Before anyone is answered: who reserves and then looks sees it.
    if outcomes.iter().any(|outcome| !matches!(outcome, Ok(Outcome::Refused(_)))) {
        maps.mark_taken(event_id);
    }
    let decided = outcomes.into_iter().zip(duties);
    decided
        .map(|(outcome, (user_id, seat_ids, attempt))| Decided {
            outcome,
            event_id,
            user_id,
            seat_ids,
            attempt,
        })
        .collect()
}

fn key_desk(db: &Db) -> Desk<(Uuid, RequestKey), Result<Option<Outcome>, StorageError>> {
    let db = db.clone();
    let work = move |_, questions: Vec<(Uuid, RequestKey)>| {
        let (db, count) = (db.clone(), questions.len());
        async move {
            match db.read(move |tx| find_all_repeated(tx, &questions)).await {
                Ok(found) => found.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); count],
            }
        }
    };
    Desk::new(work, |_| {})
}

/// After the commit: the seats of a hold stay locked, and whatever a failed attempt took is free.
async fn settle_locks(locks: &SeatLocks, decided: &Decided, lock_ttl: Duration) {
    let Decided { outcome, event_id, user_id, seat_ids, attempt } = decided;
    if seat_ids.is_empty() {
        return;
    }
    match outcome {
        Ok(Outcome::Held(hold)) => {
            let token = hold.reservation.fence;
            locks.keep(*event_id, seat_ids, *user_id, token, lock_ttl).await;
        }
        // It may have been committed: the lock's short life decides.
        Err(StorageError::OutcomeUnknown(_)) => {}
        Ok(Outcome::Repeated(_) | Outcome::Refused(_)) | Err(_) => {
            locks.give_up(*event_id, seat_ids, *attempt).await;
        }
    }
}

impl Ticket {
    /// Holds seats or tickets for someone, or says why not.
    pub async fn reserve(
        &self,
        request: ReserveRequest,
        context: CallContext,
    ) -> Result<Hold, ReserveError> {
        match self.reserve_once(request.clone(), context).await {
            // Its time may be over, and no sweep has come by yet.
            Err(ReserveError::Refused(Refusal::HoldInProgress { reservation_id }))
                if self.end_if_overdue(reservation_id).await? =>
            {
                self.reserve_once(request, context).await
            }
            answer => answer,
        }
    }

    async fn reserve_once(
        &self,
        request: ReserveRequest,
        context: CallContext,
    ) -> Result<Hold, ReserveError> {
        let inventory = self.inventories.get(request.event_id).await?;
        let inventory = inventory.ok_or(ReserveError::EventNotFound)?;
        check_wanted(&inventory, &request.wanted)?;
        let (event_id, user_id) = (request.event_id, request.user_id);
        let key = request.key.as_ref().map(|key| RequestKey {
            text: key.as_str().to_owned(),
            digest: digest(event_id, &request.wanted),
        });
        let attempt = self.ids.next_id();
        let barred = self.find_barred(event_id, user_id, &request.wanted).await;
        let refusal = match (barred, request.wanted.seat_ids()) {
            (Some(Barred::NotOnSale(reason)), _) => Some(reason.into()),
            // The database says more, but no seat is locked for them meanwhile.
            (Some(Barred::Somehow), _) | (None, []) => None,
            (None, seat_ids) => self.find_taken(event_id, seat_ids, user_id, attempt).await,
        };
        if let Some(refusal) = refusal {
            return self.turn_away(event_id, user_id, refusal, key).await;
        }
        let entry = Entry {
            request: HoldRequest {
                reservation_id: ReservationId(self.ids.next_id()),
                user_id,
                wanted: request.wanted,
                key,
            },
            announcement_id: self.ids.next_id(),
            context,
        };
        let question = Question { inventory, entry, attempt };
        let decided = self.desks.holds.ask(event_id, question).await?;
        settle_locks(&self.locks, &decided, self.settings.lock_ttl).await;
        into_answer(decided.outcome?)
    }

    /// Why the seats are not to be had, as far as can be told without the database. Otherwise their
    /// locks are taken, if they can be.
    async fn find_taken(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        user_id: Uuid,
        attempt: Uuid,
    ) -> Option<Refusal> {
        let taken = |seat_id| Refusal::SeatsTaken { seat_ids: vec![seat_id] };
        let mut looks = 1;
        loop {
            match self.locks.take(event_id, seat_ids, user_id, attempt).await {
                Taken::Yes => return None,
                Taken::Unknown => return self.maps.taken_hint(event_id, seat_ids).map(taken),
                // A lock can outlive its hold, if its release was lost. The map knows better.
                Taken::No { seat_id, token: Some(token) } => {
                    let is_free = self.maps.is_free_at(event_id, seat_id, token);
                    return (!is_free).then(|| taken(seat_id));
                }
                Taken::No { seat_id, token: None } if looks == LOOKS_MAX => {
                    return Some(Refusal::SeatBeingDecided { seat_id });
                }
                Taken::No { token: None, .. } => tokio::time::sleep(LOOK_EVERY).await,
            }
            looks += 1;
        }
    }

    /// They get nothing. That is the answer, unless this very request was answered before.
    async fn turn_away(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        refusal: Refusal,
        key: Option<RequestKey>,
    ) -> Result<Hold, ReserveError> {
        if let Some(key) = key
            && let Some(outcome) = self.desks.keys.ask(event_id, (user_id, key)).await??
        {
            return into_answer(outcome);
        }
        into_answer(Outcome::Refused(refusal))
    }
}

fn into_answer(outcome: Outcome) -> Result<Hold, ReserveError> {
    match outcome {
        Outcome::Held(hold) | Outcome::Repeated(hold) => Ok(hold),
        Outcome::Refused(Refusal::NotOnSale(NotOnSale::Unknown)) => {
            Err(ReserveError::EventNotFound)
        }
        Outcome::Refused(refusal) => Err(refusal.into()),
    }
}

/// What can be said without looking at what is left.
fn check_wanted(inventory: &Inventory, wanted: &Wanted) -> Result<(), ReserveError> {
    match (inventory.kind, wanted) {
        (Kind::Standing, Wanted::Tickets(_)) => Ok(()),
        (Kind::Seated, Wanted::Seats(seat_ids)) => {
            let is_missing = |seat_id: &&SeatId| inventory.layout.place(**seat_id).is_none();
            let missing: Vec<SeatId> = seat_ids.iter().filter(is_missing).copied().collect();
            if missing.is_empty() { Ok(()) } else { Err(ReserveError::SeatsNotFound(missing)) }
        }
        (kind, _) => Err(ReserveError::OtherKind(kind)),
    }
}

/// Two requests with the same digest ask for the same.
fn digest(event_id: Uuid, wanted: &Wanted) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(event_id.as_bytes());
    match wanted {
        Wanted::Seats(seat_ids) => {
            hasher.update(b"seats");
            seat_ids.iter().for_each(|seat_id| hasher.update(seat_id.to_be_bytes()));
        }
        Wanted::Tickets(lines) => {
            hasher.update(b"tickets");
            for line in lines {
                hasher.update(line.ticket_type_id.as_bytes());
                hasher.update(line.quantity.to_be_bytes());
            }
        }
    }
    hasher.finalize().into()
}

impl From<NoAnswer> for ReserveError {
    fn from(no_answer: NoAnswer) -> ReserveError {
        ReserveError::Storage(match no_answer {
            NoAnswer::Full => StorageError::Overloaded,
            NoAnswer::Lost => StorageError::Panicked("the desk broke down".to_owned()),
        })
    }
}
