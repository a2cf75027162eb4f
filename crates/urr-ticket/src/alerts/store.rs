//! Alerts and gates in SQL. What concerns returned seats happens under the lock of the sale.

use std::collections::HashSet;
use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::alerts::gates::{AlertGate, AlertGates, GatePeriod, ToldFan};
use crate::alerts::rules::{AlertSubject, SeatWish};
use crate::alerts::sale_alerts::{DueSaleAlert, SaleAlertRow};
use crate::alerts::seat_alerts::{SeatAlertId, SeatAlertRow};
use crate::inventory::store::policy_read;

/// Until the end of the transaction, nobody else adds an alert of this user.
pub fn alert_owner_lock(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<()> {
    tx.execute(
        "insert into alert_owners (user_id) values ($1) \
         on conflict (user_id) do update set user_id = excluded.user_id",
        params![user_id],
    )?;
    Ok(())
}

// Sale alerts.

/// Nothing changes if there is one already.
pub fn sale_alert_insert(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    user_id: Uuid,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "insert into sale_alerts (event_id, user_id, due_at, asked_at) values ($1, $2, $3, $3) \
         on conflict (event_id, user_id) do nothing",
        params![event_id, user_id, now],
    )?;
    Ok(())
}

pub fn sale_alert_delete(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<()> {
    let sql = "delete from sale_alerts where event_id = $1 and user_id = $2";
    tx.execute(sql, params![event_id, user_id]).map(drop)
}

pub fn sale_alert_count(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<u32> {
    let sql = "select count(*) as total from sale_alerts where user_id = $1";
    tx.query_one(sql, params![user_id], |row| row.get("total"))
}

/// A user's sale alerts, or the one of an event, the newest first.
pub fn sale_alert_list(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    event_id: Option<Uuid>,
) -> DbResult<Vec<SaleAlertRow>> {
    tx.query(
        "select a.event_id, a.told_at, a.asked_at, s.title, s.venue_name, s.status, s.is_complete, \
         s.artist_id, s.starts_at, s.sale_starts_at, s.sale_ends_at, s.has_presale, \
         s.seats_per_user_max, s.requires_identity, s.cancel_policy \
         from sale_alerts as a join sales as s on s.event_id = a.event_id \
         where a.user_id = $1 and ($2::uuid is null or a.event_id = $2::uuid) \
         order by a.asked_at desc, a.event_id",
        params![user_id, event_id],
        |row| {
            Ok(from_row!(row => SaleAlertRow {
                event_id, title, venue_name, told_at, asked_at;
                policy: policy_read(row)?,
            }))
        },
    )
}

/// Alerts that are due. Another process may handle some of them meanwhile.
pub fn sale_alert_list_due(
    tx: &mut Tx<'_>,
    now: Timestamp,
    limit: u32,
) -> DbResult<Vec<DueSaleAlert>> {
    tx.query(
        "select event_id, user_id, told_opens_at, due_at from sale_alerts where due_at <= $1 \
         order by due_at, event_id, user_id limit $2",
        params![now, limit],
        |row| Ok(from_row!(row => DueSaleAlert { event_id, user_id, told_opens_at, due_at })),
    )
}

/// Changes nothing if another process was faster.
pub fn sale_alert_postpone(
    tx: &mut Tx<'_>,
    alert: &DueSaleAlert,
    until: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "update sale_alerts set due_at = $4 where event_id = $1 and user_id = $2 and due_at = $3",
        params![alert.event_id, alert.user_id, alert.due_at, until],
    )?;
    Ok(())
}

/// Changes nothing if another process was faster.
pub fn sale_alert_end(tx: &mut Tx<'_>, alert: &DueSaleAlert) -> DbResult<()> {
    tx.execute(
        "delete from sale_alerts where event_id = $1 and user_id = $2 and due_at = $3",
        params![alert.event_id, alert.user_id, alert.due_at],
    )?;
    Ok(())
}

/// Marks the fan as told of this opening. `false`: another process was faster.
pub fn sale_alert_mark_told(
    tx: &mut Tx<'_>,
    alert: &DueSaleAlert,
    opens_at: Timestamp,
    due_at: Timestamp,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update sale_alerts set told_opens_at = $4, told_at = $5, due_at = $6 \
         where event_id = $1 and user_id = $2 and due_at = $3",
        params![alert.event_id, alert.user_id, alert.due_at, opens_at, now, due_at],
    )?;
    Ok(rows == 1)
}

