//! Lists of reservations and tickets in SQL.

use std::collections::HashMap;
use std::time::Duration;

use urr_contracts::internal::auth::USERS_FOUND_MAX;
use urr_kernel::{Timestamp, Uuid, Won, first_id_at};
use urr_layout::SeatId;
use urr_service::{CursorPage, Page};
use urr_storage::{DbResult, Row, StorageError, Tx, Value, from_row, params, storable_time};

use crate::in_list::for_each_chunk;
use crate::reservations::rules::ReservationRecord;
use crate::reservations::store::{RECORD, record_read};
use crate::{ReservationId, ReservationStatus};

/// Which reservations are listed. `None` in a field means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationFilter {
    pub id: Option<ReservationId>,
    pub user_id: Option<Uuid>,
    /// Reservations of any of these users: at least one, [`BUYERS_MAX`] at most.
    pub buyers: Option<Vec<Uuid>>,
    pub event_id: Option<Uuid>,
    pub status: Option<ReservationStatus>,
    /// Only reservations of this organiser's events.
    pub organiser_id: Option<Uuid>,
    /// Made at this time or later.
    pub created_from: Option<Timestamp>,
    /// Made before this time.
    pub created_before: Option<Timestamp>,
}

const BUYERS_MAX: usize = USERS_FOUND_MAX;
/// The time in an id and that of the making differ by less than this.
pub const ID_SLACK: Duration = Duration::from_mins(1);

/// One page, the newest first: ids grow with time.
pub fn record_page(
    tx: &mut Tx<'_>,
    filter: &ReservationFilter,
    page: Page,
) -> DbResult<Vec<ReservationRecord>> {
    let (wanted, mut values) = filter.condition();
    let (limit, offset) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Int(i64::from(page.limit())), Value::Int(page.offset())]);
    let rows = NewestRows { wanted, limit: format!("${limit}::bigint + ${offset}::bigint") };
    let sql = filter.newest_sql(tx.is_postgres(), &rows, &mut values);
    tx.query(&format!("{sql} limit ${limit} offset ${offset}"), &values, record_read)
}

/// The part of the list that the cursor names, the newest first, and one more.
pub fn record_page_after(
    tx: &mut Tx<'_>,
    filter: &ReservationFilter,
    page: CursorPage,
) -> DbResult<Vec<ReservationRecord>> {
    let (wanted, mut values) = filter.condition();
    let (cursor, limit) = (values.len() + 1, values.len() + 2);
    values.push(Value::Uuid(page.cursor().unwrap_or(Uuid::max())));
    values.push(Value::Int(i64::from(page.rows_max())));
    let wanted = format!("{wanted} and r.id < ${cursor}");
    let rows = NewestRows { wanted, limit: format!("${limit}") };
    let sql = filter.newest_sql(tx.is_postgres(), &rows, &mut values);
    tx.query(&format!("{sql} limit ${limit}"), &values, record_read)
}

/// Which rows are wanted, but for the organiser, and how many of the newest at most.
struct NewestRows {
    wanted: String,
    limit: String,
}

/// Reservations after this one, in the order of making.
pub fn record_page_from(
    tx: &mut Tx<'_>,
    filter: &ReservationFilter,
    after: Uuid,
    limit: u32,
) -> DbResult<Vec<ReservationRecord>> {
    let (wanted, mut values) = filter.whole_condition();
    let (cursor, last) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Uuid(after), Value::Int(i64::from(limit))]);
    let sql = format!("{RECORD} {wanted} and r.id > ${cursor} order by r.id limit ${last}");
    tx.query(&sql, &values, record_read)
}

/// What a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOf {
    Reservation,
    Ticket,
}

pub fn reservation_find_by_number(
    tx: &mut Tx<'_>,
    of: NumberOf,
    number: &str,
) -> DbResult<Option<ReservationId>> {
    let sql = match of {
        NumberOf::Reservation => "select id from reservations where number = $1",
        NumberOf::Ticket => "select reservation_id as id from tickets where number = $1",
    };
    tx.query_opt(sql, params![number], |row| row.get("id"))
}

