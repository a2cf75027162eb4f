//! The SQL of the statistics.

pub mod catalog;
pub mod counter_queries;
pub mod counters;
pub mod event_queries;
pub mod facts;
pub mod queues;
pub mod user_queries;

use jiff::civil::Date;
use urr_storage::{Row, StorageError, Tx, params};

use crate::Activity;

pub fn activity_list(tx: &mut Tx<'_>, since: Date) -> Result<Vec<Activity>, StorageError> {
    tx.query(
        "select day, event_type, total from activity where day >= $1 \
         order by day desc, event_type",
        params![since.to_string()],
        |row| {
            Ok(Activity {
                day: day_read(row)?,
                event_type: row.get("event_type")?,
                total: row.get("total")?,
            })
        },
    )
}

/// A day in the column `day`.
fn day_read(row: &Row<'_>) -> Result<Date, StorageError> {
    let text: String = row.get("day")?;
    text.parse().map_err(|_| StorageError::Decode {
        column: "day".to_owned(),
        reason: format!("{text:?} is not a date"),
    })
}