/// The sale has changed: its alerts are looked at.
pub fn sale_alerts_recheck(tx: &mut Tx<'_>, event_id: Uuid, at: Timestamp) -> DbResult<()> {
    let sql = "update sale_alerts set due_at = $2 where event_id = $1";
    tx.execute(sql, params![event_id, at]).map(drop)
}

// Seat alerts.

const SEAT_ALERT: &str = "a.id, a.event_id, a.user_id, a.subject, a.quantity, a.number, a.status, \
    a.asked_at, a.told_at, s.title, s.venue_name, s.starts_at";

fn seat_alert_read(row: &Row<'_>) -> DbResult<SeatAlertRow> {
    Ok(from_row!(row => SeatAlertRow {
        id, event_id, user_id, quantity, number, status, asked_at, told_at, title, venue_name,
        starts_at;
        subject: AlertSubject::stored(row.get("subject")?),
    }))
}

pub fn seat_alert_list(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<SeatAlertRow>> {
    let sql = format!(
        "select {SEAT_ALERT} from seat_alerts as a join sales as s on s.event_id = a.event_id \
         where a.user_id = $1 and a.status <> 'withdrawn' order by a.asked_at desc, a.id"
    );
    tx.query(&sql, params![user_id], seat_alert_read)
}

/// The alert of a user that waits for this.
pub fn seat_alert_find_waiting(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    user_id: Uuid,
    subject: &AlertSubject,
) -> DbResult<Option<SeatAlertRow>> {
    let sql = format!(
        "select {SEAT_ALERT} from seat_alerts as a join sales as s on s.event_id = a.event_id \
         where a.event_id = $1 and a.user_id = $2 and a.subject = $3 and a.status = 'waiting'"
    );
    tx.query_opt(&sql, params![event_id, user_id, subject.as_str()], seat_alert_read)
}

pub fn seat_alert_find(tx: &mut Tx<'_>, id: SeatAlertId) -> DbResult<Option<SeatAlertRow>> {
    let sql = format!(
        "select {SEAT_ALERT} from seat_alerts as a join sales as s on s.event_id = a.event_id \
         where a.id = $1"
    );
    tx.query_opt(&sql, params![id], seat_alert_read)
}

/// Those that are waiting.
pub fn seat_alert_count(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<u32> {
    let sql = "select count(*) as total from seat_alerts where user_id = $1 and status = 'waiting'";
    tx.query_one(sql, params![user_id], |row| row.get("total"))
}

/// How many wait for the same before this one.
pub fn seat_alert_count_ahead(tx: &mut Tx<'_>, alert: &SeatAlertRow) -> DbResult<u32> {
    tx.query_one(
        "select count(*) as total from seat_alerts where event_id = $1 and number < $2 \
         and status = 'waiting' and ($3 = '' or subject = '' or subject = $3)",
        params![alert.event_id, alert.number, alert.subject.as_str()],
        |row| row.get("total"),
    )
}

/// A fan who asks for seats that return.
#[derive(Clone, Debug)]
pub struct NewSeatAlert {
    pub id: SeatAlertId,
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub wish: SeatWish,
    pub now: Timestamp,
}

/// Adds a fan at the end of the order, and the gate of what they wait for. The sale is locked, and
/// nothing of it is free.
pub fn seat_alert_insert(tx: &mut Tx<'_>, new: &NewSeatAlert) -> DbResult<()> {
    let SeatWish { subject, quantity } = &new.wish;
    tx.execute(
        "insert into seat_alerts (id, event_id, user_id, subject, quantity, number, status, \
         asked_at) select $1::uuid, $2::uuid, $3::uuid, $4::text, $5::integer, \
         coalesce(max(number), 0) + 1, 'waiting', $6::timestamptz \
         from seat_alerts where event_id = $2",
        params![new.id, new.event_id, new.user_id, subject.as_str(), *quantity, new.now],
    )?;
    tx.execute(
        "insert into alert_gates (event_id, subject, is_open, closed_fence) \
         select $1::uuid, $2::text, false, fence from sales where event_id = $1 \
         on conflict (event_id, subject) do nothing",
        params![new.event_id, subject.as_str()],
    )?;
    sale_mark_alerts(tx, new.event_id, true)
}

pub fn seat_alert_set_quantity(tx: &mut Tx<'_>, id: SeatAlertId, quantity: u32) -> DbResult<()> {
    let sql = "update seat_alerts set quantity = $2 where id = $1 and status = 'waiting'";
    tx.execute(sql, params![id, quantity]).map(drop)
}

/// One that has not been told is deleted.
pub fn seat_alert_withdraw(tx: &mut Tx<'_>, id: SeatAlertId) -> DbResult<()> {
    tx.execute(
        "update seat_alerts set status = 'withdrawn' where id = $1 and told_at is not null",
        params![id],
    )?;
    let sql = "delete from seat_alerts where id = $1 and told_at is null";
    tx.execute(sql, params![id]).map(drop)
}

pub fn seat_alert_delete(tx: &mut Tx<'_>, id: SeatAlertId) -> DbResult<()> {
    tx.execute("delete from seat_alerts where id = $1", params![id]).map(drop)
}

/// A waiting fan with what decides whether it is their turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingFan {
    pub id: SeatAlertId,
    pub user_id: Uuid,
    /// The order of asking.
    pub number: i64,
    pub wish: SeatWish,
    /// What they hold or have bought of the event.
    pub live_quantity: u32,
    /// Whether they bought since they asked.
    pub has_bought: bool,
}

/// The fans who wait for at most this many seats of a subject, in the order of asking.
pub fn waiting_fan_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    subject: &AlertSubject,
    quantity_max: u32,
    limit: u32,
) -> DbResult<Vec<WaitingFan>> {
    tx.query(
        "select a.id, a.user_id, a.number, a.quantity, \
         (select coalesce(sum(r.quantity), 0)::bigint from reservations as r \
             where r.event_id = a.event_id and r.user_id = a.user_id \
             and r.status in ('pending', 'confirmed')) as live_quantity, \
         (select count(*) from reservations as r \
             where r.event_id = a.event_id and r.user_id = a.user_id \
             and r.status = 'confirmed' and r.created_at >= a.asked_at) as bought \
         from seat_alerts as a where a.event_id = $1 and a.status = 'waiting' \
         and a.subject = $2 and a.quantity <= $3 order by a.number limit $4",
        params![event_id, subject.as_str(), quantity_max, limit],
        |row| {
            let (subject, quantity) = (subject.clone(), row.get("quantity")?);
            Ok(WaitingFan {
                id: row.get("id")?,
                user_id: row.get("user_id")?,
                number: row.get("number")?,
                wish: SeatWish { subject, quantity },
                live_quantity: row.get("live_quantity")?,
                has_bought: row.get::<i64>("bought")? > 0,
            })
        },
    )
}

