//! What the pages look at.

use std::fmt::Write;
use std::sync::LazyLock;

use jiff::civil::Date;
use serde_json::Value;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Row, StorageError, Tx, params};

use super::day_of;
use crate::domain::{Figure, Figures, Hour, MethodFigures};

static COLUMNS: LazyLock<String> = LazyLock::new(|| Figure::COLUMNS.join(", "));

/// The sums of all figures under their names.
static SUMS: LazyLock<String> = LazyLock::new(|| {
    let mut sums = String::new();
    for (index, column) in Figure::COLUMNS.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(sums, "{comma}coalesce(sum({column}), 0)::bigint as {column}")
            .expect("writing to a text does not fail");
    }
    sums
});

fn figures(row: &Row<'_>) -> Result<Figures, StorageError> {
    let values: Result<Vec<i64>, StorageError> =
        Figure::COLUMNS.iter().map(|column| row.get(column)).collect();
    Ok(Figures::from_values(&values?))
}

/// The hours in which something happened, oldest first.
pub fn hour_list(tx: &mut Tx<'_>, since: Date) -> Result<Vec<(Hour, Figures)>, StorageError> {
    let columns = &*COLUMNS;
    tx.query(
        &format!(
            "select day, hour, {columns} from hour_figures where day >= $1 order by day, hour"
        ),
        params![since.to_string()],
        |row| {
            let hour = Hour { day: day_of(&row.get::<String>("day")?), hour: row.get("hour")? };
            Ok((hour, figures(row)?))
        },
    )
}

/// Everything that happened before a day.
pub fn sums_before(tx: &mut Tx<'_>, day: Date) -> Result<Figures, StorageError> {
    let sums = &*SUMS;
    let sql = format!("select {sums} from hour_figures where day < $1");
    tx.query_one(&sql, params![day.to_string()], figures)
}

pub fn sums_total(tx: &mut Tx<'_>) -> Result<Figures, StorageError> {
    let sums = &*SUMS;
    tx.query_one(&format!("select {sums} from hour_figures"), &[], figures)
}

/// An event with its figures.
pub struct EventLook {
    pub id: Uuid,
    /// Nothing until the catalogue's word is heard.
    pub title: Option<String>,
    pub venue: Option<String>,
    pub starts_at: Option<Timestamp>,
    pub status: Option<String>,
    pub places: i64,
    pub figures: Figures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrder {
    Revenue,
    Reservations,
    Occupancy,
    Cancellations,
}

impl EventOrder {
    fn sql(self) -> &'static str {
        match self {
            EventOrder::Revenue => "charged - refunded",
            EventOrder::Reservations => "created",
            EventOrder::Occupancy => {
                "case when places = 0 then 0 else places_sold * 1000000 / places end"
            }
            EventOrder::Cancellations => "cancelled",
        }
    }
}

/// The events with figures from a day on, or ever; those without are all zero.
pub struct EventFilter {
    pub since: Option<Date>,
    pub id: Option<Uuid>,
    pub order: EventOrder,
    pub limit: u32,
}

pub fn event_list(tx: &mut Tx<'_>, filter: &EventFilter) -> Result<Vec<EventLook>, StorageError> {
    let (sums, order) = (&*SUMS, filter.order.sql());
    let sql = format!(
        "select id, title, venue, starts_at, status, places, {sums} \
         from events left join event_figures on event_id = id and day >= $1 \
         where $2 or id = $3 \
         group by id, title, venue, starts_at, status, places"
    );
    let columns = &*COLUMNS;
    let sql = format!(
        "select id, title, venue, starts_at, status, places, {columns} from ({sql}) as looks \
         order by {order} desc, created desc, id limit $4"
    );
    let since = filter.since.map(|day| day.to_string()).unwrap_or_default();
    let id = filter.id.unwrap_or(Uuid::nil());
    tx.query(&sql, params![since, filter.id.is_none(), id, filter.limit], |row| {
        Ok(EventLook {
            id: row.get("id")?,
            title: row.get("title")?,
            venue: row.get("venue")?,
            starts_at: row.get("starts_at")?,
            status: row.get("status")?,
            places: row.get("places")?,
            figures: figures(row)?,
        })
    })
}

