//! The best seats that are left, chosen inside the transaction that holds them.
//!
//! The map in memory and what changed since it was drawn are together, under the lock of the sale,
//! the seats as they are: one short look by index, however large the hall. So two who ask at the
//! same moment get different seats, and "sold out" is never said too early.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use urr_kernel::{CallContext, Uuid};
use urr_storage::{StorageError, Tx};

use crate::domain::best::{NoneFits, Wish, choose_best};
use crate::domain::hold::{Hold, HoldRequest, Refusal, RequestKey, Terms, Wanted};
use crate::domain::sale::NotOnSale;
use crate::reserve::batch::{Batch, Entry, NotCommitted, Outcome, decide_together, find_repeated};
use crate::seat_map::EventView;
use crate::store::{map, sales};
use crate::{IdempotencyKey, Kind, ReservationId, ReserveError, Ticket};

/// A collision of two requests with one key is over by the second attempt.
const ATTEMPTS_MAX: u32 = 3;

/// Someone asks for the best seats.
#[derive(Clone, Debug)]
pub struct BestRequest {
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub wish: Wish,
    pub key: Option<IdempotencyKey>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum BestError {
    #[error("there is no such grade")]
    GradeNotFound,
    #[error("there is no such section")]
    SectionNotFound,
    #[error(transparent)]
    NoneFits(#[from] NoneFits),
    #[error(transparent)]
    Reserve(#[from] ReserveError),
}

/// Why nothing was committed.
enum Failed {
    NoneFits(NoneFits),
    NotCommitted(NotCommitted),
}

impl From<StorageError> for Failed {
    fn from(error: StorageError) -> Failed {
        Failed::NotCommitted(error.into())
    }
}

impl Ticket {
    /// Holds the best seats for someone: the same rules as for seats that were picked by hand.
    pub async fn reserve_best(
        &self,
        request: BestRequest,
        context: CallContext,
    ) -> Result<Hold, BestError> {
        let event_id = request.event_id;
        let view = self.maps.look(event_id).await.map_err(ReserveError::from)?;
        let view = view.ok_or(ReserveError::EventNotFound)?;
        check_wish(&view, &request.wish)?;
        let asking = Arc::new(self.asking(view, request, context));
        let mut attempt = 0;
        let outcome = loop {
            attempt += 1;
            let write = Arc::clone(&asking);
            match self.db.write(move |tx| write.decide(tx)).await {
                Ok(outcome) => break outcome,
                Err(Failed::NoneFits(none)) => return Err(none.into()),
                Err(Failed::NotCommitted(NotCommitted::NothingNew(outcomes))) => {
                    break outcomes.into_iter().next().expect("one request, one outcome");
                }
                Err(Failed::NotCommitted(failure)) if attempt >= ATTEMPTS_MAX => {
                    return Err(ReserveError::from(storage_error(failure)).into());
                }
                Err(Failed::NotCommitted(failure)) => refuse_unless_collision(failure)?,
            }
        };
        if let Outcome::Held(hold) = &outcome {
            self.maps.mark_taken(event_id);
            let (user_id, token) = (hold.reservation.user_id, hold.reservation.fence);
            let lock_ttl = self.settings.lock_ttl;
            self.locks.keep(event_id, &hold.seat_ids(), user_id, token, lock_ttl).await;
        }
        match outcome {
            Outcome::Held(hold) | Outcome::Repeated(hold) => Ok(hold),
            Outcome::Refused(Refusal::NotOnSale(NotOnSale::Unknown)) => {
                Err(ReserveError::EventNotFound.into())
            }
            Outcome::Refused(refusal) => Err(ReserveError::from(refusal).into()),
        }
    }

    fn asking(&self, view: Arc<EventView>, request: BestRequest, context: CallContext) -> Asking {
        let digest = digest(request.event_id, &request.wish);
        let key = request.key.map(|key| RequestKey { text: key.as_str().to_owned(), digest });
        Asking {
            view,
            wish: request.wish,
            user_id: request.user_id,
            key,
            reservation_id: ReservationId(self.ids.next_id()),
            announcement_id: self.ids.next_id(),
            context,
            terms: Terms {
                now: self.clock.now(),
                hold_ttl: self.settings.hold_ttl,
                dangerous_without_seat_guard: self.settings.dangerous_without_seat_guard,
            },
        }
    }
}

/// All that the closure needs.
struct Asking {
    view: Arc<EventView>,
    wish: Wish,
    user_id: Uuid,
    key: Option<RequestKey>,
    reservation_id: ReservationId,
    announcement_id: Uuid,
    context: CallContext,
    terms: Terms,
}

impl Asking {
    /// Lock, replay, choose; then the way of every request for seats.
    fn decide(&self, tx: &mut Tx<'_>) -> Result<Outcome, Failed> {
        let nothing_new = |outcome| Failed::NotCommitted(NotCommitted::NothingNew(vec![outcome]));
        let inventory = &self.view.inventory;
        let event_id = inventory.event_id;
        if sales::sale_lock_only(tx, event_id)?.is_none() {
            return Err(nothing_new(Outcome::Refused(NotOnSale::Unknown.into())));
        }
        if let Some(key) = &self.key
            && let Some(outcome) = find_repeated(tx, self.user_id, key)?
        {
            return Err(nothing_new(outcome));
        }
        let mut statuses = self.view.picture.statuses().clone();
        for change in map::seats_changed(tx, event_id, self.view.seen)? {
            statuses.set(change.seat_id, change.status);
        }
        let is_free = |id| statuses.is_available(id);
        let chosen = choose_best(&inventory.layout, &self.wish, is_free);
        let entry = Entry {
            request: HoldRequest {
                reservation_id: self.reservation_id,
                user_id: self.user_id,
                wanted: Wanted::Seats(chosen.map_err(Failed::NoneFits)?),
                key: self.key.clone(),
            },
            announcement_id: self.announcement_id,
            context: self.context,
        };
        let batch =
            Batch { inventory: Arc::clone(inventory), terms: self.terms, requests: vec![entry] };
        let outcomes = decide_together(tx, &batch).map_err(Failed::NotCommitted)?;
        Ok(outcomes.into_iter().next().expect("one request, one outcome"))
    }
}

/// Another event may have used the same key in the same moment: the next attempt sees it.
fn refuse_unless_collision(failure: NotCommitted) -> Result<(), ReserveError> {
    match failure {
        NotCommitted::GuardRefused
        | NotCommitted::NothingNew(_)
        | NotCommitted::Storage(StorageError::Constraint { .. }) => Ok(()),
        NotCommitted::Storage(error) => Err(error.into()),
    }
}

fn storage_error(failure: NotCommitted) -> StorageError {
    match failure {
        NotCommitted::Storage(error) => error,
        NotCommitted::GuardRefused | NotCommitted::NothingNew(_) => StorageError::Contention,
    }
}

/// What can be said without looking at what is left.
fn check_wish(view: &EventView, wish: &Wish) -> Result<(), BestError> {
    let inventory = &view.inventory;
    if inventory.kind != Kind::Seated {
        return Err(ReserveError::OtherKind(inventory.kind).into());
    }
    let mut sections = inventory.layout.sections.iter();
    if let Some(name) = &wish.section {
        let section = sections.find(|section| section.name == *name);
        let section = section.ok_or(BestError::SectionNotFound)?;
        return match &wish.grade {
            Some(grade) if *grade != section.grade => Err(BestError::GradeNotFound),
            _ => Ok(()),
        };
    }
    match &wish.grade {
        Some(grade) if !sections.any(|section| section.grade == *grade) => {
            Err(BestError::GradeNotFound)
        }
        _ => Ok(()),
    }
}

/// Two requests with the same digest ask for the same.
fn digest(event_id: Uuid, wish: &Wish) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(event_id.as_bytes());
    hasher.update(b"best");
    hasher.update(wish.count.to_be_bytes());
    hasher.update([u8::from(wish.accessible)]);
    for name in [&wish.grade, &wish.section] {
        // Their Debug form has quotes, so that a letter cannot move from one name to the other.
        hasher.update(format!("{name:?}").as_bytes());
    }
    hasher.finalize().into()
}