/// What somebody waits for.
pub fn waiting_subject_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<HashSet<AlertSubject>> {
    let subjects = tx.query(
        "select distinct subject from seat_alerts where event_id = $1 and status = 'waiting'",
        params![event_id],
        |row| Ok(AlertSubject::stored(row.get("subject")?)),
    )?;
    Ok(subjects.into_iter().collect())
}

/// `false`: the fan has just withdrawn it.
pub fn seat_alert_mark_told(tx: &mut Tx<'_>, id: SeatAlertId, now: Timestamp) -> DbResult<bool> {
    let rows = tx.execute(
        "update seat_alerts set status = 'told', told_at = $2 where id = $1 and status = 'waiting'",
        params![id, now],
    )?;
    Ok(rows == 1)
}

/// The wishes of fans who were told after a time and have not taken anything.
pub fn told_wish_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    after: Timestamp,
) -> DbResult<Vec<(SeatWish, Timestamp)>> {
    tx.query(
        "select subject, quantity, told_at from seat_alerts where event_id = $1 \
         and status = 'told' and told_at > $2",
        params![event_id, after],
        |row| {
            let subject = AlertSubject::stored(row.get("subject")?);
            Ok((SeatWish { subject, quantity: row.get("quantity")? }, row.get("told_at")?))
        },
    )
}

