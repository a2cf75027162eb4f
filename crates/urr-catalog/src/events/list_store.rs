//! The SQL of event lists and of the counts on the dashboard.

use std::time::Duration;

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{DbResult, TIME_MAX, TIME_MIN, ToValue, Tx, Value, from_row};
use utoipa::ToSchema;

use super::search_store::search_condition;
use super::store::{COLUMNS, FROM, event_from_row};
use crate::events::rules::EventRecord;
use crate::events::schedule::EventStatus;
use crate::events::{EventListFilter, EventListOrder};
use crate::response_cache::ExpiryHint;
use crate::sql::Conditions;

/// One page of the events that match a filter, and their total.
pub fn event_list(
    tx: &mut Tx<'_>,
    filter: &EventListFilter,
    page: Page,
    now: Timestamp,
) -> DbResult<(Vec<EventRecord>, u64)> {
    let patterns = filter.search.as_ref().map(|search| search.patterns()).unwrap_or_default();
    let visible = if filter.with_deleted { "1 = 1" } else { "e.deleted_at is null" };
    let mut conditions = Conditions::new(visible);
    if let Some(status) = filter.status {
        status_condition(&mut conditions, status, now);
    }
    if let Some(artist_id) = &filter.artist_id {
        conditions.and("e.artist_id = ?", artist_id.to_value());
    }
    if let Some(organiser_id) = &filter.organiser_id {
        conditions.and("e.organiser_id = ?", organiser_id.to_value());
    }
    // Both bounds are always there, so that the database prepares fewer statements.
    let (from, to) = (filter.from.unwrap_or(TIME_MIN), filter.to.unwrap_or(TIME_MAX));
    conditions.and("e.starts_at >= ?", Value::Time(from));
    conditions.and("e.starts_at < ?", Value::Time(to));
    if let Some(search) = &filter.search {
        search_condition(&mut conditions, search, &patterns);
    }
    let count = format!("select count(*) as total from events e where {}", conditions.sql());
    let total = tx.query_one(&count, conditions.values(), |row| row.get("total"))?;
    let (limit, offset) = (page.limit(), page.offset());
    let limit = conditions.value(limit.to_value());
    let offset = conditions.value(offset.to_value());
    let order = match filter.sort {
        EventListOrder::SaleStart => "e.sale_starts_at, e.id",
        EventListOrder::Date => "e.starts_at, e.id",
        EventListOrder::Title => "e.title collate \"C\", e.id",
        EventListOrder::Newest => "e.id desc",
    };
    let sql = format!(
        "select {COLUMNS} from {FROM} where {} order by {order} limit {limit} offset {offset}",
        conditions.sql(),
    );
    Ok((tx.query(&sql, conditions.values(), event_from_row)?, total))
}

/// Filters by the status that follows from the times, not by the announced one.
fn status_condition(conditions: &mut Conditions<'_>, status: EventStatus, now: Timestamp) {
    let now = Value::Time(now);
    if status == EventStatus::Cancelled {
        conditions.and_sql("e.status = 'cancelled'");
        return;
    }
    conditions.and_sql("e.status <> 'cancelled'");
    match status {
        EventStatus::Upcoming => conditions.and("e.sale_starts_at > ?", now),
        EventStatus::OnSale => {
            conditions.and("(e.sale_starts_at <= ? and e.sale_ends_at > ?)", now)
        }
        EventStatus::Ended => conditions.and("e.sale_ends_at <= ?", now),
        EventStatus::Cancelled => unreachable!("the function returned above"),
    }
}

/// When the next sale opens or ends, and whether one opens about now.
pub fn expiry_hint_load(
    tx: &mut Tx<'_>,
    now: Timestamp,
    distance: Duration,
) -> DbResult<ExpiryHint> {
    tx.query_one(
        "select (select min(sale_starts_at) from events where sale_starts_at > $1 \
             and deleted_at is null) as opens, \
         (select min(sale_ends_at) from events where sale_ends_at > $1 \
             and status in ('upcoming', 'on_sale') and deleted_at is null) as ends, \
         (select count(*) from events where sale_starts_at >= $2 and sale_starts_at <= $3 \
             and deleted_at is null) as near",
        &[now.to_value(), (now - distance).to_value(), (now + distance).to_value()],
        |row| {
            let times: [Option<Timestamp>; 2] = [row.get("opens")?, row.get("ends")?];
            let near: u64 = row.get("near")?;
            let next_change = times.into_iter().flatten().min();
            Ok(ExpiryHint { next_change, is_near_opening: near > 0 })
        },
    )
}

/// The catalogue's numbers on the dashboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CatalogCountsView)]
pub struct CatalogCounts {
    /// All events that are not deleted.
    pub total_events: u64,
    pub upcoming: u64,
    pub on_sale: u64,
    pub ended: u64,
    pub cancelled: u64,
    /// Events that are neither cancelled nor over, and cannot be booked yet.
    pub not_ready: u64,
    pub deleted: u64,
    pub artists: u64,
    pub venues: u64,
    pub halls: u64,
    pub images: u64,
}

/// The events of one organiser, or all. Artists, venues, halls and images belong to nobody.
pub fn counts_load(
    tx: &mut Tx<'_>,
    organiser_id: Option<Uuid>,
    now: Timestamp,
) -> DbResult<CatalogCounts> {
    let mut values = vec![now.to_value()];
    values.extend(organiser_id.map(Value::Uuid));
    let events = match organiser_id {
        Some(_) => "events where organiser_id = $2 and",
        None => "events where",
    };
    let live = "deleted_at is null and status <> 'cancelled'";
    let sql = format!(
        "select (select count(*) from {events} deleted_at is null) as total_events, \
         (select count(*) from {events} {live} and sale_starts_at > $1) as upcoming, \
         (select count(*) from {events} {live} and sale_starts_at <= $1 \
             and sale_ends_at > $1) as on_sale, \
         (select count(*) from {events} {live} and sale_ends_at <= $1) as ended, \
         (select count(*) from {events} deleted_at is null and status = 'cancelled') \
             as cancelled, \
         (select count(*) from {events} {live} and sale_ends_at > $1 \
             and inventory_ready = false) as not_ready, \
         (select count(*) from {events} deleted_at is not null) as deleted, \
         (select count(*) from artists) as artists, (select count(*) from venues) as venues, \
         (select count(*) from halls) as halls, (select count(*) from images) as images"
    );
    tx.query_one(&sql, &values, |row| {
        Ok(from_row!(row => CatalogCounts {
            total_events, upcoming, on_sale, ended, cancelled, not_ready, deleted, artists, venues,
            halls, images
        }))
    })
}
