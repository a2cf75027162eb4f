//! Reads counters: by hour, in total, by payment method.

use std::sync::LazyLock;

use jiff::civil::Date;
use urr_storage::{DbResult, Row, Tx, params};

use super::hour_read;
use crate::domain::{HourlyCounters, MethodTotals, StatsCounters};

pub(super) static COLUMNS: LazyLock<String> = LazyLock::new(|| StatsCounters::COLUMNS.join(", "));

/// The sums of all counters under their names.
pub(super) static COLUMN_SUMS: LazyLock<String> = LazyLock::new(|| sums(StatsCounters::COLUMNS));

fn sums(columns: &[&str]) -> String {
    let sum = |column: &&str| format!("coalesce(sum({column}), 0)::bigint as {column}");
    columns.iter().map(sum).collect::<Vec<String>>().join(", ")
}

pub(super) fn counters_read(row: &Row<'_>) -> DbResult<StatsCounters> {
    StatsCounters::read(|column| row.get(column))
}

/// The hours with counters, oldest first.
pub fn hour_list(tx: &mut Tx<'_>, since: Date) -> DbResult<HourlyCounters> {
    let columns = &*COLUMNS;
    let sql = format!(
        "select day, hour, {columns} from hour_counters where day >= $1 order by day, hour"
    );
    let since = since.to_string();
    tx.query(&sql, params![since], |row| Ok((hour_read(row)?, counters_read(row)?)))
        .map(HourlyCounters)
}

/// The totals of all days before one.
pub fn counters_total_before(tx: &mut Tx<'_>, day: Date) -> DbResult<StatsCounters> {
    let sums = &*COLUMN_SUMS;
    let sql = format!("select {sums} from hour_counters where day < $1");
    tx.query_one(&sql, params![day.to_string()], counters_read)
}

pub fn counters_total(tx: &mut Tx<'_>) -> DbResult<StatsCounters> {
    let sums = &*COLUMN_SUMS;
    tx.query_one(&format!("select {sums} from hour_counters"), &[], counters_read)
}

/// By the amount charged, most first.
pub fn method_list(tx: &mut Tx<'_>) -> DbResult<Vec<(String, MethodTotals)>> {
    let sums = sums(MethodTotals::COLUMNS);
    let sql =
        format!("select method, {sums} from method_totals group by method order by 3 desc, 1");
    tx.query(&sql, &[], |row| {
        Ok((row.get("method")?, MethodTotals::read(|column| row.get(column))?))
    })
}

/// The bytes that the tables of this service take.
pub fn storage_bytes(tx: &mut Tx<'_>) -> DbResult<i64> {
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