/// The events that the catalogue has announced, all and those on sale, and their places.
pub struct EventCounts {
    pub events: i64,
    pub on_sale: i64,
    pub places: i64,
}

pub fn event_counts(tx: &mut Tx<'_>) -> Result<EventCounts, StorageError> {
    tx.query_one(
        "select count(*) as events, coalesce(sum(places), 0)::bigint as places, \
         coalesce(sum(case when status = 'on_sale' then 1 else 0 end), 0)::bigint as on_sale \
         from events where title is not null",
        &[],
        |row| {
            Ok(EventCounts {
                events: row.get("events")?,
                on_sale: row.get("on_sale")?,
                places: row.get("places")?,
            })
        },
    )
}

/// Most charged first.
pub fn method_list(tx: &mut Tx<'_>) -> Result<Vec<(String, MethodFigures)>, StorageError> {
    tx.query(
        "select method, sum(charges)::bigint as charges, sum(charged)::bigint as charged, \
         sum(refunds)::bigint as refunds, sum(refunded)::bigint as refunded \
         from method_figures group by method order by 3 desc, method",
        &[],
        |row| {
            let figures = MethodFigures {
                charges: row.get("charges")?,
                charged: row.get("charged")?,
                refunds: row.get("refunds")?,
                refunded: row.get("refunded")?,
            };
            Ok((row.get("method")?, figures))
        },
    )
}

/// How many seats and tickets are held at this moment.
pub fn held_places(tx: &mut Tx<'_>, now: Timestamp) -> Result<i64, StorageError> {
    tx.query_one(
        "select coalesce(sum(quantity), 0)::bigint as places from reservations \
         where hold_ends_at > $1 and confirmed_at is null and cancelled_at is null \
         and expired_at is null",
        params![now],
        |row| row.get("places"),
    )
}

/// What happened since a moment.
pub struct Lately {
    pub reservations: i64,
    pub charges: i64,
    pub revenue: i64,
    pub users: i64,
}

pub fn lately(tx: &mut Tx<'_>, since: Timestamp) -> Result<Lately, StorageError> {
    let reservations = "select count(*) as reservations from reservations where created_at >= $1";
    let reservations = tx.query_one(reservations, params![since], |row| row.get("reservations"))?;
    let (charges, revenue) = tx.query_one(
        "select coalesce(sum(case when kind = 'charge' then 1 else 0 end), 0)::bigint as charges, \
         coalesce(sum(case when kind = 'charge' then amount else -amount end), 0)::bigint \
         as revenue from deeds where kind in ('charge', 'refund') and happened_at >= $1",
        params![since],
        |row| Ok((row.get("charges")?, row.get("revenue")?)),
    )?;
    let users = tx.query_one(
        "select count(*) as users from (select user_id from reservations where created_at >= $1 \
         union select user_id from deeds where kind = 'charge' and happened_at >= $1) as active",
        params![since],
        |row| row.get("users"),
    )?;
    Ok(Lately { reservations, charges, revenue, users })
}

/// The events that are reserved most since a moment.
pub fn trending(
    tx: &mut Tx<'_>,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<(Uuid, i64)>, StorageError> {
    tx.query(
        "select event_id, count(*) as reservations from reservations where created_at >= $1 \
         group by event_id order by reservations desc, event_id limit $2",
        params![since, limit],
        |row| Ok((row.get("event_id")?, row.get("reservations")?)),
    )
}

