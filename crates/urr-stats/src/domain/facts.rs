//! Facts: what is known about each thing that is counted, and what it adds to the counters.
//!
//! A fact does not depend on the order of its messages, and a repeated message leaves it as it is.
//! Counters are sums over facts: when a fact changes, its old contribution is taken away and the new
//! one is added, each in its own rows.

use jiff::civil::Date;
use urr_contracts::internal::auth::AccountRole;
use urr_kernel::{Timestamp, Uuid, named_enum};
use urr_storage::storable_enum;

use super::{CounterChanges, seconds_between};

/// Something that is counted.
pub trait Fact: Clone {
    /// Adds its contribution to the counters; with `sign` −1 takes it away.
    fn count(&self, changes: &mut CounterChanges, sign: i64);
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserFact {
    pub id: Uuid,
    pub registered_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
    /// The role of the most recent message about it.
    pub role: AccountRole,
    pub role_at: Option<Timestamp>,
}

impl UserFact {
    pub fn new(id: Uuid) -> UserFact {
        let role = AccountRole::User;
        UserFact { id, registered_at: None, deleted_at: None, role, role_at: None }
    }

    /// Of two messages the later one counts, in whatever order they come.
    pub fn set_role(&mut self, role: AccountRole, at: Timestamp) {
        if self.role_at.is_none_or(|known| known <= at) {
            (self.role, self.role_at) = (role, Some(at));
        }
    }
}

/// A message that was counted as activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedMessage {
    pub id: Uuid,
    pub day: Date,
    pub event_type: String,
}

/// A reservation from its hold to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationFact {
    pub id: Uuid,
    pub terms: ReservationTerms,
    pub created_at: Option<Timestamp>,
    pub hold_ends_at: Option<Timestamp>,
    pub confirmed_at: Option<Timestamp>,
    pub cancelled_at: Option<Timestamp>,
    pub expired_at: Option<Timestamp>,
    /// The refund that its cancellation announced.
    pub refund_amount: i64,
}

/// The contents of a reservation, from its most recent message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationTerms {
    /// Created, changed, confirmed or expired, partly cancelled, cancelled. Of two partly cancelled
    /// ones, the one with fewer tickets is later.
    pub rank: u8,
    pub at: Timestamp,
    pub message_id: Uuid,
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub amount: i64,
    pub quantity: i64,
    pub seat_ids: Vec<u32>,
}

/// The state of a reservation as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationState {
    Pending,
    Confirmed,
    Cancelled,
    Expired,
}

named_enum!(ReservationState {
    Pending => "pending",
    Confirmed => "confirmed",
    Cancelled => "cancelled",
    Expired => "expired",
});

/// Keeps the earliest time of something that happens once, because it may be announced again.
/// Returns whether that is `at`.
pub fn keep_earliest(earliest: &mut Option<Timestamp>, at: Timestamp) -> bool {
    let is_first = earliest.is_none_or(|earliest| at <= earliest);
    if is_first {
        *earliest = Some(at);
    }
    is_first
}

impl ReservationFact {
    pub fn new(id: Uuid, terms: ReservationTerms) -> ReservationFact {
        ReservationFact {
            id,
            terms,
            created_at: None,
            hold_ends_at: None,
            confirmed_at: None,
            cancelled_at: None,
            expired_at: None,
            refund_amount: 0,
        }
    }

    /// Takes the terms of a later message. A repeated early one changes nothing.
    pub fn update_terms(&mut self, terms: ReservationTerms) {
        let order = |terms: &ReservationTerms| (terms.rank, terms.at, terms.message_id);
        if order(&terms) >= order(&self.terms) {
            self.terms = terms;
        }
    }

    pub fn state(&self) -> ReservationState {
        if self.cancelled_at.is_some() {
            ReservationState::Cancelled
        } else if self.confirmed_at.is_some() {
            ReservationState::Confirmed
        } else if self.expired_at.is_some() {
            ReservationState::Expired
        } else {
            ReservationState::Pending
        }
    }

    fn ended_at(&self) -> Option<Timestamp> {
        [self.confirmed_at, self.cancelled_at, self.expired_at].into_iter().flatten().min()
    }

    /// When it was created, or the earliest known time.
    fn began_at(&self) -> Timestamp {
        self.created_at.or(self.ended_at()).unwrap_or(self.terms.at)
    }
}

