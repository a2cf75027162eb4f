//! Sales by event.

use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{
    ApiError, CsvColumn, CsvLanguage, CsvQuery, CsvRow, Errors, Json, Path, Query, csv_row,
};
use utoipa::{IntoParams, ToSchema};

use super::{
    CsvRecord, EventStatsReader, StatsAnswer, StatsResult, clamp, csv_file, event_not_found,
    title_or_id,
};
use crate::domain::percent;
use crate::store::event_queries::{EventStats, EventStatsFilter, EventStatsOrder, event_list};

const EVENTS_DEFAULT: u16 = 10;
const EVENTS_MAX: u16 = 100;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventsQuery {
    /// 10 by default, at most 100.
    limit: Option<i64>,
    /// `revenue` by default.
    #[param(inline)]
    sort_by: Option<EventStatsOrder>,
}

/// An event and how many of its places are sold.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventPlacesView {
    id: Uuid,
    title: String,
    venue: Option<String>,
    event_date: Option<String>,
    status: Option<String>,
    total_seats: i64,
    sold_seats: i64,
    occupancy_rate: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventStatsView {
    #[serde(flatten)]
    event: EventPlacesView,
    reservations: i64,
    confirmed_reservations: i64,
    revenue: i64,
}

impl From<EventStats> for EventPlacesView {
    fn from(event: EventStats) -> EventPlacesView {
        let sold = event.counters.places_sold;
        EventPlacesView {
            id: event.id,
            title: title_or_id(event.title, event.id),
            venue: event.venue,
            event_date: event.starts_at.map(|time| time.to_string()),
            status: event.status,
            total_seats: event.places,
            sold_seats: sold,
            occupancy_rate: percent(sold, event.places),
        }
    }
}

impl From<EventStats> for EventStatsView {
    fn from(event: EventStats) -> EventStatsView {
        EventStatsView {
            reservations: event.counters.created,
            confirmed_reservations: event.counters.confirmed,
            revenue: event.counters.revenue(),
            event: event.into(),
        }
    }
}

/// Lists events with their sales, best first.
///
/// For organisers (their own events) and administrators (all). `sortBy` is `revenue` (the default),
/// `reservations` or `occupancy`.
#[utoipa::path(
    get, path = "/api/stats/events", tag = "statistics", params(EventsQuery),
    responses((status = 200, body = StatsAnswer<Vec<EventStatsView>>), Errors<401, 403>),
)]
pub(super) async fn list_event_stats(
    EventStatsReader { stats, scope }: EventStatsReader,
    Query(query): Query<EventsQuery>,
) -> StatsResult<Vec<EventStatsView>> {
    let order = query.sort_by.unwrap_or(EventStatsOrder::Revenue);
    let limit = u32::from(clamp(query.limit, EVENTS_DEFAULT, EVENTS_MAX));
    let organiser_id = scope.organiser_id();
    let filter = EventStatsFilter { since: None, id: None, organiser_id, order, limit };
    stats
        .answer(move |tx| {
            Ok(event_list(tx, &filter)?.into_iter().map(EventStatsView::from).collect())
        })
        .await
}

impl CsvRecord for EventStatsView {
    const COLUMNS: &'static [CsvColumn] = &[
        CsvColumn("공연 ID", "Event"),
        CsvColumn("공연명", "Title"),
        CsvColumn("공연장", "Venue"),
        CsvColumn("공연 일시", "Starts at (UTC)"),
        CsvColumn("상태", "Status"),
        CsvColumn("전체 좌석", "Seats"),
        CsvColumn("판매 좌석", "Sold seats"),
        CsvColumn("판매율(%)", "Sold (%)"),
        CsvColumn("예매", "Reservations"),
        CsvColumn("확정", "Confirmed"),
        CsvColumn("매출(원)", "Revenue (won)"),
    ];

    fn row(&self) -> CsvRow {
        let event = &self.event;
        csv_row![
            event.id,
            event.title.as_str(),
            event.venue.as_deref(),
            event.event_date.as_deref(),
            event.status.as_deref(),
            event.total_seats,
            event.sold_seats,
            event.occupancy_rate,
            self.reservations,
            self.confirmed_reservations,
            self.revenue,
        ]
    }
}

/// Returns events with their sales as a CSV file.
///
/// For organisers (their own events) and administrators (all). Errors: 400 `INVALID_LANGUAGE`; 503
/// `STATISTICS_REBUILDING`.
#[utoipa::path(
    get, path = "/api/stats/events.csv", tag = "statistics", params(EventsQuery, CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403>),
)]
pub(super) async fn export_event_stats(
    reader: EventStatsReader,
    query: Query<EventsQuery>,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let Json(list) = list_event_stats(reader, query).await?;
    csv_file("events", language, list.rebuilding, &list.data)
}

#[derive(Serialize, ToSchema)]
pub(super) struct EventSalesView {
    overview: EventOverviewView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventOverviewView {
    #[serde(flatten)]
    event: EventPlacesView,
    total_reservations: i64,
    confirmed_reservations: i64,
    /// Holds that are not paid yet.
    pending_reservations: i64,
    cancelled_reservations: i64,
    expired_reservations: i64,
    total_revenue: i64,
    /// Seats that are neither sold nor kept out of the sale.
    available_seats: i64,
}

impl From<EventStats> for EventOverviewView {
    fn from(event: EventStats) -> EventOverviewView {
        let counters = &event.counters;
        EventOverviewView {
            total_reservations: counters.created,
            confirmed_reservations: counters.confirmed,
            pending_reservations: counters.pending,
            cancelled_reservations: counters.cancelled,
            expired_reservations: counters.expired,
            total_revenue: counters.revenue(),
            available_seats: (event.places - counters.places_sold - event.blocked).max(0),
            event: event.into(),
        }
    }
}

/// Returns the sales of one event.
///
/// For its organiser and administrators. Errors: 404 `EVENT_NOT_FOUND`, also for somebody else's
/// event.
#[utoipa::path(
    get, path = "/api/stats/events/{eventId}", tag = "statistics", params(("eventId" = Uuid, Path)),
    responses((status = 200, body = StatsAnswer<EventSalesView>), Errors<401, 403, 404>),
)]
pub(super) async fn get_event_stats(
    EventStatsReader { stats, scope }: EventStatsReader,
    Path(id): Path<Uuid>,
) -> StatsResult<EventSalesView> {
    let order = EventStatsOrder::Revenue;
    let organiser_id = scope.organiser_id();
    let filter = EventStatsFilter { since: None, id: Some(id), organiser_id, order, limit: 1 };
    stats
        .answer(move |tx| {
            let event = event_list(tx, &filter)?.pop().ok_or_else(event_not_found)?;
            Ok(EventSalesView { overview: event.into() })
        })
        .await
}
