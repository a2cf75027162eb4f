//! The figures: sums added to, thrown away, and how far counting them again has come.

use std::fmt::Write;
use std::sync::LazyLock;

use urr_kernel::Uuid;
use urr_storage::{StorageError, ToValue, Tx, Value, params};

use crate::domain::{Figure, Figures, Sums};
use crate::rebuild::Progress;

/// How far counting has come, for whoever only looks.
pub fn progress_find(tx: &mut Tx<'_>) -> Result<Progress, StorageError> {
    let sql = "select stage, after_id from rebuild where id = 1";
    let found = tx.query_opt(sql, &[], |row| {
        Ok(Progress { stage: row.get("stage")?, after: row.get("after_id")? })
    })?;
    Ok(found.unwrap_or(Progress::DONE))
}

/// Locks the only row of its table until the transaction ends: who counts is alone.
pub fn progress_lock(tx: &mut Tx<'_>) -> Result<Progress, StorageError> {
    let sql = "update rebuild set id = 1 where id = 1 returning stage, after_id";
    let found = tx.query_opt(sql, &[], |row| {
        Ok(Progress { stage: row.get("stage")?, after: row.get("after_id")? })
    })?;
    if let Some(progress) = found {
        return Ok(progress);
    }
    // Two who come first at once: one waits here for the other.
    tx.execute(
        "insert into rebuild (id, stage, after_id) values (1, $1, $2) \
         on conflict (id) do update set id = 1",
        params![Progress::DONE.stage, Progress::DONE.after],
    )?;
    Ok(Progress::DONE)
}

pub fn progress_write(tx: &mut Tx<'_>, progress: &Progress) -> Result<(), StorageError> {
    let sql = "update rebuild set stage = $1, after_id = $2 where id = 1";
    tx.execute(sql, params![progress.stage, progress.after])?;
    Ok(())
}

/// Throws all figures away. The facts stay.
pub fn figures_clear(tx: &mut Tx<'_>) -> Result<(), StorageError> {
    for table in ["activity", "hour_figures", "event_figures", "method_figures", "sold_seats"] {
        tx.execute(&format!("delete from {table}"), &[])?;
    }
    Ok(())
}

/// Adds sums to the figures. Rows in which nothing is left go, so that what is stored depends on
/// the facts alone and not on how they came to be known.
pub fn sums_apply(tx: &mut Tx<'_>, sums: &Sums) -> Result<(), StorageError> {
    for ((day, event_type), total) in sums.activity.iter().filter(|(_, total)| **total != 0) {
        tx.execute(
            "insert into activity (day, event_type, total) values ($1, $2, $3) \
             on conflict (day, event_type) do update set total = activity.total + excluded.total",
            params![day.to_string(), event_type, total],
        )?;
    }
    for (hour, figures) in &sums.hours {
        let day = hour.day.to_string();
        figures_add(tx, &HOURS, params![day, hour.hour], figures)?;
    }
    for ((event_id, day), figures) in &sums.events {
        figures_add(tx, &EVENTS, params![event_id, day.to_string()], figures)?;
    }
    methods_apply(tx, sums)?;
    for ((event_id, seat_id), sold) in sums.seats.iter().filter(|(_, sold)| **sold != 0) {
        seat_add(tx, *event_id, *seat_id, *sold)?;
    }
    Ok(())
}

/// The statements on a table of figures with a key of two columns.
struct Table {
    add: String,
    drop_zero: String,
}

static HOURS: LazyLock<Table> = LazyLock::new(|| table("hour_figures", ["day", "hour"]));
static EVENTS: LazyLock<Table> = LazyLock::new(|| table("event_figures", ["event_id", "day"]));

fn table(name: &str, key: [&str; 2]) -> Table {
    let (mut columns, mut values, mut sets) = (String::new(), String::new(), String::new());
    let mut zeros = String::new();
    for (index, column) in Figure::COLUMNS.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let written = write!(columns, ", {column}")
            .and_then(|()| write!(values, ", ${}", index + 3))
            .and_then(|()| write!(sets, "{comma}{column} = {name}.{column} + excluded.{column}"))
            .and_then(|()| write!(zeros, " and {column} = 0"));
        written.expect("writing to a text does not fail");
    }
    let [first, second] = key;
    Table {
        add: format!(
            "insert into {name} ({first}, {second}{columns}) values ($1, $2{values}) \
             on conflict ({first}, {second}) do update set {sets}"
        ),
        drop_zero: format!("delete from {name} where {first} = $1 and {second} = $2{zeros}"),
    }
}

fn figures_add(
    tx: &mut Tx<'_>,
    table: &Table,
    key: &[Value<'_>],
    figures: &Figures,
) -> Result<(), StorageError> {
    if figures.is_zero() {
        return Ok(());
    }
    let values = figures.values().iter().map(ToValue::to_value);
    let all: Vec<Value<'_>> = key.iter().cloned().chain(values).collect();
    tx.execute(&table.add, &all)?;
    if figures.values().iter().any(|value| *value < 0) {
        tx.execute(&table.drop_zero, key)?;
    }
    Ok(())
}

fn methods_apply(tx: &mut Tx<'_>, sums: &Sums) -> Result<(), StorageError> {
    for ((day, method), sum) in &sums.methods {
        let day = day.to_string();
        tx.execute(
            "insert into method_figures (day, method, charges, charged, refunds, refunded) \
             values ($1, $2, $3, $4, $5, $6) on conflict (day, method) do update set \
             charges = method_figures.charges + excluded.charges, \
             charged = method_figures.charged + excluded.charged, \
             refunds = method_figures.refunds + excluded.refunds, \
             refunded = method_figures.refunded + excluded.refunded",
            params![day, method, sum.charges, sum.charged, sum.refunds, sum.refunded],
        )?;
        tx.execute(
            "delete from method_figures where day = $1 and method = $2 \
             and charges = 0 and charged = 0 and refunds = 0 and refunded = 0",
            params![day, method],
        )?;
    }
    Ok(())
}

fn seat_add(tx: &mut Tx<'_>, event_id: Uuid, seat_id: u32, sold: i64) -> Result<(), StorageError> {
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
