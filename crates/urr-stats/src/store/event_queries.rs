//! Reads events with their counters, and the sales of halls.

use jiff::civil::Date;
use serde::Deserialize;
use serde_json::Value;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, from_row, params};
use utoipa::ToSchema;

use super::counter_queries::{COLUMN_SUMS, COLUMNS, counters_read};
use super::day_read;
use crate::domain::{HallSales, StatsCounters};

/// An event with its counters.
pub struct EventStats {
    pub id: Uuid,
    /// None until the catalog has announced the event.
    pub title: Option<String>,
    pub venue: Option<String>,
    pub starts_at: Option<Timestamp>,
    pub status: Option<String>,
    pub places: i64,
    /// House seats: places that are not for sale.
    pub blocked: i64,
    pub counters: StatsCounters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum EventStatsOrder {
    Revenue,
    Reservations,
    Occupancy,
    /// Not for clients.
    #[serde(skip)]
    Cancellations,
}

impl EventStatsOrder {
    fn sql(self) -> &'static str {
        match self {
            EventStatsOrder::Revenue => "charged - refunded",
            EventStatsOrder::Reservations => "created",
            EventStatsOrder::Occupancy => {
                "case when places = 0 then 0 else places_sold * 1000000 / places end"
            }
            EventStatsOrder::Cancellations => "cancelled",
        }
    }
}

/// Which events are listed, with counters since a day or of all time.
pub struct EventStatsFilter {
    pub since: Option<Date>,
    pub id: Option<Uuid>,
    /// Only the events of this organiser.
    pub organiser_id: Option<Uuid>,
    pub order: EventStatsOrder,
    pub limit: u32,
}

pub fn event_list(tx: &mut Tx<'_>, filter: &EventStatsFilter) -> DbResult<Vec<EventStats>> {
    let (sums, order) = (&*COLUMN_SUMS, filter.order.sql());
    let sql = format!(
        "select id, title, venue, starts_at, status, places, blocked, {sums} \
         from events left join event_counters on event_id = id and day >= $1 \
         where ($2 or id = $3) and ($5 or organiser_id = $6) \
         group by id, title, venue, starts_at, status, places, blocked"
    );
    let columns = &*COLUMNS;
    let sql = format!(
        "select id, title, venue, starts_at, status, places, blocked, {columns} from ({sql}) as stats \
         order by {order} desc, created desc, id limit $4"
    );
    let since = filter.since.map(|day| day.to_string()).unwrap_or_default();
    let id = filter.id.unwrap_or(Uuid::nil());
    let organiser_id = filter.organiser_id.unwrap_or(Uuid::nil());
    let all = (filter.id.is_none(), filter.organiser_id.is_none());
    let values = params![since, all.0, id, filter.limit, all.1, organiser_id];
    tx.query(&sql, values, |row| {
        Ok(from_row!(row => EventStats {
            id, title, venue, starts_at, status, places, blocked;
            counters: counters_read(row)?,
        }))
    })
}

/// The last days of an event with counters, oldest first.
pub fn event_day_list(
    tx: &mut Tx<'_>,
    id: Uuid,
    limit: u32,
) -> DbResult<Vec<(Date, StatsCounters)>> {
    let columns = &*COLUMNS;
    let sql = format!(
        "select day, {columns} from event_counters where event_id = $1 order by day desc limit $2"
    );
    let mut days =
        tx.query(&sql, params![id, limit], |row| Ok((day_read(row)?, counters_read(row)?)))?;
    days.reverse();
    Ok(days)
}

/// The number of announced events, of those on sale, and of their places.
pub struct EventCounts {
    pub events: i64,
    pub on_sale: i64,
    pub places: i64,
}

pub fn event_counts(tx: &mut Tx<'_>) -> DbResult<EventCounts> {
    tx.query_one(
        "select count(*) as events, coalesce(sum(places), 0)::bigint as places, \
         coalesce(sum(case when status = 'on_sale' then 1 else 0 end), 0)::bigint as on_sale \
         from events where title is not null",
        &[],
        |row| Ok(from_row!(row => EventCounts { events, on_sale, places })),
    )
}

pub fn event_title(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<String>> {
    let found: Option<Option<String>> =
        tx.query_opt("select title from events where id = $1", params![id], |row| {
            row.get("title")
        })?;
    Ok(found.flatten())
}

/// The events with the most reservations since a time.
pub fn trending_list(tx: &mut Tx<'_>, since: Timestamp, limit: u32) -> DbResult<Vec<(Uuid, i64)>> {
    tx.query(
        "select event_id, count(*) as reservations from reservations where created_at >= $1 \
         group by event_id order by reservations desc, event_id limit $2",
        params![since, limit],
        |row| Ok((row.get("event_id")?, row.get("reservations")?)),
    )
}

/// One event, or the events that start last.
pub fn hall_sales_list(tx: &mut Tx<'_>, id: Option<Uuid>, limit: u32) -> DbResult<Vec<HallSales>> {
    let halls = tx.query(
        "select id, layout, prices from events where title is not null and ($1 or id = $2) \
         order by starts_at desc, id limit $3",
        params![id.is_none(), id.unwrap_or(Uuid::nil()), limit],
        |row| {
            let layout: Option<Value> = row.get("layout")?;
            let prices: Option<Value> = row.get("prices")?;
            let layout = layout.map(|layout| {
                serde_json::from_value(layout).expect("it was read when it was stored")
            });
            let prices = prices.and_then(|prices| serde_json::from_value(prices).ok());
            Ok((row.get::<Uuid>("id")?, layout, prices.unwrap_or_default()))
        },
    )?;
    let mut sales = Vec::with_capacity(halls.len());
    for (id, layout, prices) in halls {
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
            "select coalesce(sum(places_sold), 0)::bigint as sold from event_counters \
             where event_id = $1",
            params![id],
            |row| row.get("sold"),
        )?;
        sales.push(HallSales { layout, prices, sold_seats, ticket_types, places_sold });
    }
    Ok(sales)
}
