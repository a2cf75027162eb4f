//! Check-in in SQL.

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{DbResult, Tx, from_row, params};
use utoipa::ToSchema;

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
    pub checked_in_by: Option<Uuid>,
}

/// How many tickets of an event are valid and how many were checked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckInCounts {
    pub event_id: Uuid,
    /// Valid tickets, those included that were checked in.
    pub tickets: u64,
    pub checked_in: u64,
}

/// Which issue of which ticket is checked in, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct CheckInAttempt {
    pub ticket_id: Uuid,
    pub issue: u32,
    pub admin_id: Uuid,
    pub now: Timestamp,
}

/// Checks a ticket in if it is the last issue, valid and not checked in yet. Of two concurrent
/// scans one waits for the other's row and then finds it changed.
pub fn ticket_check_in(tx: &mut Tx<'_>, entering: &CheckInAttempt) -> DbResult<bool> {
    let rows = tx.execute(
        "update tickets set checked_in_at = $3, checked_in_by = $4 \
         where id = $1 and issue = $2 and is_valid and checked_in_at is null",
        params![entering.ticket_id, entering.issue, entering.now, entering.admin_id],
    )?;
    Ok(rows == 1)
}

pub fn ticket_find(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<CheckInTicket>> {
    tx.query_opt(
        "select t.id, t.reservation_id, t.number, r.number as reservation_number, t.event_id, \
         t.seat_id, y.name as ticket_type_name, t.issue, t.is_valid, t.checked_in_at, \
         t.checked_in_by \
         from tickets t join reservations r on r.id = t.reservation_id \
         left join reservation_items i \
         on i.reservation_id = t.reservation_id and i.position = t.position \
         left join ticket_types y on y.id = i.ticket_type_id where t.id = $1",
        params![id],
        |row| {
            Ok(from_row!(row => CheckInTicket {
                id, reservation_id, number, reservation_number, event_id, seat_id, ticket_type_name,
                issue, is_valid, checked_in_at, checked_in_by
            }))
        },
    )
}

pub fn check_in_count(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<CheckInCounts> {
    tx.query_one(
        "select count(*) as tickets, count(checked_in_at) as checked_in from tickets \
         where event_id = $1 and is_valid",
        params![event_id],
        |row| Ok(from_row!(row => CheckInCounts { tickets, checked_in; event_id: event_id })),
    )
}
