//! Check-in in SQL.

use std::collections::BTreeMap;

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{DbResult, Row, StorageError, Tx, Value, from_row, params};
use utoipa::ToSchema;

use crate::check_in::rules::{DoorName, Presence, Scan};
use crate::in_list::for_each_chunk;

/// A ticket with what check-in needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckInTicket {
    pub id: Uuid,
    pub reservation_id: Uuid,
    pub number: String,
    pub reservation_number: String,
    pub event_id: Uuid,
    pub seat_id: Option<SeatId>,
    /// The name of its type, if it is a standing ticket.
    pub ticket_type_name: Option<String>,
    pub issue: u32,
    pub is_valid: bool,
    pub checked_in_at: Option<Timestamp>,
}

/// How many tickets of an event are valid and how many were checked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckInCounts {
    pub event_id: Uuid,
    /// Valid tickets, those included that were checked in.
    pub tickets: u64,
    pub checked_in: u64,
    /// Visitors who are in the hall now: checked in, and not out again.
    pub inside: u64,
    /// Scans by which a visitor was let in, and that turned out to be wrong.
    pub conflicts: u64,
}

/// A ticket in the list for phones without a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTicket {
    pub id: Uuid,
    pub number: String,
    pub user_id: Uuid,
    pub seat_id: Option<SeatId>,
    pub ticket_type_name: Option<String>,
    pub issue: u32,
    pub is_valid: bool,
    pub is_inside: bool,
    pub checked_in_at: Option<Timestamp>,
    pub checked_in_door: Option<String>,
}

/// An event at whose doors somebody may check tickets in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CheckInEventView)]
pub struct CheckInEvent {
    pub id: Uuid,
    pub title: String,
    pub venue_name: String,
    pub starts_at: Timestamp,
    /// Whether one may leave and come in again with the same ticket.
    pub allows_reentry: bool,
    /// Whether you may sell at its box office.
    pub may_sell: bool,
}

/// Whose events are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckInEventFilter {
    All,
    OwnedBy(Uuid),
    AssignedTo(Uuid),
}

const TICKET: &str = "select t.id, t.reservation_id, t.number, r.number as reservation_number, \
     t.event_id, t.seat_id, y.name as ticket_type_name, t.issue, t.is_valid, t.checked_in_at \
     from tickets t join reservations r on r.id = t.reservation_id \
     left join reservation_items i \
     on i.reservation_id = t.reservation_id and i.position = t.position \
     left join ticket_types y on y.id = i.ticket_type_id";

