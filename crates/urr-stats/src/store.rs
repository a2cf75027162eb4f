//! The SQL of the statistics.

use jiff::civil::Date;
use urr_storage::{StorageError, Tx, params};

use crate::Activity;

pub fn activity_add(tx: &mut Tx<'_>, day: Date, event_type: &str) -> Result<(), StorageError> {
    tx.execute(
        "insert into activity (day, event_type, total) values ($1, $2, 1) \
         on conflict (day, event_type) do update set total = activity.total + 1",
        params![day.to_string(), event_type],
    )?;
    Ok(())
}

pub fn activity_list(tx: &mut Tx<'_>, since: Date) -> Result<Vec<Activity>, StorageError> {
    tx.query(
        "select day, event_type, total from activity where day >= $1 \
         order by day desc, event_type",
        params![since.to_string()],
        |row| {
            let day: String = row.get("day")?;
            Ok(Activity {
                day: day.parse().expect("only dates are stored"),
                event_type: row.get("event_type")?,
                total: row.get("total")?,
            })
        },
    )
}
