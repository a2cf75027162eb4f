//! The numbers of waiting rooms by hour.

use jiff::civil::Date;
use urr_kernel::Uuid;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use super::hour_read;
use crate::domain::{Hour, QueueHour};

/// Merges an observation into its hour: the maximum of each number.
pub fn queue_hour_update(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    hour: Hour,
    observed: &QueueHour,
) -> DbResult<()> {
    let columns = ["waiting_max", "inside_max", "joined_total", "admitted_total", "left_total"];
    let larger = columns.map(|column| {
        let (new, old) = (format!("excluded.{column}"), format!("queue_hours.{column}"));
        format!("{column} = case when {new} > {old} then {new} else {old} end")
    });
    let (columns, larger) = (columns.join(", "), larger.join(", "));
    tx.execute(
        &format!(
            "insert into queue_hours (event_id, day, hour, {columns}) \
             values ($1, $2, $3, $4, $5, $6, $7, $8) \
             on conflict (event_id, day, hour) do update set {larger}"
        ),
        params![
            event_id,
            hour.day.to_string(),
            hour.hour,
            observed.waiting_max,
            observed.inside_max,
            observed.joined_total,
            observed.admitted_total,
            observed.left_total
        ],
    )?;
    Ok(())
}

/// The rooms since a day with the titles of their events, the longest lines first.
pub fn queue_list(
    tx: &mut Tx<'_>,
    since: Date,
    limit: u32,
) -> DbResult<Vec<(Uuid, Option<String>, QueueHour)>> {
    tx.query(
        "select q.event_id, e.title, max(q.waiting_max) as waiting_max, \
         max(q.inside_max) as inside_max, max(q.joined_total) as joined_total, \
         max(q.admitted_total) as admitted_total, max(q.left_total) as left_total \
         from queue_hours as q left join events as e on e.id = q.event_id \
         where q.day >= $1 group by q.event_id, e.title \
         order by max(q.waiting_max) desc, q.event_id limit $2",
        params![since.to_string(), limit],
        |row| Ok((row.get("event_id")?, row.get("title")?, queue_hour_read(row)?)),
    )
}

/// The hours of a room since a day, oldest first.
pub fn queue_hour_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    since: Date,
) -> DbResult<Vec<(Hour, QueueHour)>> {
    tx.query(
        "select day, hour, waiting_max, inside_max, joined_total, admitted_total, left_total \
         from queue_hours where event_id = $1 and day >= $2 order by day, hour",
        params![event_id, since.to_string()],
        |row| Ok((hour_read(row)?, queue_hour_read(row)?)),
    )
}

fn queue_hour_read(row: &Row<'_>) -> DbResult<QueueHour> {
    Ok(from_row!(row => QueueHour {
        waiting_max, inside_max, joined_total, admitted_total, left_total
    }))
}
