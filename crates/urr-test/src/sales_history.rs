//! Past sales: fills the tables of the ticket, payment and statistics services with many reservations
//! that agree with each other, so that what grows with them can be measured.
//!
//! Of ten reservations of a seat each, eight are confirmed, one was cancelled and refunded in full and
//! one has expired. Every event was sold in an hour of a day of its own.

mod payments;
mod statistics;
mod tickets;

use urr_kernel::Timestamp;
use urr_storage::{Db, DbResult, Tx, params};

/// What a ticket costs.
pub const PRICE: i64 = 100_000;
/// From the hold to the payment, to the cancellation, and to the end of a hold, in seconds.
const PAID_AFTER: i64 = 20;
const CANCELLED_AFTER: i64 = 40;
const EXPIRED_AFTER: i64 = 300;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 24 * 60 * 60 * MICROS_PER_SECOND;
/// Noon in Korea on the day of the first event: 2022-01-01T03:00:00Z.
const FIRST_SALE_MICROS: i64 = 1_641_006_000 * MICROS_PER_SECOND;
/// The days until today.
const EVENTS_MAX: u32 = 1_700;

/// Events `first_event..last_event`, each with so many seats and reservations.
#[derive(Clone, Copy, Debug)]
pub struct SalesHistory {
    pub first_event: u32,
    pub last_event: u32,
    /// Divisible by ten.
    pub seats_per_event: u32,
}

impl SalesHistory {
    pub fn reservations(&self) -> u64 {
        u64::from(self.last_event - self.first_event) * u64::from(self.seats_per_event)
    }

    /// Writes the rows of the ticket service.
    pub async fn fill_tickets(&self, db: &Db) -> DbResult<()> {
        self.fill(db, tickets::fill).await
    }

    /// Writes the rows of the payment service and of its sandbox.
    pub async fn fill_payments(&self, db: &Db) -> DbResult<()> {
        self.fill(db, payments::fill).await
    }

    /// Writes facts and counters.
    pub async fn fill_statistics(&self, db: &Db) -> DbResult<()> {
        self.fill(db, statistics::fill).await
    }

    async fn fill(
        &self,
        db: &Db,
        write: fn(&mut Tx<'_>, &PastSale) -> DbResult<()>,
    ) -> DbResult<()> {
        assert!(self.last_event <= EVENTS_MAX, "events take place before today");
        assert!(self.seats_per_event.is_multiple_of(10), "the shares are tenths");
        for event in self.first_event..self.last_event {
            let seats = self.seats_per_event;
            db.write(move |tx| {
                let sale = PastSale { event: event.into(), seats: seats.into(), sql: Sql::of(tx) };
                write(tx, &sale)
            })
            .await?;
        }
        Ok(())
    }
}

/// One event, and how its rows are written on this engine.
struct PastSale {
    event: i64,
    seats: i64,
    sql: Sql,
}

impl PastSale {
    /// When its first reservation was made, in microseconds.
    fn begins_micros(&self) -> i64 {
        FIRST_SALE_MICROS + self.event * MICROS_PER_DAY
    }

    /// The day in Korea, as statistics write it.
    fn day(&self) -> String {
        let begins = Timestamp::from_microsecond(self.begins_micros());
        let begins = begins.expect("the events are in this century");
        begins.to_string().chars().take("2022-01-01".len()).collect()
    }

    /// A tenth of the reservations.
    fn tenth(&self) -> i64 {
        self.seats / 10
    }

    /// Inserts the rows of a select over `r`: a row for each reservation with its number in the sale
    /// `n`, its number `x` among all, the time `t` of its hold in microseconds, the event `e`, and
    /// `share`: 0 was cancelled, 1 has expired, others are confirmed.
    fn insert(&self, tx: &mut Tx<'_>, into: &str, select: &str) -> DbResult<()> {
        let sql = format!(
            "insert into {into} with recursive numbers (n) as (select 0::bigint union all \
             select n + 1 from numbers where n + 1 < $1::bigint), \
             r as (select n, $2::bigint * $1::bigint + n as x, $3::bigint + n * 1000 as t, \
             $2::bigint as e, n % 10 as share from numbers) {select}"
        );
        tx.execute(&sql, params![self.seats, self.event, self.begins_micros()])?;
        Ok(())
    }
}

/// The kinds of ids, so that those of one kind differ from those of another.
#[derive(Clone, Copy)]
enum IdKind {
    Event = 1,
    User,
    Reservation,
    Ticket,
    Payment,
    Refund,
    Entry,
    Message,
    Call,
}

/// What both engines write differently.
#[derive(Clone, Copy)]
struct Sql {
    is_postgres: bool,
}

impl Sql {
    fn of(tx: &Tx<'_>) -> Sql {
        Sql { is_postgres: tx.is_postgres() }
    }

    /// The id of what a reservation has, by its number: it begins with the time, as ids do.
    fn id(self, kind: IdKind, number: &str) -> String {
        self.id_at(kind, "t", number)
    }

    fn id_at(self, kind: IdKind, micros: &str, number: &str) -> String {
        let kind = kind as u8;
        match self.is_postgres {
            true => format!(
                "(lpad(to_hex(({micros}) / 1000), 12, '0') || '{kind:x}' || \
                 lpad(to_hex({number}), 19, '0'))::uuid"
            ),
            false => {
                format!("unhex(printf('%012x{kind:x}%019x', ({micros}) / 1000, {number}))")
            }
        }
    }

    /// The event, in rows of its reservations.
    fn event(self) -> String {
        self.id_at(IdKind::Event, "0", "e")
    }

    /// A fan of a million, in no order.
    fn user(self) -> String {
        self.id_at(IdKind::User, "0", "x * 2654435761 % 1000003")
    }

    /// A moment by its microseconds.
    fn time(self, micros: &str) -> String {
        match self.is_postgres {
            true => format!("('epoch'::timestamptz + ({micros}) * interval '1 microsecond')"),
            false => format!("({micros})"),
        }
    }

    /// So many seconds after the hold.
    fn after(self, seconds: i64) -> String {
        self.time(&format!("t + {}", seconds * MICROS_PER_SECOND))
    }
}
