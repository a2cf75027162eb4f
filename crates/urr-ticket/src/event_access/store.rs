//! Organisers and door staff in SQL.

use urr_kernel::Uuid;
use urr_storage::{DbResult, Tx, from_row, params};

use super::StaffAssignment;

/// The organiser of an event. The outer `None`: there is no such event.
#[expect(clippy::option_option, reason = "an event may have no organiser")]
pub fn organiser_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<Option<Uuid>>> {
    let sql = "select organiser_id from sales where event_id = $1";
    tx.query_opt(sql, params![event_id], |row| row.get("organiser_id"))
}

pub fn ticket_type_event(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<Uuid>> {
    let sql = "select event_id from ticket_types where id = $1";
    tx.query_opt(sql, params![id], |row| row.get("event_id"))
}

pub fn staff_exists(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<bool> {
    let sql = "select 1 as one from event_staff where event_id = $1 and user_id = $2";
    Ok(tx.query_opt(sql, params![event_id, user_id], |_| Ok(()))?.is_some())
}

pub fn staff_may_sell(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<bool> {
    let sql = "select 1 as one from event_staff where event_id = $1 and user_id = $2 and may_sell";
    Ok(tx.query_opt(sql, params![event_id, user_id], |_| Ok(()))?.is_some())
}

pub fn staff_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<StaffAssignment>> {
    tx.query(
        "select user_id, assigned_by, assigned_at, may_sell from event_staff where event_id = $1 \
         order by assigned_at, user_id",
        params![event_id],
        |row| Ok(from_row!(row => StaffAssignment { user_id, assigned_by, assigned_at, may_sell })),
    )
}

pub fn staff_count(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<u32> {
    let sql = "select count(*) as total from event_staff where event_id = $1";
    tx.query_one(sql, params![event_id], |row| row.get("total"))
}

/// `false`: the user is assigned already, with the same permission.
pub fn staff_insert(tx: &mut Tx<'_>, event_id: Uuid, new: &StaffAssignment) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into event_staff (event_id, user_id, assigned_by, assigned_at, may_sell) \
         values ($1, $2, $3, $4, $5) on conflict (event_id, user_id) do update \
         set may_sell = excluded.may_sell where event_staff.may_sell <> excluded.may_sell",
        params![event_id, new.user_id, new.assigned_by, new.assigned_at, new.may_sell],
    )?;
    Ok(rows == 1)
}

/// `false`: the user is not assigned.
pub fn staff_delete(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<bool> {
    let sql = "delete from event_staff where event_id = $1 and user_id = $2";
    Ok(tx.execute(sql, params![event_id, user_id])? == 1)
}
