//! What is known of the things that are counted, and what each of them adds to the figures.
//!
//! A fact is the same whatever the order in which its messages came, and a message that comes again
//! leaves it as it is. The figures are a sum over facts: a fact that changes takes away what it had
//! added and adds what it is now, in the rows where that belongs.

use jiff::civil::Date;
use urr_kernel::{Timestamp, Uuid};

use super::{Figure, Sums, seconds_between};

/// Someone with an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: Uuid,
    pub registered_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
}

/// A message that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub id: Uuid,
    pub day: Date,
    pub event_type: String,
}

/// A reservation from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub id: Uuid,
    pub terms: Terms,
    pub created_at: Option<Timestamp>,
    pub hold_ends_at: Option<Timestamp>,
    pub confirmed_at: Option<Timestamp>,
    pub cancelled_at: Option<Timestamp>,
    pub expired_at: Option<Timestamp>,
    /// What its cancellation promises to give back.
    pub refund_amount: i64,
}

/// What a reservation is about, by the message that knows best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How much the message knows: a hold can change until it ends.
    pub rank: u8,
    pub at: Timestamp,
    pub message_id: Uuid,
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub amount: i64,
    pub quantity: i64,
    pub seat_ids: Vec<u32>,
}

/// What became of a reservation until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending,
    Confirmed,
    Cancelled,
    Expired,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Confirmed => "confirmed",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
        }
    }
}

/// Takes the time of a message that tells what happens once: of copies the earliest counts.
/// `true`: it is this one.
pub fn note_once(known: &mut Option<Timestamp>, at: Timestamp) -> bool {
    let is_first = known.is_none_or(|known| at <= known);
    if is_first {
        *known = Some(at);
    }
    is_first
}

impl Reservation {
    pub fn new(id: Uuid, terms: Terms) -> Reservation {
        Reservation {
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

    /// Later messages know better. A copy of an early one, published again, does not.
    pub fn note_terms(&mut self, terms: Terms) {
        let weight = |terms: &Terms| (terms.rank, terms.at, terms.message_id);
        if weight(&terms) >= weight(&self.terms) {
            self.terms = terms;
        }
    }

    pub fn state(&self) -> State {
        if self.cancelled_at.is_some() {
            State::Cancelled
        } else if self.confirmed_at.is_some() {
            State::Confirmed
        } else if self.expired_at.is_some() {
            State::Expired
        } else {
            State::Pending
        }
    }

    fn ended_at(&self) -> Option<Timestamp> {
        [self.confirmed_at, self.cancelled_at, self.expired_at].into_iter().flatten().min()
    }

    /// When it was made, or the earliest that is known of it.
    fn began_at(&self) -> Timestamp {
        self.created_at.or(self.ended_at()).unwrap_or(self.terms.at)
    }

    /// Adds what it counts for; with `sign` −1 takes it away.
    pub fn count(&self, sums: &mut Sums, sign: i64) {
        let event = Some(self.terms.event_id);
        let mut add = |at, figure, amount: i64| sums.add(at, event, figure, sign * amount);
        let flow = [
            (self.created_at, Figure::Created),
            (self.confirmed_at, Figure::Confirmed),
            (self.cancelled_at, Figure::Cancelled),
            (self.expired_at, Figure::Expired),
        ];
        for (at, figure) in flow {
            at.into_iter().for_each(|at| add(at, figure, 1));
        }
        if let Some(at) = self.cancelled_at {
            add(at, Figure::Owed, self.refund_amount);
        }
        let spans = [
            (self.ended_at(), Figure::HeldSeconds, Figure::Holds),
            (self.confirmed_at, Figure::PaidSeconds, Figure::Pays),
            (self.cancelled_at, Figure::CancelledSeconds, Figure::Cancels),
        ];
        for (end, seconds, spans) in spans {
            if let (Some(start), Some(end)) = (self.created_at, end) {
                add(end, seconds, seconds_between(start, end));
                add(end, spans, 1);
            }
        }
        let outcome = match self.state() {
            State::Pending => Figure::Pending,
            State::Confirmed => Figure::Completed,
            State::Cancelled => Figure::Dropped,
            State::Expired => Figure::Lapsed,
        };
        add(self.began_at(), outcome, 1);
        if self.state() == State::Confirmed {
            add(self.began_at(), Figure::PlacesSold, self.terms.quantity);
            for seat in &self.terms.seat_ids {
                *sums.seats.entry((self.terms.event_id, *seat)).or_default() += sign;
            }
        }
    }
}

impl User {
    pub fn count(&self, sums: &mut Sums, sign: i64) {
        if let Some(at) = self.registered_at {
            sums.add(at, None, Figure::Registered, sign);
        }
        if let Some(at) = self.deleted_at {
            sums.add(at, None, Figure::Deleted, sign);
        }
    }
}

impl Heard {
    pub fn count(&self, sums: &mut Sums, sign: i64) {
        *sums.activity.entry((self.day, self.event_type.clone())).or_default() += sign;
    }
}

/// The kinds of what happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeedKind {
    Charge,
    Refund,
    Transfer,
    Membership,
}

impl DeedKind {
    pub const ALL: [DeedKind; 4] =
        [DeedKind::Charge, DeedKind::Refund, DeedKind::Transfer, DeedKind::Membership];

    pub fn name(self) -> &'static str {
        match self {
            DeedKind::Charge => "charge",
            DeedKind::Refund => "refund",
            DeedKind::Transfer => "transfer",
            DeedKind::Membership => "membership",
        }
    }
}

/// What happens once and is never undone: what undoes it is another deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    pub kind: DeedKind,
    pub id: Uuid,
    pub at: Timestamp,
    pub user_id: Option<Uuid>,
    pub event_id: Option<Uuid>,
    pub amount: i64,
    pub method: String,
    pub cause: String,
}

impl Deed {
    /// Money went back although nobody had asked for it: what it was paid for could not be given.
    fn is_undelivered(&self) -> bool {
        self.kind == DeedKind::Refund && self.cause != "cancelled" && self.cause != "goodwill"
    }

    pub fn count(&self, sums: &mut Sums, sign: i64) {
        let amount = sign * self.amount;
        let mut add = |figure, amount| sums.add(self.at, self.event_id, figure, amount);
        match self.kind {
            DeedKind::Charge => {
                add(Figure::Charges, sign);
                add(Figure::Charged, amount);
                sums.add_method(self.at, &self.method, |method| {
                    method.charges += sign;
                    method.charged += amount;
                });
            }
            // The policy may keep everything: then nothing goes back.
            DeedKind::Refund if self.amount == 0 => {}
            DeedKind::Refund => {
                add(Figure::Refunds, sign);
                add(Figure::Refunded, amount);
                if self.is_undelivered() {
                    add(Figure::Undelivered, sign);
                }
                sums.add_method(self.at, &self.method, |method| {
                    method.refunds += sign;
                    method.refunded += amount;
                });
            }
            DeedKind::Transfer => {
                add(Figure::Transfers, sign);
                add(Figure::Transferred, amount);
            }
            DeedKind::Membership => add(Figure::Memberships, sign),
        }
    }
}