/// A fan who was told holds seats now.
pub fn seat_alerts_mark_taken(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<()> {
    tx.execute(
        "update seat_alerts set status = 'taken' \
         where event_id = $1 and user_id = $2 and status = 'told'",
        params![event_id, user_id],
    )?;
    Ok(())
}

// Gates.

/// Whom a gate lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatePass {
    /// Fans who were told and hold nothing yet.
    ForHold,
    /// Those who hold seats by now as well: they may take others instead.
    ForChange,
}

/// The gates of an event for a request, under the lock of the sale.
pub fn gates_load(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    pass: GatePass,
    exclusive_max: Duration,
    now: Timestamp,
) -> DbResult<AlertGates> {
    if exclusive_max.is_zero() {
        return Ok(AlertGates::default());
    }
    let gates = gate_list(tx, event_id)?;
    let told = tx.query(
        "select user_id, subject, quantity from seat_alerts where event_id = $1 \
         and (status = 'told' or (status = 'taken' and $3)) and told_at > $2",
        params![event_id, now - exclusive_max, pass == GatePass::ForChange],
        |row| {
            let subject = AlertSubject::stored(row.get("subject")?);
            let wish = SeatWish { subject, quantity: row.get("quantity")? };
            Ok(ToldFan { user_id: row.get("user_id")?, wish })
        },
    )?;
    Ok(AlertGates::new(&gates, told, exclusive_max, now))
}

pub fn gate_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<AlertGate>> {
    tx.query(
        "select subject, returned_at, is_open, next_at, closed_fence from alert_gates \
         where event_id = $1 order by subject",
        params![event_id],
        |row| {
            Ok(from_row!(row => AlertGate {
                returned_at, is_open, next_at, closed_fence;
                subject: AlertSubject::stored(row.get("subject")?),
            }))
        },
    )
}

pub fn gate_update(tx: &mut Tx<'_>, event_id: Uuid, gate: &AlertGate) -> DbResult<()> {
    let AlertGate { subject, returned_at, is_open, next_at, closed_fence } = gate;
    tx.execute(
        "update alert_gates set returned_at = $3, is_open = $4, next_at = $5, closed_fence = $6 \
         where event_id = $1 and subject = $2",
        params![event_id, subject.as_str(), *returned_at, *is_open, *next_at, *closed_fence],
    )?;
    Ok(())
}

/// A time in which a gate was closed is over.
pub fn gate_period_insert(tx: &mut Tx<'_>, event_id: Uuid, period: &GatePeriod) -> DbResult<()> {
    let GatePeriod { subject, closed_fence, opened_fence, exclusive_until } = period;
    tx.execute(
        "insert into alert_gate_periods (event_id, subject, closed_fence, opened_fence, \
         exclusive_until) values ($1, $2, $3, $4, $5) \
         on conflict (event_id, subject, closed_fence) do update set \
         opened_fence = excluded.opened_fence",
        params![event_id, subject.as_str(), *closed_fence, *opened_fence, *exclusive_until],
    )?;
    Ok(())
}

