//! Lists of reservations and tickets in SQL.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_service::Page;
use urr_storage::{DbResult, Row, Tx, Value, from_row, params};

use crate::reservations::rules::ReservationRecord;
use crate::reservations::store::{RECORD, record_read};
use crate::{ReservationId, ReservationStatus};

/// Which reservations are listed. `None` in a field means all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationFilter {
    pub user_id: Option<Uuid>,
    pub event_id: Option<Uuid>,
    pub status: Option<ReservationStatus>,
    /// Only reservations of this organiser's events.
    pub organiser_id: Option<Uuid>,
}

/// One page, the newest first: ids grow with time.
pub fn record_page(
    tx: &mut Tx<'_>,
    filter: &ReservationFilter,
    page: Page,
) -> DbResult<Vec<ReservationRecord>> {
    let (wanted, mut values) = filter.condition();
    let (limit, offset) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Int(i64::from(page.limit())), Value::Int(page.offset())]);
    let sql = format!("{RECORD} {wanted} order by r.id desc limit ${limit} offset ${offset}");
    tx.query(&sql, &values, record_read)
}

pub fn record_count(tx: &mut Tx<'_>, filter: &ReservationFilter) -> DbResult<u64> {
    let (wanted, values) = filter.condition();
    let sql = format!("select count(*) as total from reservations as r where {wanted}");
    tx.query_one(&sql, &values, |row| row.get("total"))
}

/// How many reservations stand, how many of them were made today, and what of them is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationSums {
    pub total: u64,
    pub today: u64,
    pub revenue: Won,
}

/// Holds and confirmed reservations. A hold whose time is over is none, swept or not.
pub fn figures_load(
    tx: &mut Tx<'_>,
    filter: &ReservationFilter,
    day_start: Timestamp,
    now: Timestamp,
) -> DbResult<ReservationSums> {
    let (wanted, mut values) = filter.condition();
    let (start, present) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Time(day_start), Value::Time(now)]);
    let sql = format!(
        "select count(*) as total, \
         coalesce(sum(case when r.created_at >= ${start} then 1 else 0 end), 0)::bigint as today, \
         coalesce(sum(case when r.payment_status = 'paid' then r.total_amount else 0 end), \
             0)::bigint as revenue \
         from reservations as r where {wanted} and (r.status = 'confirmed' or (r.status = 'pending' \
             and (r.expires_at > ${present} or r.pinned_by is not null)))"
    );
    tx.query_one(&sql, &values, |row| {
        Ok(from_row!(row => ReservationSums { total, today, revenue }))
    })
}

/// Reservations that were ever paid, in the order of ids.
pub fn paid_page(
    tx: &mut Tx<'_>,
    after: Option<ReservationId>,
    limit: u32,
) -> DbResult<Vec<ReservationRecord>> {
    let sql = format!("{RECORD} r.id > $1 and r.payment_id is not null order by r.id limit $2");
    tx.query(&sql, params![after.map_or(Uuid::nil(), |id| id.0), limit], record_read)
}

impl ReservationFilter {
    /// The condition and its parameters: a text per combination, so that each can use its index.
    fn condition(&self) -> (String, Vec<Value<'static>>) {
        let conditions = [
            ("user_id", self.user_id.map(Value::Uuid)),
            ("event_id", self.event_id.map(Value::Uuid)),
            ("status", self.status.map(|status| Value::Text(status.as_str()))),
        ];
        let (mut wanted, mut values) = (vec!["true".to_owned()], Vec::new());
        for (column, value) in conditions {
            if let Some(value) = value {
                values.push(value);
                wanted.push(format!("r.{column} = ${}", values.len()));
            }
        }
        if let Some(organiser_id) = self.organiser_id {
            values.push(Value::Uuid(organiser_id));
            wanted.push(format!(
                "r.event_id in (select event_id from sales where organiser_id = ${})",
                values.len()
            ));
        }
        (wanted.join(" and "), values)
    }
}

/// A ticket as its owner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTicket {
    pub id: Uuid,
    pub number: String,
    pub event_id: Uuid,
    pub position: u16,
    pub seat_id: Option<SeatId>,
    pub issue: u32,
    pub is_valid: bool,
    pub checked_in_at: Option<Timestamp>,
    /// The name of the ticket type; a seat's follows from its number.
    pub ticket_type_name: Option<String>,
    pub unit_price: Won,
}

const TICKET: &str = "select t.id, t.number, t.event_id, t.position, t.seat_id, t.issue, \
    t.is_valid, t.checked_in_at, i.unit_price, y.name as ticket_type_name from tickets as t \
    join reservation_items as i on i.reservation_id = t.reservation_id and i.position = t.position \
    left join ticket_types as y on y.id = i.ticket_type_id";

fn ticket_read(row: &Row<'_>) -> DbResult<StoredTicket> {
    Ok(from_row!(row => StoredTicket {
        id, number, event_id, position, seat_id, issue, is_valid, checked_in_at, ticket_type_name,
        unit_price
    }))
}

/// The tickets of a reservation, locked: none is checked in until the transaction ends.
pub fn ticket_list_lock(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Vec<StoredTicket>> {
    tx.query(
        &format!("{TICKET} where t.reservation_id = $1 order by t.id for update of t"),
        params![id],
        ticket_read,
    )
}

pub fn ticket_list(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Vec<StoredTicket>> {
    tx.query(
        &format!("{TICKET} where t.reservation_id = $1 order by t.position, t.unit"),
        params![id],
        ticket_read,
    )
}