pub fn record_count(tx: &mut Tx<'_>, filter: &ReservationFilter) -> DbResult<u64> {
    let (wanted, values) = filter.whole_condition();
    let sql = format!("select count(*) as total from reservations as r where {wanted}");
    tx.query_one(&sql, &values, |row| row.get("total"))
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
    /// The condition with that on the organiser.
    fn whole_condition(&self) -> (String, Vec<Value<'static>>) {
        let (mut wanted, mut values) = self.condition();
        if let Some(organiser_id) = self.organiser_id {
            values.push(Value::Uuid(organiser_id));
            wanted += &format!(" and {}", of_organiser(values.len()));
        }
        (wanted, values)
    }

    /// The newest of these rows, the newest first. The last parameter is the organiser, if there is
    /// one. PostgreSQL takes the newest of each event of the organiser by its index: in the order of
    /// all reservations it would read all that others have sold since.
    fn newest_sql(
        &self,
        is_postgres: bool,
        rows: &NewestRows,
        values: &mut Vec<Value<'static>>,
    ) -> String {
        let NewestRows { wanted, limit } = rows;
        let Some(organiser_id) = self.organiser_id else {
            return format!("{RECORD} {wanted} order by r.id desc");
        };
        values.push(Value::Uuid(organiser_id));
        let organiser = values.len();
        match is_postgres {
            true => format!(
                "{RECORD} r.id in (select newest.id from sales as own cross join lateral \
                 (select r.id from reservations as r where r.event_id = own.event_id \
                 and {wanted} order by r.id desc limit {limit}) as newest \
                 where own.organiser_id = ${organiser}) order by r.id desc"
            ),
            false => {
                format!("{RECORD} {wanted} and {} order by r.id desc", of_organiser(organiser))
            }
        }
    }

    /// The condition but for the organiser, and its parameters: a text per combination, so that each
    /// can use its index.
    fn condition(&self) -> (String, Vec<Value<'static>>) {
        let time = |time: Option<Timestamp>| time.map(storable_time).map(Value::Time);
        // Ids grow with time and have an index, which times have not.
        let id = |time: Option<Timestamp>| time.map(first_id_at).map(Value::Uuid);
        let conditions = [
            ("id =", self.id.map(|id| Value::Uuid(id.0))),
            ("user_id =", self.user_id.map(Value::Uuid)),
            ("event_id =", self.event_id.map(Value::Uuid)),
            ("status =", self.status.map(|status| Value::Text(status.as_str()))),
            ("created_at >=", time(self.created_from)),
            ("created_at <", time(self.created_before)),
            ("id >=", id(self.created_from.map(|from| storable_time(from) - ID_SLACK))),
            ("id <", id(self.created_before.map(|before| storable_time(before) + ID_SLACK))),
        ];
        let (mut wanted, mut values) = (vec!["true".to_owned()], Vec::new());
        for (condition, value) in conditions {
            if let Some(value) = value {
                values.push(value);
                wanted.push(format!("r.{condition} ${}", values.len()));
            }
        }
        if let Some((first, others)) = self.buyers.as_deref().and_then(<[Uuid]>::split_first) {
            // Two texts to prepare, as in `in_list`: for one buyer, or for as many as there may be.
            let size = if others.is_empty() { 1 } else { BUYERS_MAX };
            let padded = others.iter().chain(std::iter::repeat(first)).take(size);
            let numbers: Vec<String> =
                (1..=size).map(|number| format!("${}", values.len() + number)).collect();
            values.extend(padded.map(|id| Value::Uuid(*id)));
            wanted.push(format!("r.user_id in ({})", numbers.join(", ")));
        }
        (wanted.join(" and "), values)
    }
}

fn of_organiser(parameter: usize) -> String {
    format!("r.event_id in (select event_id from sales where organiser_id = ${parameter})")
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

const TICKET: &str = "select t.id, t.reservation_id, t.number, t.event_id, t.position, t.seat_id, \
    t.issue, t.is_valid, t.checked_in_at, i.unit_price, y.name as ticket_type_name from tickets as t \
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
    Ok(ticket_list_of(tx, &[id.0])?.remove(&id.0).unwrap_or_default())
}

