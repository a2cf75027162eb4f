//! Writes counters, and how far a rebuild of them has come.

use std::fmt::Write;
use std::sync::LazyLock;

use urr_kernel::Uuid;
use urr_storage::{StorageError, ToValue, Tx, Value, params};

use crate::domain::{CounterChanges, StatsCounter, StatsCounters};
use crate::rebuild::RebuildProgress;

/// Reads how far counting has come, without a lock.
pub fn progress_find(tx: &mut Tx<'_>) -> Result<RebuildProgress, StorageError> {
    let sql = "select stage, after_id from rebuild where id = 1";
    let found = tx.query_opt(sql, &[], |row| {
        Ok(RebuildProgress { stage: row.get("stage")?, after: row.get("after_id")? })
    })?;
    Ok(found.unwrap_or(RebuildProgress::DONE))
}

/// Locks the only row of its table until the transaction ends: one transaction counts at a time.
pub fn progress_lock(tx: &mut Tx<'_>) -> Result<RebuildProgress, StorageError> {
    let sql = "update rebuild set id = 1 where id = 1 returning stage, after_id";
    let found = tx.query_opt(sql, &[], |row| {
        Ok(RebuildProgress { stage: row.get("stage")?, after: row.get("after_id")? })
    })?;
    if let Some(progress) = found {
        return Ok(progress);
    }
    // If two transactions come first at once, one waits here for the other.
    tx.execute(
        "insert into rebuild (id, stage, after_id) values (1, $1, $2) \
         on conflict (id) do update set id = 1",
        params![RebuildProgress::DONE.stage, RebuildProgress::DONE.after],
    )?;
    Ok(RebuildProgress::DONE)
}

pub fn progress_write(tx: &mut Tx<'_>, progress: &RebuildProgress) -> Result<(), StorageError> {
    let sql = "update rebuild set stage = $1, after_id = $2 where id = 1";
    tx.execute(sql, params![progress.stage, progress.after])?;
    Ok(())
}

/// Deletes all counters. The facts stay.
pub fn counters_delete(tx: &mut Tx<'_>) -> Result<(), StorageError> {
    for table in ["activity", "hour_counters", "event_counters", "method_totals", "sold_seats"] {
        tx.execute(&format!("delete from {table}"), &[])?;
    }
    Ok(())
}

/// Applies changes to the counters. Rows that become zero are deleted, so that the stored rows depend
/// on the facts alone and not on the order in which they came.
pub fn counters_apply(tx: &mut Tx<'_>, changes: &CounterChanges) -> Result<(), StorageError> {
    for ((day, event_type), total) in changes.activity.iter().filter(|(_, total)| **total != 0) {
        tx.execute(
            "insert into activity (day, event_type, total) values ($1, $2, $3) \
             on conflict (day, event_type) do update set total = activity.total + excluded.total",
            params![day.to_string(), event_type, total],
        )?;
    }
    for (hour, counters) in &changes.hours {
        let day = hour.day.to_string();
        counters_add(tx, &HOURS, params![day, hour.hour], counters)?;
    }
    for ((event_id, day), counters) in &changes.events {
        counters_add(tx, &EVENTS, params![event_id, day.to_string()], counters)?;
    }
    method_totals_apply(tx, changes)?;
    for ((event_id, seat_id), sold) in changes.seats.iter().filter(|(_, sold)| **sold != 0) {
        sold_seat_add(tx, *event_id, *seat_id, *sold)?;
    }
    Ok(())
}

/// The statements on a table of counters with a key of two columns.
struct CounterTable {
    add: String,
    drop_zero: String,
}

static HOURS: LazyLock<CounterTable> = LazyLock::new(|| table("hour_counters", ["day", "hour"]));
static EVENTS: LazyLock<CounterTable> =
    LazyLock::new(|| table("event_counters", ["event_id", "day"]));

fn table(name: &str, key: [&str; 2]) -> CounterTable {
    let (mut columns, mut values, mut sets) = (String::new(), String::new(), String::new());
    let mut zeros = String::new();
    for (index, column) in StatsCounter::COLUMNS.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let written = write!(columns, ", {column}")
            .and_then(|()| write!(values, ", ${}", index + 3))
            .and_then(|()| write!(sets, "{comma}{column} = {name}.{column} + excluded.{column}"))
            .and_then(|()| write!(zeros, " and {column} = 0"));
        written.expect("writing to a text does not fail");
    }
    let [first, second] = key;
    CounterTable {
        add: format!(
            "insert into {name} ({first}, {second}{columns}) values ($1, $2{values}) \
             on conflict ({first}, {second}) do update set {sets}"
        ),
        drop_zero: format!("delete from {name} where {first} = $1 and {second} = $2{zeros}"),
    }
}

fn counters_add(
    tx: &mut Tx<'_>,
    table: &CounterTable,
    key: &[Value<'_>],
    counters: &StatsCounters,
) -> Result<(), StorageError> {
    if counters.is_zero() {
        return Ok(());
    }
    let values = counters.values().iter().map(ToValue::to_value);
    let all: Vec<Value<'_>> = key.iter().cloned().chain(values).collect();
    tx.execute(&table.add, &all)?;
    if counters.values().iter().any(|value| *value < 0) {
        tx.execute(&table.drop_zero, key)?;
    }
    Ok(())
}

fn method_totals_apply(tx: &mut Tx<'_>, changes: &CounterChanges) -> Result<(), StorageError> {
    for ((day, method), sum) in &changes.methods {
        let day = day.to_string();
        tx.execute(
            "insert into method_totals (day, method, charges, charged, refunds, refunded) \
             values ($1, $2, $3, $4, $5, $6) on conflict (day, method) do update set \
             charges = method_totals.charges + excluded.charges, \
             charged = method_totals.charged + excluded.charged, \
             refunds = method_totals.refunds + excluded.refunds, \
             refunded = method_totals.refunded + excluded.refunded",
            params![day, method, sum.charges, sum.charged, sum.refunds, sum.refunded],
        )?;
        tx.execute(
            "delete from method_totals where day = $1 and method = $2 \
             and charges = 0 and charged = 0 and refunds = 0 and refunded = 0",
            params![day, method],
        )?;
    }
    Ok(())
}

fn sold_seat_add(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    seat_id: u32,
    sold: i64,
) -> Result<(), StorageError> {
    tx.execute(
        "insert into sold_seats (event_id, seat_id, sold) values ($1, $2, $3) \
         on conflict (event_id, seat_id) do update set sold = sold_seats.sold + excluded.sold",
        params![event_id, seat_id, sold],
    )?;
    if sold < 0 {
        tx.execute(
            "delete from sold_seats where event_id = $1 and seat_id = $2 and sold = 0",
            params![event_id, seat_id],
        )?;
    }
    Ok(())
}
