//! Writes counters, and how far a rebuild of them has come.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use urr_kernel::Uuid;
use urr_storage::{DbResult, Row, ToValue, Tx, Value, params};

use crate::domain::{CounterChanges, MethodTotals, StatsCounters};
use crate::rebuild::RebuildProgress;

/// Whether a rebuild runs or was interrupted: until it is done, the counters are too small.
pub fn is_rebuilding(tx: &mut Tx<'_>) -> DbResult<bool> {
    let sql = "select stage, after_id from rebuild where id = 1";
    let progress = tx.query_opt(sql, &[], progress_read)?;
    Ok(progress.is_some_and(|progress| progress != RebuildProgress::DONE))
}

fn progress_read(row: &Row<'_>) -> DbResult<RebuildProgress> {
    Ok(RebuildProgress { stage: row.get("stage")?, after: row.get("after_id")? })
}

/// Locks the only row of its table until the transaction ends: one transaction counts at a time.
pub fn progress_lock(tx: &mut Tx<'_>) -> DbResult<RebuildProgress> {
    let sql = "update rebuild set id = 1 where id = 1 returning stage, after_id";
    if let Some(progress) = tx.query_opt(sql, &[], progress_read)? {
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

pub fn progress_write(tx: &mut Tx<'_>, progress: &RebuildProgress) -> DbResult<()> {
    let sql = "update rebuild set stage = $1, after_id = $2 where id = 1";
    tx.execute(sql, params![progress.stage, progress.after])?;
    Ok(())
}

/// A table of counters with a key of two columns.
struct CounterTable {
    name: &'static str,
    add: String,
    drop_zero: String,
}

static ACTIVITY: LazyLock<CounterTable> =
    LazyLock::new(|| CounterTable::new("activity", ["day", "event_type"], &["total"]));
static HOURS: LazyLock<CounterTable> =
    LazyLock::new(|| CounterTable::new("hour_counters", ["day", "hour"], StatsCounters::COLUMNS));
static EVENTS: LazyLock<CounterTable> = LazyLock::new(|| {
    CounterTable::new("event_counters", ["event_id", "day"], StatsCounters::COLUMNS)
});
static METHODS: LazyLock<CounterTable> =
    LazyLock::new(|| CounterTable::new("method_totals", ["day", "method"], MethodTotals::COLUMNS));
static SEATS: LazyLock<CounterTable> =
    LazyLock::new(|| CounterTable::new("sold_seats", ["event_id", "seat_id"], &["sold"]));

/// Deletes all counters. The facts stay.
pub fn counters_delete(tx: &mut Tx<'_>) -> DbResult<()> {
    for table in [&ACTIVITY, &HOURS, &EVENTS, &METHODS, &SEATS] {
        tx.execute(&format!("delete from {}", table.name), &[])?;
    }
    Ok(())
}

/// Applies changes to the counters. Rows that become zero are deleted, so that the stored rows depend
/// on the facts alone and not on the order in which they came.
pub fn counters_apply(tx: &mut Tx<'_>, changes: &CounterChanges) -> DbResult<()> {
    for ((day, event_type), total) in &changes.activity {
        ACTIVITY.add(tx, params![day.to_string(), event_type], &[*total])?;
    }
    for (hour, counters) in &changes.hours {
        HOURS.add(tx, params![hour.day.to_string(), hour.hour], &counters.values())?;
    }
    for ((event_id, day), counters) in &changes.events {
        EVENTS.add(tx, params![event_id, day.to_string()], &counters.values())?;
    }
    for ((day, method), totals) in &changes.methods {
        METHODS.add(tx, params![day.to_string(), method], &totals.values())?;
    }
    for ((event_id, seat_id), sold) in &changes.seats {
        SEATS.add(tx, params![event_id, seat_id], &[*sold])?;
    }
    Ok(())
}

impl CounterTable {
    fn new(name: &'static str, [first, second]: [&str; 2], columns: &[&str]) -> CounterTable {
        let each = |text: &dyn Fn(usize, &str) -> String, between: &str| {
            let texts = columns.iter().enumerate().map(|(index, column)| text(index, column));
            texts.collect::<Vec<String>>().join(between)
        };
        let values = each(&|index, _| format!("${}", index + 3), ", ");
        let sums =
            each(&|_, column| format!("{column} = {name}.{column} + excluded.{column}"), ", ");
        let zeros = each(&|_, column| format!("{column} = 0"), " and ");
        let columns = columns.join(", ");
        CounterTable {
            name,
            add: format!(
                "insert into {name} ({first}, {second}, {columns}) values ($1, $2, {values}) \
                 on conflict ({first}, {second}) do update set {sums}"
            ),
            drop_zero: format!(
                "delete from {name} where {first} = $1 and {second} = $2 and {zeros}"
            ),
        }
    }

    fn add(&self, tx: &mut Tx<'_>, key: &[Value<'_>], values: &[i64]) -> DbResult<()> {
        if values.iter().all(|value| *value == 0) {
            return Ok(());
        }
        let amounts = values.iter().map(ToValue::to_value);
        let all: Vec<Value<'_>> = key.iter().cloned().chain(amounts).collect();
        tx.execute_later(&self.add, &all)?;
        if values.iter().any(|value| *value < 0) {
            tx.execute_later(&self.drop_zero, key)?;
        }
        Ok(())
    }
}

/// Counters as texts, by table and key: for the audit. Zeros are left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoredCounters(pub BTreeMap<(&'static str, String), String>);

impl StoredCounters {
    pub fn from_changes(changes: &CounterChanges) -> StoredCounters {
        let mut stored = StoredCounters::default();
        for ((day, event_type), total) in &changes.activity {
            let key = format!("day={day} event_type={event_type}");
            stored.add("activity", key, &["total"], &[*total]);
        }
        for (hour, counters) in &changes.hours {
            let key = format!("day={} hour={}", hour.day, hour.hour);
            stored.add("hour_counters", key, StatsCounters::COLUMNS, &counters.values());
        }
        for ((event_id, day), counters) in &changes.events {
            let key = format!("event_id={event_id} day={day}");
            stored.add("event_counters", key, StatsCounters::COLUMNS, &counters.values());
        }
        for ((day, method), totals) in &changes.methods {
            let key = format!("day={day} method={method}");
            stored.add("method_totals", key, MethodTotals::COLUMNS, &totals.values());
        }
        stored
    }

    pub fn add(&mut self, table: &'static str, key: String, columns: &[&str], values: &[i64]) {
        let pairs = columns.iter().zip(values).filter(|(_, value)| **value != 0);
        let text = pairs.map(|(column, value)| format!("{column}={value}"));
        let text = text.collect::<Vec<String>>().join(" ");
        if !text.is_empty() {
            self.0.insert((table, key), text);
        }
    }
}

/// All counters; of sold seats the sum of each event.
pub fn counters_read(tx: &mut Tx<'_>) -> DbResult<StoredCounters> {
    let mut stored = StoredCounters::default();
    let text = |row: &Row<'_>, name: &str| row.get::<String>(name);
    let sql = "select day, event_type, total from activity";
    for (key, total) in tx.query(sql, &[], |row| {
        let key = format!("day={} event_type={}", text(row, "day")?, text(row, "event_type")?);
        Ok((key, row.get::<i64>("total")?))
    })? {
        stored.add("activity", key, &["total"], &[total]);
    }
    for (key, counters) in tx.query("select * from hour_counters", &[], |row| {
        let key = format!("day={} hour={}", text(row, "day")?, row.get::<i64>("hour")?);
        Ok((key, StatsCounters::read(|column| row.get(column))?))
    })? {
        stored.add("hour_counters", key, StatsCounters::COLUMNS, &counters.values());
    }
    for (key, counters) in tx.query("select * from event_counters", &[], |row| {
        let key = format!("event_id={} day={}", row.get::<Uuid>("event_id")?, text(row, "day")?);
        Ok((key, StatsCounters::read(|column| row.get(column))?))
    })? {
        stored.add("event_counters", key, StatsCounters::COLUMNS, &counters.values());
    }
    for (key, totals) in tx.query("select * from method_totals", &[], |row| {
        let key = format!("day={} method={}", text(row, "day")?, text(row, "method")?);
        Ok((key, MethodTotals::read(|column| row.get(column))?))
    })? {
        stored.add("method_totals", key, MethodTotals::COLUMNS, &totals.values());
    }
    let sql = "select event_id, sum(sold)::bigint as sold from sold_seats group by event_id";
    for (event_id, sold) in
        tx.query(sql, &[], |row| Ok((row.get::<Uuid>("event_id")?, row.get::<i64>("sold")?)))?
    {
        stored.add("sold_seats", format!("event_id={event_id}"), &["sold"], &[sold]);
    }
    Ok(stored)
}
