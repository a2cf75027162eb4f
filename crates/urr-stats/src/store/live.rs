//! Reads the money of one sale, for its live board.

use std::time::Duration;

use urr_contracts::events::queue::QueueObserved;
use urr_contracts::internal::stats::{RoomFigures, SaleTotals};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{DbResult, Row, Tx, params};

/// The most recent ones of a history. A sale of fifty thousand seats has half as many.
const TRANSACTIONS_MAX: u32 = 100_000;
/// A board shows a day.
const MINUTES_KEPT: Duration = Duration::from_hours(48);

/// What was counted of an event since it exists.
pub fn sale_totals(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<SaleTotals> {
    tx.query_one(
        "select coalesce(sum(charges), 0)::bigint as charges, \
         coalesce(sum(charged), 0)::bigint as charged, \
         coalesce(sum(refunds), 0)::bigint as refunds, \
         coalesce(sum(refunded), 0)::bigint as refunded \
         from event_counters where event_id = $1",
        params![event_id],
        |row| {
            Ok(SaleTotals {
                charges: row.get("charges")?,
                charged: Won::new(row.get("charged")?),
                refunds: row.get("refunds")?,
                refunded: Won::new(row.get("refunded")?),
            })
        },
    )
}

/// The charges and refunds of an event since a time, each as the money that it moved, oldest first.
pub fn sale_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    since: Timestamp,
) -> DbResult<Vec<(Timestamp, SaleTotals)>> {
    let sql = "select kind, happened_at, amount from transactions \
               where event_id = $1 and happened_at >= $2 and kind in ('charge', 'refund') \
               and amount > 0 order by happened_at desc limit $3";
    let mut sales = tx.query(sql, params![event_id, since, TRANSACTIONS_MAX], sale_read)?;
    sales.reverse();
    Ok(sales)
}

fn sale_read(row: &Row<'_>) -> DbResult<(Timestamp, SaleTotals)> {
    let (kind, amount): (String, i64) = (row.get("kind")?, row.get("amount")?);
    let (nothing, amount) = (SaleTotals::default(), Won::new(amount));
    let moved = match kind.as_str() {
        "charge" => SaleTotals { charges: 1, charged: amount, ..nothing },
        _ => SaleTotals { refunds: 1, refunded: amount, ..nothing },
    };
    Ok((row.get("happened_at")?, moved))
}

/// Notes a room at a minute, and forgets its minutes of long ago.
pub fn queue_minute_insert(
    tx: &mut Tx<'_>,
    minute: Timestamp,
    observed: &QueueObserved,
) -> DbResult<()> {
    let number = |total: u64| i64::try_from(total).unwrap_or(i64::MAX);
    tx.execute(
        "insert into queue_minutes (event_id, minute, waiting, inside, joined_total, \
         admitted_total, left_total) values ($1, $2, $3, $4, $5, $6, $7) \
         on conflict (event_id, minute) do nothing",
        params![
            observed.event_id,
            minute,
            i64::from(observed.waiting),
            i64::from(observed.inside),
            number(observed.joined_total),
            number(observed.admitted_total),
            number(observed.left_total)
        ],
    )?;
    let sql = "delete from queue_minutes where event_id = $1 and minute < $2";
    tx.execute(sql, params![observed.event_id, minute - MINUTES_KEPT])?;
    Ok(())
}

/// The minutes of a room since a time, oldest first.
pub fn queue_minute_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    since: Timestamp,
) -> DbResult<Vec<(Timestamp, RoomFigures)>> {
    let sql = "select minute, waiting, inside, joined_total, admitted_total, left_total \
               from queue_minutes where event_id = $1 and minute >= $2 order by minute";
    tx.query(sql, params![event_id, since], |row| {
        let total = |column| row.get::<i64>(column).map(i64::unsigned_abs);
        let people = |column| Ok(u32::try_from(total(column)?).unwrap_or(u32::MAX));
        let room = RoomFigures {
            waiting: people("waiting")?,
            inside: people("inside")?,
            joined_total: total("joined_total")?,
            admitted_total: total("admitted_total")?,
            left_total: total("left_total")?,
        };
        Ok((row.get("minute")?, room))
    })
}
