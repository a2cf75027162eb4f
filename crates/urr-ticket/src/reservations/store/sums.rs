//! Sums over reservations. Those of events that are over are stored with the number of the last change
//! that they include; the others are summed up when they are asked for.

use urr_kernel::{Timestamp, Uuid, Won, first_id_at};
use urr_storage::{DbResult, Tx, Value, from_row, params};

use super::list::ID_SLACK;

/// How many reservations stand, how many of them were made today, and what of them is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationSums {
    pub total: u64,
    pub today: u64,
    pub revenue: Won,
}

/// Events and their stored sums, which are null if there are none or they are old.
const EVENTS: &str = "sales as e left join event_sums as s on s.event_id = e.event_id \
                      and s.fence = e.fence";

/// A hold whose time is over is none, swept or not.
const IS_LIVE_HOLD: &str =
    "r.status = 'pending' and (r.expires_at > $1 or r.pinned_by is not null)";

/// Holds and confirmed reservations, of one organiser's events or of all.
pub fn figures_load(
    tx: &mut Tx<'_>,
    organiser_id: Option<Uuid>,
    day_start: Timestamp,
    now: Timestamp,
) -> DbResult<ReservationSums> {
    let confirmed = confirmed_sums(tx, organiser_id)?;
    let mut values = vec![Value::Time(now)];
    let of_organiser = match organiser_id {
        None => "",
        Some(id) => {
            values.push(Value::Uuid(id));
            " and r.event_id in (select event_id from sales where organiser_id = $2)"
        }
    };
    let sql = format!(
        "select count(*) as total from reservations as r where {IS_LIVE_HOLD}{of_organiser}"
    );
    let held: u64 = tx.query_one(&sql, &values, |row| row.get("total"))?;
    let (first, start) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Uuid(first_id_at(day_start - ID_SLACK)), Value::Time(day_start)]);
    let sql = format!(
        "select count(*) as total from reservations as r where r.id >= ${first} \
         and r.created_at >= ${start} and (r.status = 'confirmed' or ({IS_LIVE_HOLD})){of_organiser}"
    );
    let today = tx.query_one(&sql, &values, |row| row.get("total"))?;
    let total = confirmed.iter().map(|sums| sums.confirmed).sum::<u64>() + held;
    let revenue = confirmed.iter().map(|sums| sums.revenue).sum();
    Ok(ReservationSums { total, today, revenue: Won::new(revenue) })
}

struct EventSums {
    confirmed: u64,
    revenue: i64,
}

/// What is stored, and what is not.
fn confirmed_sums(tx: &mut Tx<'_>, organiser_id: Option<Uuid>) -> DbResult<[EventSums; 2]> {
    let (of_organiser, values) = match organiser_id {
        None => ("", Vec::new()),
        Some(id) => (" and e.organiser_id = $1", vec![Value::Uuid(id)]),
    };
    let stored = format!(
        "select coalesce(sum(s.confirmed), 0)::bigint as confirmed, \
         coalesce(sum(s.revenue), 0)::bigint as revenue from {EVENTS} \
         where s.event_id is not null{of_organiser}"
    );
    let others = format!(
        "select count(*) as confirmed, coalesce(sum(r.total_amount), 0)::bigint as revenue \
         from reservations as r where r.status = 'confirmed' and r.event_id in \
         (select e.event_id from {EVENTS} where s.event_id is null{of_organiser})"
    );
    let mut read = |sql: &str| {
        tx.query_one(sql, &values, |row| Ok(from_row!(row => EventSums { confirmed, revenue })))
    };
    Ok([read(&stored)?, read(&others)?])
}

/// The next events that were over at a time and whose sums are not stored.
pub fn unsummed_list(tx: &mut Tx<'_>, over_at: Timestamp, limit: u32) -> DbResult<Vec<Uuid>> {
    let sql = format!(
        "select e.event_id from {EVENTS} where s.event_id is null and e.starts_at < $1 \
         order by e.event_id limit $2"
    );
    tx.query(&sql, params![over_at, limit], |row| row.get("event_id"))
}

/// Stores the sums of an event. One statement sees one moment.
pub fn sums_store(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<()> {
    tx.execute(
        "insert into event_sums (event_id, fence, confirmed, revenue) \
         select e.event_id, e.fence, count(r.id), coalesce(sum(r.total_amount), 0)::bigint \
         from sales as e left join reservations as r on r.event_id = e.event_id \
         and r.status = 'confirmed' where e.event_id = $1 group by e.event_id, e.fence \
         on conflict (event_id) do update set fence = excluded.fence, \
         confirmed = excluded.confirmed, revenue = excluded.revenue",
        params![event_id],
    )?;
    Ok(())
}
