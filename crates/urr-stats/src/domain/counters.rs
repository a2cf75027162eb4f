//! The counters and their changes.

use std::collections::BTreeMap;

use jiff::civil::Date;
use urr_kernel::{Timestamp, Uuid};

use super::{Hour, hour_in_korea};

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident = $column:literal,)*) => {
        /// A number that is counted by hour and by event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StatsCounter {
            $($(#[$meta])* $name,)*
        }

        impl StatsCounter {
            /// The columns of the tables of counters, in order.
            pub const COLUMNS: &'static [&'static str] = &[$($column),*];
        }
    };
}

counters! {
    Created = "created",
    Confirmed = "confirmed",
    Cancelled = "cancelled",
    Expired = "expired",
    /// Reservations by their state, in the hour in which they were created: each is one of
    /// completed, dropped, lapsed and pending.
    Completed = "completed",
    Dropped = "dropped",
    Lapsed = "lapsed",
    Pending = "pending",
    /// Seats and standing tickets of completed reservations, in the hour of their creation.
    PlacesSold = "places_sold",
    /// How long reservations were pending, and for how many that is known.
    HeldSeconds = "held_seconds",
    Holds = "holds",
    /// How long it took from reserving to having paid.
    PaidSeconds = "paid_seconds",
    Pays = "pays",
    /// How long it took from reserving to cancelling.
    CancelledSeconds = "cancelled_seconds",
    Cancels = "cancels",
    /// Refunds that cancellations announced.
    Owed = "owed",
    Charges = "charges",
    Charged = "charged",
    Refunds = "refunds",
    Refunded = "refunded",
    /// Charges that were refunded because what was paid could not be delivered.
    Undelivered = "undelivered",
    Transfers = "transfers",
    Transferred = "transferred",
    Memberships = "memberships",
    Registered = "registered",
    Deleted = "deleted",
}

const COUNT: usize = StatsCounter::COLUMNS.len();

/// A value of each counter. Money is whole won in 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsCounters([i64; COUNT]);

impl Default for StatsCounters {
    fn default() -> StatsCounters {
        StatsCounters([0; COUNT])
    }
}

impl StatsCounters {
    /// `values` in the order of the columns.
    pub fn from_values(values: &[i64]) -> StatsCounters {
        StatsCounters(values.try_into().expect("one value per column"))
    }

    pub fn values(&self) -> &[i64] {
        &self.0
    }

    pub fn of(&self, counter: StatsCounter) -> i64 {
        self.0[counter as usize]
    }

    pub fn add(&mut self, counter: StatsCounter, amount: i64) {
        self.0[counter as usize] += amount;
    }

    pub fn add_all(&mut self, other: &StatsCounters) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0)
    }

    /// What was charged and not refunded.
    pub fn revenue(&self) -> i64 {
        self.of(StatsCounter::Charged) - self.of(StatsCounter::Refunded)
    }
}

/// Payments by one method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodTotals {
    pub charges: i64,
    pub charged: i64,
    pub refunds: i64,
    pub refunded: i64,
}

/// What facts add to the counters or take from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterChanges {
    pub activity: BTreeMap<(Date, String), i64>,
    pub hours: BTreeMap<Hour, StatsCounters>,
    pub events: BTreeMap<(Uuid, Date), StatsCounters>,
    pub methods: BTreeMap<(Date, String), MethodTotals>,
    pub seats: BTreeMap<(Uuid, u32), i64>,
}

impl CounterChanges {
    /// Adds to a counter at the hour, and of the event if it belongs to one.
    pub fn add(&mut self, at: Timestamp, event: Option<Uuid>, counter: StatsCounter, amount: i64) {
        let hour = hour_in_korea(at);
        self.hours.entry(hour).or_default().add(counter, amount);
        if let Some(event) = event {
            self.events.entry((event, hour.day)).or_default().add(counter, amount);
        }
    }

    pub fn add_method(&mut self, at: Timestamp, method: &str, change: impl Fn(&mut MethodTotals)) {
        let key = (hour_in_korea(at).day, method.to_owned());
        change(self.methods.entry(key).or_default());
    }
}
