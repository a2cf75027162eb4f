//! Reserving: parse, turn the crowd away cheaply, then stand in line at the desk of the event.
//!
//! Three layers guard a seat. The lock (memory or Redis) refuses all but one early; the lock of the
//! sale's row with a fresh look at the seat decides; conditional updates and a unique index are the
//! last guard. Only the last two are needed for the right result.

pub(crate) mod batch;
mod desk;

use std::sync::Arc;

use sha2::{Digest, Sha256};
use urr_kernel::{CallContext, Clock, Uuid};
use urr_layout::SeatId;
use urr_storage::{Db, StorageError};

use self::batch::{Batch, Entry, Outcome, decide_batch, find_repeated};
use self::desk::{Desk, NoAnswer};
use crate::domain::hold::{Hold, HoldRequest, Refusal, RequestKey, Terms, Wanted};
use crate::domain::sale::NotOnSale;
use crate::{Inventory, Kind, ReservationId, SeatLocks, SeatMaps, Settings, Taken, Ticket};

/// A key is at most so long.
pub const KEY_CHARS_MAX: usize = 64;

/// Someone asks for seats or tickets.
#[derive(Clone, Debug)]
pub struct ReserveRequest {
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub wanted: Wanted,
    pub key: Option<IdempotencyKey>,
}

/// A word by which a client makes sure that a request has one effect, however often it is sent.
/// It is the user's own: others may use the same word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("An idempotency key has 1 to 64 visible characters.")]
pub struct InvalidIdempotencyKey;

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

impl IdempotencyKey {
    pub fn parse(text: &str) -> Result<IdempotencyKey, InvalidIdempotencyKey> {
        let length = text.chars().count();
        let is_visible = text.chars().all(|c| !c.is_control() && !c.is_whitespace());
        match (1..=KEY_CHARS_MAX).contains(&length) && is_visible {
            true => Ok(IdempotencyKey(text.to_owned())),
            false => Err(InvalidIdempotencyKey),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The desks of a process.
#[derive(Clone)]
pub(crate) struct Desks {
    holds: Desk<Question, Decided>,
    keys: Desk<(Uuid, RequestKey), Result<Option<Outcome>, StorageError>>,
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
        Desks { holds: hold_desk(db, clock, locks, maps, settings), keys: key_desk(db) }
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
            dangerous_without_seat_guard: terms_of.dangerous_without_seat_guard,
        };
        decide_questions(db.clone(), maps.clone(), questions, terms)
    };
    let (locks, lock_ttl) = (locks.clone(), settings.lock_ttl);
    // Who asked has gone away: their hold stands until it expires, and so should its lock.
    let abandoned = move |decided: Decided| {
        let locks = locks.clone();
        tokio::spawn(async move { settle_locks(&locks, &decided, lock_ttl).await });
    };
    Desk::new(work, abandoned)
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
        let look = move |tx: &mut urr_storage::Tx<'_>| {
            let questions = questions.iter();
            questions.map(|(user_id, key)| find_repeated(tx, *user_id, key)).collect()
        };
        async move {
            let found: Result<Vec<Option<Outcome>>, StorageError> = db.read(look).await;
            match found {
                Ok(found) => found.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); count],
            }
        }
    };
    Desk::new(work, |_| {})
}

/// After the commit: the seats of a hold stay locked, and whatever a failed attempt took is free.
async fn settle_locks(locks: &SeatLocks, decided: &Decided, lock_ttl: std::time::Duration) {
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
        let inventory = self.inventories.get(request.event_id).await?;
        let inventory = inventory.ok_or(ReserveError::EventNotFound)?;
        check_wanted(&inventory, &request.wanted)?;
        let (event_id, user_id) = (request.event_id, request.user_id);
        let key = request.key.as_ref().map(|key| RequestKey {
            text: key.0.clone(),
            digest: digest(event_id, &request.wanted),
        });
        let attempt = self.ids.next_id();
        let seat_ids = request.wanted.seat_ids();
        if !seat_ids.is_empty()
            && let Some(seat_id) = self.find_taken(event_id, seat_ids, user_id, attempt).await
        {
            return self.turn_away(event_id, user_id, seat_id, key).await;
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

    /// A seat that is someone else's, as far as can be told without the database. Otherwise the
    /// locks of the seats are taken, if they can be.
    async fn find_taken(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        user_id: Uuid,
        attempt: Uuid,
    ) -> Option<SeatId> {
        match self.locks.take(event_id, seat_ids, user_id, attempt).await {
            Taken::Yes => None,
            Taken::Unknown => self.maps.taken_hint(event_id, seat_ids),
            // A lock can outlive its hold, if its release was lost. The map knows better.
            Taken::No { seat_id, token: Some(token) } => {
                (!self.maps.is_free_at(event_id, seat_id, token)).then_some(seat_id)
            }
            Taken::No { seat_id, token: None } => Some(seat_id),
        }
    }

    /// Someone else has the seat. That is the answer, unless this very request was answered before.
    async fn turn_away(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        seat_id: SeatId,
        key: Option<RequestKey>,
    ) -> Result<Hold, ReserveError> {
        if let Some(key) = key
            && let Some(outcome) = self.desks.keys.ask(event_id, (user_id, key)).await??
        {
            return into_answer(outcome);
        }
        Err(Refusal::SeatsTaken { seat_ids: vec![seat_id] }.into())
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