/// The tickets of several reservations.
pub fn ticket_list_of(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<HashMap<Uuid, Vec<StoredTicket>>> {
    let mut tickets: HashMap<Uuid, Vec<StoredTicket>> = HashMap::new();
    let read = |row: &Row<'_>| Ok((row.get::<Uuid>("reservation_id")?, ticket_read(row)?));
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!(
            "{TICKET} where t.reservation_id in ({list}) order by t.reservation_id, t.position, t.unit"
        );
        for (id, ticket) in tx.query(&sql, values, read)? {
            tickets.entry(id).or_default().push(ticket);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(tickets)
}

#[cfg(test)]
mod tests {
    use urr_storage::StorageError;
    use urr_test::engines::{Database, Engine, block_on};

    use super::*;
    use crate::SCHEMA;

    const EVENTS: u128 = 50;
    const PER_EVENT: u128 = 40;
    const OWNER: Uuid = Uuid::from_u128(77);

    fn event(number: u128) -> Uuid {
        Uuid::from_u128(number + 1)
    }

    /// Sales one after the other: the reservations of the first event are the oldest.
    fn fill(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StorageError> {
        for number in 0..EVENTS {
            let owner = if number == 0 { Value::Uuid(OWNER) } else { Value::Null };
            tx.execute(
                "insert into sales (event_id, revision, kind, status, title, venue_name, \
                 starts_at, sale_starts_at, sale_ends_at, has_presale, seats_per_user_max, \
                 requires_identity, layout, prices, seats_total, is_complete, fence, created_at, \
                 organiser_id) values ($1, 1, 'seated', 'open', 'x', 'y', $2, $2, $3, false, 4, \
                 false, '{}', '{}', 0, true, 0, $2, $4)",
                &[Value::Uuid(event(number)), Value::Time(now), Value::Time(now + ID_SLACK), owner],
            )?;
            for place in 0..PER_EVENT {
                let id = Uuid::from_u128(1_000 + number * PER_EVENT + place);
                let reservation = "insert into reservations (id, number, user_id, event_id, \
                     status, payment_status, total_amount, booking_fee, quantity, fence, \
                     expires_at, cancel_policy, agreed_starts_at, announced_starts_at, \
                     created_at, updated_at) values ($1, $2, $1, $3, 'expired', 'unpaid', 0, 0, \
                     1, 1, $4, '{}', $4, $4, $4, $4)";
                let number = Value::Uuid(event(number));
                let display = id.to_string();
                let values = [Value::Uuid(id), Value::Text(&display), number, Value::Time(now)];
                tx.execute(reservation, &values)?;
            }
        }
        tx.execute("analyze", &[])?;
        Ok(())
    }

    /// The plan of a page with these conditions.
    fn plan(tx: &mut Tx<'_>, filter: &ReservationFilter) -> Result<String, StorageError> {
        let (wanted, mut values) = filter.condition();
        let rows = NewestRows { wanted, limit: "21".to_owned() };
        let sql = filter.newest_sql(tx.is_postgres(), &rows, &mut values);
        let (word, column) = match tx.is_postgres() {
            true => ("explain", "QUERY PLAN"),
            false => ("explain query plan", "detail"),
        };
        let sql = format!("{word} {sql} limit 21");
        Ok(tx.query(&sql, &values, |row| row.get::<String>(column))?.join("\n"))
    }

    fn check(engine: Engine) {
        let now: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        let Some(database) = Database::open(engine, &SCHEMA, now) else { return };
        block_on(async {
            let filled: Result<(), StorageError> = database.db.write(move |tx| fill(tx, now)).await;
            filled.unwrap();
            let of_event =
                ReservationFilter { event_id: Some(event(0)), ..ReservationFilter::default() };
            let of_owner =
                ReservationFilter { organiser_id: Some(OWNER), ..ReservationFilter::default() };
            let mut filters = vec![of_event];
            if engine == Engine::Postgres {
                filters.push(of_owner.clone());
            }
            let plans: Result<Vec<String>, StorageError> =
                database.db.read(move |tx| filters.iter().map(|one| plan(tx, one)).collect()).await;
            for plan in plans.unwrap() {
                assert!(plan.contains("reservations_of_event"), "{plan}");
            }
            let page = move |tx: &mut Tx<'_>| record_page(tx, &of_owner, Page::new(2, 15));
            let listed: Result<Vec<ReservationRecord>, StorageError> = database.db.read(page).await;
            let listed: Vec<u128> =
                listed.unwrap().iter().map(|one| one.reservation.id.0.as_u128()).collect();
            let expected: Vec<u128> = (1_010..1_025).rev().collect();
            assert_eq!(listed, expected, "the second page of the newest");
        });
    }

    #[test]
    fn a_page_of_an_old_event_does_not_read_what_was_sold_since_on_sqlite() {
        check(Engine::Sqlite);
    }

    #[test]
    fn a_page_of_an_old_event_does_not_read_what_was_sold_since_on_postgres() {
        check(Engine::Postgres);
    }
}
