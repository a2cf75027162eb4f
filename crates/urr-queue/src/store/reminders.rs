//! Reminders of near admissions.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

/// A user who asked to be reminded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reminder {
    pub event_id: Uuid,
    pub user_id: Uuid,
    /// The user's number in the line, when the reminder was inserted or last checked.
    pub number: i64,
}

impl Reminder {
    /// The number before a draw. It sorts first, so that the user is looked up in any case.
    pub const UNDRAWN: i64 = i64::MIN;
}

/// Repeating it changes nothing, unless the user has another number by now.
pub fn reminder_insert(tx: &mut Tx<'_>, reminder: &Reminder, now: Timestamp) -> DbResult<()> {
    let Reminder { event_id, user_id, number } = *reminder;
    tx.execute(
        "insert into reminders (event_id, user_id, number, asked_at) values ($1, $2, $3, $4) \
         on conflict (event_id, user_id) do update \
         set number = excluded.number, asked_at = excluded.asked_at \
         where reminders.number <> excluded.number",
        params![event_id, user_id, number, now],
    )?;
    Ok(())
}

pub fn reminder_withdraw(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<()> {
    let sql = "delete from reminders where event_id = $1 and user_id = $2";
    tx.execute(sql, params![event_id, user_id])?;
    Ok(())
}

/// The events with reminders. Each is found by one step through the index, because there may be a
/// million reminders of few events.
pub fn reminder_list_events(tx: &mut Tx<'_>) -> DbResult<Vec<Uuid>> {
    let sql = "select event_id from reminders where event_id > $1 order by event_id limit 1";
    let mut events: Vec<Uuid> = Vec::new();
    loop {
        let last = events.last().copied().unwrap_or_default();
        match tx.query_opt(sql, params![last], |row| row.get("event_id"))? {
            Some(event_id) => events.push(event_id),
            None => return Ok(events),
        }
    }
}

/// The next reminders of an event behind this number and user, up to `number_max`.
pub fn reminder_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    (number, user_id): (i64, Uuid),
    number_max: i64,
    count_max: u32,
) -> DbResult<Vec<Reminder>> {
    tx.query(
        "select user_id, number from reminders \
         where event_id = $1 and (number, user_id) > ($2, $3) and number <= $4 \
         order by number, user_id limit $5",
        params![event_id, number, user_id, number_max, count_max],
        |row| Ok(Reminder { event_id, user_id: row.get("user_id")?, number: row.get("number")? }),
    )
}

/// Deletes a reminder if it is still the one that was read. Of concurrent calls one gets true.
pub fn reminder_end(tx: &mut Tx<'_>, reminder: &Reminder) -> DbResult<bool> {
    let Reminder { event_id, user_id, number } = *reminder;
    let rows = tx.execute(
        "delete from reminders where event_id = $1 and user_id = $2 and number = $3",
        params![event_id, user_id, number],
    )?;
    Ok(rows == 1)
}

/// Sets another number if the reminder is still the one that was read.
pub fn reminder_renumber(tx: &mut Tx<'_>, reminder: &Reminder, number: i64) -> DbResult<()> {
    tx.execute(
        "update reminders set number = $4 where event_id = $1 and user_id = $2 and number = $3",
        params![reminder.event_id, reminder.user_id, reminder.number, number],
    )?;
    Ok(())
}

/// Deletes some reminders of an event. Returns how many.
pub fn reminder_end_some(tx: &mut Tx<'_>, event_id: Uuid, count_max: u32) -> DbResult<u64> {
    tx.execute(
        "delete from reminders where event_id = $1 and user_id in \
         (select user_id from reminders where event_id = $1 order by user_id limit $2)",
        params![event_id, count_max],
    )
}