pub fn event_title(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<String>, StorageError> {
    let found: Option<Option<String>> =
        tx.query_opt("select title from events where id = $1", params![id], |row| {
            row.get("title")
        })?;
    Ok(found.flatten())
}

/// How many people made so many reservations since a moment.
pub fn reservations_per_user(
    tx: &mut Tx<'_>,
    since: Timestamp,
) -> Result<Vec<(i64, i64)>, StorageError> {
    tx.query(
        "select reservations, count(*) as users from (select user_id, count(*) as reservations \
         from reservations where created_at >= $1 group by user_id) as people \
         group by reservations order by reservations",
        params![since],
        |row| Ok((row.get("reservations")?, row.get("users")?)),
    )
}

/// Of those who reserved since a moment: how many made so many reservations ever.
pub fn reservations_ever(
    tx: &mut Tx<'_>,
    since: Timestamp,
) -> Result<Vec<(i64, i64)>, StorageError> {
    tx.query(
        "select reservations, count(*) as users from (select user_id, count(*) as reservations \
         from reservations where user_id in \
         (select user_id from reservations where created_at >= $1) group by user_id) as people \
         group by reservations order by reservations",
        params![since],
        |row| Ok((row.get("reservations")?, row.get("users")?)),
    )
}

/// How many of those who paid since a moment spent less than each bound, and no less than the one
/// before. What they got back is not spent.
pub fn spending(
    tx: &mut Tx<'_>,
    since: Timestamp,
    bounds: [i64; 3],
) -> Result<[i64; 4], StorageError> {
    let [low, medium, high] = bounds;
    let rows = tx.query(
        "select tier, count(*) as users from (select case when spent < $2 then 0 \
         when spent < $3 then 1 when spent < $4 then 2 else 3 end as tier from \
         (select user_id, sum(case when kind = 'charge' then amount else -amount end)::bigint \
         as spent from deeds where kind in ('charge', 'refund') and happened_at >= $1 \
         and user_id is not null group by user_id) as people) as tiers group by tier",
        params![since, low, medium, high],
        |row| Ok((row.get::<u32>("tier")?, row.get::<i64>("users")?)),
    )?;
    let mut tiers = [0; 4];
    for (tier, users) in rows {
        tiers[tier as usize] = users;
    }
    Ok(tiers)
}

/// The seats or tickets of an event, and which seats are sold.
pub struct Hall {
    pub layout: Option<Value>,
    pub prices: Option<Value>,
    /// Ascending.
    pub sold_seats: Vec<u32>,
    /// Of standing tickets: price and number of each type.
    pub ticket_types: Vec<(i64, i64)>,
    pub places_sold: i64,
}

/// One event, or those that start last.
pub fn hall_list(tx: &mut Tx<'_>, id: Option<Uuid>, limit: u32) -> Result<Vec<Hall>, StorageError> {
    let events: Vec<(Uuid, Option<Value>, Option<Value>)> = tx.query(
        "select id, layout, prices from events where title is not null and ($1 or id = $2) \
         order by starts_at desc, id limit $3",
        params![id.is_none(), id.unwrap_or(Uuid::nil()), limit],
        |row| Ok((row.get("id")?, row.get("layout")?, row.get("prices")?)),
    )?;
    let mut halls = Vec::with_capacity(events.len());
    for (id, layout, prices) in events {
        let sold_seats = tx.query(
            "select seat_id from sold_seats where event_id = $1 and sold > 0 order by seat_id",
            params![id],
            |row| row.get("seat_id"),
        )?;
        let ticket_types = tx.query(
            "select price, total from ticket_types where event_id = $1",
            params![id],
            |row| Ok((row.get("price")?, row.get("total")?)),
        )?;
        let places_sold = tx.query_one(
            "select coalesce(sum(places_sold), 0)::bigint as sold from event_figures \
             where event_id = $1",
            params![id],
            |row| row.get("sold"),
        )?;
        halls.push(Hall { layout, prices, sold_seats, ticket_types, places_sold });
    }
    Ok(halls)
}

/// The bytes that the tables of this service take.
pub fn storage_bytes(tx: &mut Tx<'_>) -> Result<i64, StorageError> {
    let sql = match tx.is_postgres() {
        true => {
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes \
             from pg_class c join pg_namespace n on n.oid = c.relnamespace \
             where n.nspname = current_schema() and c.relkind = 'r'"
        }
        false => {
            "select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()"
        }
    };
    tx.query_one(sql, &[], |row| row.get("bytes"))
}