/// Locks these tickets, in the order of their ids, so that scans of one ticket are judged one after
/// the other. Ids without a ticket are left out.
pub fn tickets_lock(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<BTreeMap<Uuid, CheckInTicket>> {
    let mut tickets = BTreeMap::new();
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!("select id from tickets where id in ({list}) order by id for update");
        tx.query(&sql, values, |_| Ok(()))?;
        for ticket in tx.query(&format!("{TICKET} where t.id in ({list})"), values, ticket_read)? {
            tickets.insert(ticket.id, ticket);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(tickets)
}

fn ticket_read(row: &Row<'_>) -> DbResult<CheckInTicket> {
    Ok(from_row!(row => CheckInTicket {
        id, reservation_id, number, reservation_number, event_id, seat_id, ticket_type_name,
        issue, is_valid, checked_in_at
    }))
}

/// The ticket with this number, and its present issue.
pub fn ticket_by_number(tx: &mut Tx<'_>, number: &str) -> DbResult<Option<(Uuid, u32)>> {
    let sql = "select id, issue from tickets where number = $1";
    tx.query_opt(sql, params![number], |row| Ok((row.get("id")?, row.get("issue")?)))
}

/// Whether the event lets people in again. The event has a sale.
pub fn reentry_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<bool> {
    let sql = "select allows_reentry from sales where event_id = $1";
    tx.query_one(sql, params![event_id], |row| row.get("allows_reentry"))
}

const SCAN_COLUMNS: &str = "id, ticket_id, direction, door, staff_id, scanned_at, recorded_at, \
     outcome, undone_at";

fn scan_read(row: &Row<'_>) -> DbResult<Scan> {
    Ok(from_row!(row => Scan {
        id, ticket_id, direction, staff_id, scanned_at, recorded_at, outcome, undone_at;
        door: DoorName::stored(row.get("door")?),
    }))
}

/// The scans of these tickets, by ticket.
pub fn scans_load(tx: &mut Tx<'_>, ticket_ids: &[Uuid]) -> DbResult<BTreeMap<Uuid, Vec<Scan>>> {
    let mut scans: BTreeMap<Uuid, Vec<Scan>> = BTreeMap::new();
    for_each_chunk(ticket_ids, &[], |list, values| {
        let sql = format!(
            "select {SCAN_COLUMNS} from ticket_scans where ticket_id in ({list}) \
             order by scanned_at, id"
        );
        for scan in tx.query(&sql, values, scan_read)? {
            scans.entry(scan.ticket_id).or_default().push(scan);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(scans)
}

/// `false`: there is a scan with this id, of whatever ticket.
pub fn scan_insert(tx: &mut Tx<'_>, event_id: Uuid, scan: &Scan) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into ticket_scans (event_id, id, ticket_id, direction, door, staff_id, \
         scanned_at, recorded_at, outcome) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         on conflict (event_id, id) do nothing",
        params![
            event_id,
            scan.id,
            scan.ticket_id,
            scan.direction,
            scan.door.as_str(),
            scan.staff_id,
            scan.scanned_at,
            scan.recorded_at,
            scan.outcome
        ],
    )?;
    Ok(rows == 1)
}

pub fn scan_set_outcome(tx: &mut Tx<'_>, event_id: Uuid, scan: &Scan) -> DbResult<()> {
    tx.execute_later(
        "update ticket_scans set outcome = $3 where event_id = $1 and id = $2",
        params![event_id, scan.id, scan.outcome],
    )
}

pub fn scan_set_undone(
    tx: &mut Tx<'_>,
    (event_id, id): (Uuid, Uuid),
    staff_id: Uuid,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute_later(
        "update ticket_scans set undone_at = $3, undone_by = $4 where event_id = $1 and id = $2",
        params![event_id, id, now, staff_id],
    )
}

/// Writes where the visitor of a ticket is.
pub fn presence_update(tx: &mut Tx<'_>, ticket_id: Uuid, presence: &Presence) -> DbResult<()> {
    let first = presence.first_entry.as_ref();
    tx.execute_later(
        "update tickets set checked_in_at = $2, checked_in_by = $3, checked_in_door = $4, \
         is_inside = $5 where id = $1",
        params![
            ticket_id,
            first.map(|scan| scan.scanned_at),
            first.map(|scan| scan.staff_id),
            first.map(|scan| scan.door.as_str()),
            presence.is_inside
        ],
    )
}

pub fn check_in_count(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<CheckInCounts> {
    tx.query_one(
        "select count(*) as tickets, count(checked_in_at) as checked_in, \
         coalesce(sum(case when is_inside then 1 else 0 end), 0)::bigint as inside, \
         (select count(*) from ticket_scans where event_id = $1 and outcome <> 'accepted' \
         and undone_at is null) as conflicts \
         from tickets where event_id = $1 and is_valid",
        params![event_id],
        |row| {
            Ok(from_row!(row => CheckInCounts {
                tickets, checked_in, inside, conflicts; event_id: event_id
            }))
        },
    )
}

/// Tickets of an event in the order of their ids, from after this one on.
pub fn ticket_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    after: Option<Uuid>,
    limit: u32,
) -> DbResult<Vec<ListedTicket>> {
    tx.query(
        "select t.id, t.number, r.user_id, t.seat_id, y.name as ticket_type_name, t.issue, \
         t.is_valid, t.is_inside, t.checked_in_at, t.checked_in_door \
         from tickets t join reservations r on r.id = t.reservation_id \
         left join reservation_items i \
         on i.reservation_id = t.reservation_id and i.position = t.position \
         left join ticket_types y on y.id = i.ticket_type_id \
         where t.event_id = $1 and t.id > $2 order by t.id limit $3",
        params![event_id, after.unwrap_or(Uuid::nil()), i64::from(limit)],
        |row| {
            Ok(from_row!(row => ListedTicket {
                id, number, user_id, seat_id, ticket_type_name, issue, is_valid, is_inside,
                checked_in_at, checked_in_door
            }))
        },
    )
}

/// The newest scans by which somebody was let in who should not have been.
pub fn conflict_list(tx: &mut Tx<'_>, event_id: Uuid, limit: u32) -> DbResult<Vec<Scan>> {
    let sql = format!(
        "select {SCAN_COLUMNS} from ticket_scans \
         where event_id = $1 and outcome <> 'accepted' and undone_at is null \
         order by scanned_at desc, id desc limit $2"
    );
    tx.query(&sql, params![event_id, i64::from(limit)], scan_read)
}

/// Tickets without their lock.
pub fn tickets_find(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<BTreeMap<Uuid, CheckInTicket>> {
    let mut tickets = BTreeMap::new();
    for_each_chunk(ids, &[], |list, values| {
        for ticket in tx.query(&format!("{TICKET} where t.id in ({list})"), values, ticket_read)? {
            tickets.insert(ticket.id, ticket);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(tickets)
}

/// Events that begin after `from`, the next one first.
pub fn event_list(
    tx: &mut Tx<'_>,
    filter: CheckInEventFilter,
    from: Timestamp,
    limit: u32,
) -> DbResult<Vec<CheckInEvent>> {
    let mut values = vec![Value::Time(from), Value::Int(i64::from(limit))];
    let (may_sell, condition) = match filter {
        CheckInEventFilter::All => ("true", "true"),
        CheckInEventFilter::OwnedBy(_) => ("true", "organiser_id = $3"),
        CheckInEventFilter::AssignedTo(_) => (
            "event_id in (select event_id from event_staff where user_id = $3 and may_sell)",
            "event_id in (select event_id from event_staff where user_id = $3)",
        ),
    };
    match filter {
        CheckInEventFilter::All => {}
        CheckInEventFilter::OwnedBy(id) | CheckInEventFilter::AssignedTo(id) => {
            values.push(Value::Uuid(id));
        }
    }
    let sql = format!(
        "select event_id as id, title, venue_name, starts_at, allows_reentry, \
         {may_sell} as may_sell from sales where status = 'open' and is_complete \
         and starts_at > $1 and {condition} order by starts_at, event_id limit $2"
    );
    tx.query(&sql, &values, |row| {
        Ok(from_row!(row => CheckInEvent {
            id, title, venue_name, starts_at, allows_reentry, may_sell
        }))
    })
}
