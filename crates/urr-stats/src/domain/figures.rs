//! The figures, and how they are summed up.

use std::collections::BTreeMap;

use jiff::civil::Date;
use urr_kernel::{Timestamp, Uuid};

use super::{Hour, hour_in_korea};

macro_rules! figures {
    ($($(#[$meta:meta])* $name:ident = $column:literal,)*) => {
        /// Something that is counted or summed up, by the hour and the event in which it happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Figure {
            $($(#[$meta])* $name,)*
        }

        impl Figure {
            /// The columns of the tables of figures, in order.
            pub const COLUMNS: &'static [&'static str] = &[$($column),*];
        }
    };
}

figures! {
    Created = "created",
    Confirmed = "confirmed",
    Cancelled = "cancelled",
    Expired = "expired",
    /// Reservations by what became of them until now, where they were made: each is one of
    /// completed, dropped, lapsed and pending.
    Completed = "completed",
    Dropped = "dropped",
    Lapsed = "lapsed",
    Pending = "pending",
    /// Seats and standing tickets of completed reservations, where these were made.
    PlacesSold = "places_sold",
    /// How long reservations were pending, and of how many that is known.
    HeldSeconds = "held_seconds",
    Holds = "holds",
    /// How long it took from reserving to having paid.
    PaidSeconds = "paid_seconds",
    Pays = "pays",
    /// How long it took from reserving to cancelling.
    CancelledSeconds = "cancelled_seconds",
    Cancels = "cancels",
    /// What cancellations promise to give back.
    Owed = "owed",
    Charges = "charges",
    Charged = "charged",
    Refunds = "refunds",
    Refunded = "refunded",
    /// Charges that went back because what was paid for could not be given.
    Undelivered = "undelivered",
    Transfers = "transfers",
    Transferred = "transferred",
    Memberships = "memberships",
    Registered = "registered",
    Deleted = "deleted",
}

const COUNT: usize = Figure::COLUMNS.len();

/// A value of each figure. Money is whole won in 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures([i64; COUNT]);

impl Default for Figures {
    fn default() -> Figures {
        Figures([0; COUNT])
    }
}

impl Figures {
    /// `values` in the order of the columns.
    pub fn from_values(values: &[i64]) -> Figures {
        Figures(values.try_into().expect("one value per column"))
    }

    pub fn values(&self) -> &[i64] {
        &self.0
    }

    pub fn of(&self, figure: Figure) -> i64 {
        self.0[figure as usize]
    }

    pub fn add(&mut self, figure: Figure, amount: i64) {
        self.0[figure as usize] += amount;
    }

    pub fn add_all(&mut self, other: &Figures) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0)
    }

    /// What was taken and not given back.
    pub fn revenue(&self) -> i64 {
        self.of(Figure::Charged) - self.of(Figure::Refunded)
    }
}

/// What was paid in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodFigures {
    pub charges: i64,
    pub charged: i64,
    pub refunds: i64,
    pub refunded: i64,
}

/// What facts add to the figures, or take from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub activity: BTreeMap<(Date, String), i64>,
    pub hours: BTreeMap<Hour, Figures>,
    pub events: BTreeMap<(Uuid, Date), Figures>,
    pub methods: BTreeMap<(Date, String), MethodFigures>,
    pub seats: BTreeMap<(Uuid, u32), i64>,
}

impl Sums {
    /// Adds to a figure at the hour, and of the event if it belongs to one.
    pub fn add(&mut self, at: Timestamp, event: Option<Uuid>, figure: Figure, amount: i64) {
        let hour = hour_in_korea(at);
        self.hours.entry(hour).or_default().add(figure, amount);
        if let Some(event) = event {
            self.events.entry((event, hour.day)).or_default().add(figure, amount);
        }
    }

    pub fn add_method(&mut self, at: Timestamp, method: &str, change: impl Fn(&mut MethodFigures)) {
        let key = (hour_in_korea(at).day, method.to_owned());
        change(self.methods.entry(key).or_default());
    }
}
