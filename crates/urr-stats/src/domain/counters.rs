//! The counters and their changes.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use jiff::civil::Date;
use urr_kernel::{Timestamp, Uuid};

use super::{Hour, hour_in_korea};

/// Defines a row of counters: each field is a column of the same name.
macro_rules! counters {
    ($(#[$outer:meta])* $type:ident { $($(#[$meta:meta])* $name:ident,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $type {
            $($(#[$meta])* pub $name: i64,)*
        }

        impl $type {
            pub const COLUMNS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// `column` gives the value of each column.
            pub fn read<E>(column: impl Fn(&str) -> Result<i64, E>) -> Result<$type, E> {
                Ok($type { $($name: column(stringify!($name))?,)* })
            }

            /// In the order of the columns.
            pub fn values(&self) -> [i64; $type::COLUMNS.len()] {
                [$(self.$name),*]
            }
        }

        impl AddAssign<&$type> for $type {
            fn add_assign(&mut self, other: &$type) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// What is counted by hour and by event. Money is whole won in 64 bits.
    StatsCounters {
        created,
        confirmed,
        cancelled,
        expired,
        /// Reservations by their state, in the hour in which they were created: each is one of
        /// completed, dropped, lapsed and pending.
        completed,
        dropped,
        lapsed,
        pending,
        /// Seats and standing tickets of completed reservations, in the hour of their creation.
        places_sold,
        /// How long reservations were pending, and for how many that is known.
        held_seconds,
        holds,
        /// How long it took from reserving to having paid.
        paid_seconds,
        pays,
        /// How long it took from reserving to cancelling.
        cancelled_seconds,
        cancels,
        /// Refunds that cancellations announced.
        owed,
        charges,
        charged,
        refunds,
        refunded,
        /// Charges that were refunded because what was paid could not be delivered.
        undelivered,
        transfers,
        transferred,
        memberships,
        registered,
        deleted,
    }
}

counters! {
    /// Payments by one method.
    MethodTotals { charges, charged, refunds, refunded, }
}

impl StatsCounters {
    /// What was charged and not refunded.
    pub fn revenue(&self) -> i64 {
        self.charged - self.refunded
    }

    /// The average charge.
    pub fn charge_average(&self) -> i64 {
        super::average(self.charged, self.charges)
    }

    /// Accounts that are open.
    pub fn users(&self) -> i64 {
        self.registered - self.deleted
    }

    /// All reservations that were created, whatever their state.
    pub fn started(&self) -> i64 {
        self.completed + self.dropped + self.lapsed + self.pending
    }
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
    /// Changes the counters of the hour, and of the event if it belongs to one.
    pub fn at(&mut self, at: Timestamp, event: Option<Uuid>, change: impl Fn(&mut StatsCounters)) {
        let hour = hour_in_korea(at);
        change(self.hours.entry(hour).or_default());
        if let Some(event) = event {
            change(self.events.entry((event, hour.day)).or_default());
        }
    }

    pub fn method(&mut self, at: Timestamp, method: &str) -> &mut MethodTotals {
        self.methods.entry((hour_in_korea(at).day, method.to_owned())).or_default()
    }
}
