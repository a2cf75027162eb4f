//! The databases of a run: one per service, as in the product, in memory, with an event on sale.
//!
//! They are made once per thread. A run's changes are rolled back at its end.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Migration, Schema, SteppedDatabase};

use crate::sabotage::Sabotage;

/// The catalog is not simulated: it only has an outbox.
const CATALOG: Schema = Schema { name: "catalog", migrations: &[] };

/// A consumer that counts how often it handles each event, to see that it is once.
const WITNESS: Schema = Schema {
    name: "witness",
    migrations: &[Migration {
        series: "service",
        version: 1,
        name: "counted",
        sql: "create table counted (event_id uuid primary key, times bigint not null);",
    }],
};

pub const SEATED_EVENT: Uuid = Uuid::from_u128(0x0194_0000_0000_7000_8000_0000_0000_0001);
pub const STANDING_EVENT: Uuid = Uuid::from_u128(0x0194_0000_0000_7000_8000_0000_0000_0002);
pub const TICKET_TYPE: Uuid = Uuid::from_u128(0x0194_0000_0000_7000_8000_0000_0000_0003);
pub const ARTIST: Uuid = Uuid::from_u128(0x0194_0000_0000_7000_8000_0000_0000_0004);
pub const SEATS: u16 = 6;
pub const STANDING_TICKETS: u32 = 5;
/// How many may be in the room of the seated event.
pub const THRESHOLD: u32 = 3;
pub const HOLD_TTL: Duration = Duration::from_secs(40);

/// When every run begins.
pub fn epoch() -> Timestamp {
    "2026-12-01T12:00:00Z".parse().expect("a time")
}

/// Whose database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseName {
    Ticket,
    Payment,
    Provider,
    Queue,
    Journal,
    Stats,
    Catalog,
    Witness,
    Bus,
}

impl DatabaseName {
    pub const ALL: [DatabaseName; 9] = [
        DatabaseName::Ticket,
        DatabaseName::Payment,
        DatabaseName::Provider,
        DatabaseName::Queue,
        DatabaseName::Journal,
        DatabaseName::Stats,
        DatabaseName::Catalog,
        DatabaseName::Witness,
        DatabaseName::Bus,
    ];
    /// Those whose service publishes events.
    pub const PUBLISHING: [DatabaseName; 4] =
        [DatabaseName::Ticket, DatabaseName::Payment, DatabaseName::Queue, DatabaseName::Catalog];

    fn schema(self) -> &'static Schema {
        match self {
            DatabaseName::Ticket => &urr_ticket::SCHEMA,
            DatabaseName::Payment | DatabaseName::Provider => &urr_payment::SCHEMA,
            DatabaseName::Queue => &urr_queue::SCHEMA,
            DatabaseName::Journal => &urr_room::JOURNAL,
            DatabaseName::Stats => &urr_stats::SCHEMA,
            DatabaseName::Catalog => &CATALOG,
            DatabaseName::Witness => &WITNESS,
            DatabaseName::Bus => &urr_bus::EMBEDDED_SCHEMA,
        }
    }
}

/// The databases of one thread. Clones share them.
#[derive(Clone)]
pub struct Databases(Vec<SteppedDatabase>);

impl Databases {
    /// Empty tables, without the guard that is sabotaged.
    pub fn new(sabotage: Option<Sabotage>) -> DbResult<Databases> {
        let open = |name: &DatabaseName| SteppedDatabase::new(name.schema(), epoch());
        let all: Vec<_> = DatabaseName::ALL.iter().map(open).collect::<DbResult<_>>()?;
        let databases = Databases(all);
        if let Some((name, sql)) = sabotage.and_then(Sabotage::statement) {
            databases.get(name).alter(sql)?;
        }
        Ok(databases)
    }

    pub fn get(&self, name: DatabaseName) -> &SteppedDatabase {
        let index = DatabaseName::ALL.iter().position(|one| *one == name);
        &self.0[index.expect("all names are in the list")]
    }

    pub fn begin_run(&self) -> DbResult<()> {
        self.0.iter().try_for_each(SteppedDatabase::begin_run)
    }

    /// Keeps what was written, for the runs that follow.
    pub fn keep_run(&self) -> DbResult<()> {
        self.0.iter().try_for_each(SteppedDatabase::keep_run)
    }

    pub fn end_run(&self) {
        self.0.iter().for_each(SteppedDatabase::end_run);
    }
}
