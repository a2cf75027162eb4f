//! Reads counters: by hour, in total, by payment method.

use std::fmt::Write;
use std::sync::LazyLock;

use jiff::civil::Date;
use urr_storage::{Row, StorageError, Tx, from_row, params};

use super::day_read;
use crate::domain::{Hour, MethodTotals, StatsCounter, StatsCounters};

pub(super) static COLUMNS: LazyLock<String> = LazyLock::new(|| StatsCounter::COLUMNS.join(", "));

/// The sums of all counters under their names.
pub(super) static COLUMN_SUMS: LazyLock<String> = LazyLock::new(|| {
    let mut sums = String::new();
    for (index, column) in StatsCounter::COLUMNS.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(sums, "{comma}coalesce(sum({column}), 0)::bigint as {column}")
            .expect("writing to a text does not fail");
    }
    sums
});

pub(super) fn counters_read(row: &Row<'_>) -> Result<StatsCounters, StorageError> {
    let values: Result<Vec<i64>, StorageError> =
        StatsCounter::COLUMNS.iter().map(|column| row.get(column)).collect();
    Ok(StatsCounters::from_values(&values?))
}

/// The hours with counters, oldest first.
pub fn hour_list(tx: &mut Tx<'_>, since: Date) -> Result<Vec<(Hour, StatsCounters)>, StorageError> {
    let columns = &*COLUMNS;
    tx.query(
        &format!(
            "select day, hour, {columns} from hour_counters where day >= $1 order by day, hour"
        ),
        params![since.to_string()],
        |row| {
            let hour = Hour { day: day_read(row)?, hour: row.get("hour")? };
            Ok((hour, counters_read(row)?))
        },
    )
}

/// The totals of all days before one.
pub fn counters_total_before(tx: &mut Tx<'_>, day: Date) -> Result<StatsCounters, StorageError> {
    let sums = &*COLUMN_SUMS;
    let sql = format!("select {sums} from hour_counters where day < $1");
    tx.query_one(&sql, params![day.to_string()], counters_read)
}

pub fn counters_total(tx: &mut Tx<'_>) -> Result<StatsCounters, StorageError> {
    let sums = &*COLUMN_SUMS;
    tx.query_one(&format!("select {sums} from hour_counters"), &[], counters_read)
}

/// By the amount charged, most first.
pub fn method_list(tx: &mut Tx<'_>) -> Result<Vec<(String, MethodTotals)>, StorageError> {
    tx.query(
        "select method, sum(charges)::bigint as charges, sum(charged)::bigint as charged, \
         sum(refunds)::bigint as refunds, sum(refunded)::bigint as refunded \
         from method_totals group by method order by 3 desc, method",
        &[],
        |row| {
            let totals = from_row!(row => MethodTotals { charges, charged, refunds, refunded });
            Ok((row.get("method")?, totals))
        },
    )
}

/// The bytes that the tables of this service take.
pub fn storage_bytes(tx: &mut Tx<'_>) -> Result<i64, StorageError> {
    let sql = match tx.is_postgres() {
        true => {
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes \
             from pg_class c join pg_namespace n on n.oid = c.relnamespace \
             where n.nspname = current_schema() and c.relkind = 'r'"
        }
        false => {
            "select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()"
        }
    };
    tx.query_one(sql, &[], |row| row.get("bytes"))
}