impl Fact for ReservationFact {
    fn count(&self, changes: &mut CounterChanges, sign: i64) {
        let event = Some(self.terms.event_id);
        // Seconds from the creation; none if one of the two is not known.
        let lasted = |end: Option<Timestamp>| Some(sign * seconds_between(self.created_at?, end?));
        if let Some(at) = self.created_at {
            changes.at(at, event, |counters| counters.created += sign);
        }
        if let Some(at) = self.confirmed_at {
            let paid = lasted(Some(at));
            changes.at(at, event, |counters| {
                counters.confirmed += sign;
                counters.paid_seconds += paid.unwrap_or(0);
                counters.pays += paid.map_or(0, |_| sign);
            });
        }
        if let Some(at) = self.cancelled_at {
            let kept = lasted(Some(at));
            changes.at(at, event, |counters| {
                counters.cancelled += sign;
                counters.owed += sign * self.refund_amount;
                counters.cancelled_seconds += kept.unwrap_or(0);
                counters.cancels += kept.map_or(0, |_| sign);
            });
        }
        if let Some(at) = self.expired_at {
            changes.at(at, event, |counters| counters.expired += sign);
        }
        if let (Some(at), Some(held)) = (self.ended_at(), lasted(self.ended_at())) {
            changes.at(at, event, |counters| {
                counters.held_seconds += held;
                counters.holds += sign;
            });
        }
        changes.at(self.began_at(), event, |counters| match self.state() {
            ReservationState::Pending => counters.pending += sign,
            ReservationState::Cancelled => counters.dropped += sign,
            ReservationState::Expired => counters.lapsed += sign,
            ReservationState::Confirmed => {
                counters.completed += sign;
                counters.places_sold += sign * self.terms.quantity;
            }
        });
        if self.state() == ReservationState::Confirmed {
            for seat in &self.terms.seat_ids {
                *changes.seats.entry((self.terms.event_id, *seat)).or_default() += sign;
            }
        }
    }
}

impl Fact for UserFact {
    fn count(&self, changes: &mut CounterChanges, sign: i64) {
        if let Some(at) = self.registered_at {
            changes.at(at, None, |counters| counters.registered += sign);
        }
        if let Some(at) = self.deleted_at {
            changes.at(at, None, |counters| counters.deleted += sign);
        }
    }
}

impl Fact for CountedMessage {
    fn count(&self, changes: &mut CounterChanges, sign: i64) {
        *changes.activity.entry((self.day, self.event_type.clone())).or_default() += sign;
    }
}

/// Transactions are counted by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    Charge,
    Refund,
    Transfer,
    Membership,
    /// Some tickets of a reservation were cancelled.
    PartCancellation,
}

storable_enum!(TransactionKind {
    Charge => "charge",
    Refund => "refund",
    Transfer => "transfer",
    Membership => "membership",
    PartCancellation => "part_cancellation",
});

/// Something that happens once and is never undone: a refund is a transaction of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub kind: TransactionKind,
    pub id: Uuid,
    pub at: Timestamp,
    pub user_id: Option<Uuid>,
    pub event_id: Option<Uuid>,
    pub amount: i64,
    pub method: String,
    pub cause: String,
}

impl Transaction {
    pub fn new(kind: TransactionKind, id: Uuid, at: Timestamp) -> Transaction {
        Transaction {
            kind,
            id,
            at,
            user_id: None,
            event_id: None,
            amount: 0,
            method: String::new(),
            cause: String::new(),
        }
    }

    /// A refund that nobody asked for: what was paid could not be delivered.
    fn is_undelivered(&self) -> bool {
        self.kind == TransactionKind::Refund
            && !["cancelled", "partly_cancelled", "goodwill"].contains(&self.cause.as_str())
    }
}

impl Fact for Transaction {
    fn count(&self, changes: &mut CounterChanges, sign: i64) {
        let amount = sign * self.amount;
        changes.at(self.at, self.event_id, |counters| match self.kind {
            TransactionKind::Charge => {
                counters.charges += sign;
                counters.charged += amount;
            }
            // The cancellation fee may be everything: then nothing is refunded.
            TransactionKind::Refund if self.amount == 0 => {}
            TransactionKind::Refund => {
                counters.refunds += sign;
                counters.refunded += amount;
                counters.undelivered += if self.is_undelivered() { sign } else { 0 };
            }
            TransactionKind::Transfer => {
                counters.transfers += sign;
                counters.transferred += amount;
            }
            TransactionKind::Membership => counters.memberships += sign,
            TransactionKind::PartCancellation => counters.owed += amount,
        });
        match self.kind {
            TransactionKind::Charge => {
                let totals = changes.method(self.at, &self.method);
                totals.charges += sign;
                totals.charged += amount;
            }
            TransactionKind::Refund if self.amount > 0 => {
                let totals = changes.method(self.at, &self.method);
                totals.refunds += sign;
                totals.refunded += amount;
            }
            _ => {}
        }
    }
}