pub fn gate_delete(tx: &mut Tx<'_>, event_id: Uuid, subject: &AlertSubject) -> DbResult<()> {
    let sql = "delete from alert_gates where event_id = $1 and subject = $2";
    tx.execute(sql, params![event_id, subject.as_str()]).map(drop)
}

/// Seats or tickets have returned, in the transaction that frees them. Waiting fans are looked at,
/// and a gate that was open closes.
pub fn gates_note_return(tx: &mut Tx<'_>, event_id: Uuid, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update alert_gates set next_at = $2, is_open = false, \
         closed_fence = case when is_open \
             then (select fence from sales where event_id = $1) else closed_fence end, \
         returned_at = case when returned_at is null or is_open then $2::timestamptz \
             else returned_at end \
         where event_id = $1",
        params![event_id, now],
    )?;
    Ok(())
}

/// The waiting fans are looked at, if anything is free.
pub fn gates_recheck(tx: &mut Tx<'_>, event_id: Uuid, now: Timestamp) -> DbResult<()> {
    let sql = "update alert_gates set next_at = $2 where event_id = $1 and next_at is not null";
    tx.execute(sql, params![event_id, now]).map(drop)
}

/// The events whose waiting fans are to be looked at, the longest due first.
pub fn gate_list_due(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<Vec<Uuid>> {
    tx.query(
        "select event_id, min(next_at) as due_at from alert_gates where next_at <= $1 \
         group by event_id order by due_at limit $2",
        params![now, limit],
        |row| row.get("event_id"),
    )
}

/// Events with waiting fans whose sale or time is over.
pub fn gate_list_ended(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<Vec<Uuid>> {
    tx.query(
        "select event_id from sales where has_seat_alerts and (status <> 'open' \
         or sale_ends_at <= $1 or starts_at <= $1) order by event_id limit $2",
        params![now, limit],
        |row| row.get("event_id"),
    )
}

pub fn sale_mark_alerts(tx: &mut Tx<'_>, event_id: Uuid, has_alerts: bool) -> DbResult<()> {
    tx.execute(
        "update sales set has_seat_alerts = $2 where event_id = $1 and has_seat_alerts <> $2",
        params![event_id, has_alerts],
    )?;
    Ok(())
}

/// Nobody waits for the event any more. The sale is locked.
pub fn event_alerts_end(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<()> {
    tx.execute("delete from seat_alerts where event_id = $1", params![event_id])?;
    tx.execute("delete from alert_gates where event_id = $1", params![event_id])?;
    tx.execute("delete from alert_gate_periods where event_id = $1", params![event_id])?;
    sale_mark_alerts(tx, event_id, false)
}

/// Ends the alerts of fans who bought since they asked.
pub fn bought_alerts_delete(tx: &mut Tx<'_>) -> DbResult<u64> {
    tx.execute(
        "delete from seat_alerts where status = 'waiting' and exists (\
             select 1 from reservations as r where r.event_id = seat_alerts.event_id \
             and r.user_id = seat_alerts.user_id and r.status = 'confirmed' \
             and r.created_at >= seat_alerts.asked_at)",
        &[],
    )
}

/// Deletes alerts whose fans were told before a time, and what the audit compares them with.
pub fn told_alerts_delete(tx: &mut Tx<'_>, before: Timestamp) -> DbResult<u64> {
    let sql = "delete from alert_gate_periods where exclusive_until < $1";
    tx.execute(sql, params![before])?;
    let sql = "delete from seat_alerts where status <> 'waiting' and told_at < $1";
    tx.execute(sql, params![before])
}

/// How many sale alerts and seat alerts wait.
pub fn alert_count_waiting(tx: &mut Tx<'_>) -> DbResult<(i64, i64)> {
    tx.query_one(
        "select (select count(*) from sale_alerts where told_at is null) as sales, \
         (select count(*) from seat_alerts where status = 'waiting') as seats",
        &[],
        |row| Ok((row.get("sales")?, row.get("seats")?)),
    )
}
