//! The SQL of the statistics.

pub mod catalog;
pub mod counter_queries;
pub mod counters;
pub mod event_queries;
pub mod facts;
pub mod live;
pub mod queues;
pub mod user_queries;

use jiff::civil::Date;
use serde::Serialize;
use urr_storage::{DbResult, Row, StorageError, Tx, from_row, params};
use utoipa::ToSchema;

use crate::domain::Hour;

/// How many domain events of a type happened on a day.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivityView {
    /// The day in Korea.
    #[schema(value_type = String, example = "2026-11-15")]
    day: Date,
    /// The type of the events.
    #[schema(example = "ARTIST_CREATED")]
    event_type: String,
    total: i64,
}

pub fn activity_list(tx: &mut Tx<'_>, since: Date) -> DbResult<Vec<ActivityView>> {
    tx.query(
        "select day, event_type, total from activity where day >= $1 \
         order by day desc, event_type",
        params![since.to_string()],
        |row| Ok(from_row!(row => ActivityView { event_type, total; day: day_read(row)? })),
    )
}

/// An hour in the columns `day` and `hour`.
fn hour_read(row: &Row<'_>) -> DbResult<Hour> {
    Ok(Hour { day: day_read(row)?, hour: row.get("hour")? })
}

/// A day in the column `day`.
fn day_read(row: &Row<'_>) -> DbResult<Date> {
    let text: String = row.get("day")?;
    text.parse().map_err(|_| StorageError::Decode {
        column: "day".to_owned(),
        reason: format!("{text:?} is not a date"),
    })
}
