//! The SQL of the statistics.

pub mod catalog;
pub mod facts;
pub mod figures;
pub mod looks;
pub mod queues;

use jiff::civil::Date;
use urr_storage::{StorageError, Tx, params};

use crate::Activity;

pub fn activity_list(tx: &mut Tx<'_>, since: Date) -> Result<Vec<Activity>, StorageError> {
    tx.query(
        "select day, event_type, total from activity where day >= $1 \
         order by day desc, event_type",
        params![since.to_string()],
        |row| {
            Ok(Activity {
                day: day_of(&row.get::<String>("day")?),
                event_type: row.get("event_type")?,
                total: row.get("total")?,
            })
        },
    )
}

/// A day as it is stored.
fn day_of(text: &str) -> Date {
    text.parse().expect("only dates are stored")
}
