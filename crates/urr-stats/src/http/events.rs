//! Sales by event.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, Errors, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};

use super::{StatsAnswer, answer, clamp, title_or_id};
use crate::StatsService;
use crate::domain::{StatsCounter, percent};
use crate::store::event_queries::{EventStats, EventStatsOrder};

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
    sort_by: Option<EventStatsSort>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum EventStatsSort {
    Revenue,
    Reservations,
    Occupancy,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventStatsView {
    id: Uuid,
    title: String,
    venue: Option<String>,
    event_date: Option<String>,
    status: Option<String>,
    reservations: i64,
    confirmed_reservations: i64,
    revenue: i64,
    total_seats: i64,
    sold_seats: i64,
    occupancy_rate: f64,
}

impl From<EventStats> for EventStatsView {
    fn from(event: EventStats) -> EventStatsView {
        let sold = event.counters.of(StatsCounter::PlacesSold);
        EventStatsView {
            id: event.id,
            title: title_or_id(event.title, event.id),
            venue: event.venue,
            event_date: event.starts_at.map(|time| time.to_string()),
            status: event.status,
            reservations: event.counters.of(StatsCounter::Created),
            confirmed_reservations: event.counters.of(StatsCounter::Confirmed),
            revenue: event.counters.revenue(),
            total_seats: event.places,
            sold_seats: sold,
            occupancy_rate: percent(sold, event.places),
        }
    }
}

/// Lists events with their sales, best first.
///
/// For administrators. `sortBy` is `revenue` (the default), `reservations` or `occupancy`.
#[utoipa::path(
    get, path = "/api/stats/events", tag = "statistics", params(EventsQuery),
    responses((status = 200, body = StatsAnswer<Vec<EventStatsView>>), Errors<401, 403>),
)]
pub(super) async fn list_event_stats(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<EventsQuery>,
) -> Result<Json<StatsAnswer<Vec<EventStatsView>>>, ApiError> {
    let order = match query.sort_by.unwrap_or(EventStatsSort::Revenue) {
        EventStatsSort::Revenue => EventStatsOrder::Revenue,
        EventStatsSort::Reservations => EventStatsOrder::Reservations,
        EventStatsSort::Occupancy => EventStatsOrder::Occupancy,
    };
    let limit = u32::from(clamp(query.limit, EVENTS_DEFAULT, EVENTS_MAX));
    let events = stats.events(order, limit).await?;
    answer(&stats, events.into_iter().map(EventStatsView::from).collect()).await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventSalesView {
    overview: EventOverviewView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventOverviewView {
    id: Uuid,
    title: String,
    venue: Option<String>,
    event_date: Option<String>,
    status: Option<String>,
    total_reservations: i64,
    confirmed_reservations: i64,
    /// Holds that are not paid yet.
    pending_reservations: i64,
    cancelled_reservations: i64,
    expired_reservations: i64,
    total_revenue: i64,
    total_seats: i64,
    sold_seats: i64,
    /// Seats that are not sold.
    available_seats: i64,
    occupancy_rate: f64,
}

/// Returns the sales of one event.
///
/// For administrators. Errors: 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/stats/events/{eventId}", tag = "statistics", params(("eventId" = Uuid, Path)),
    responses((status = 200, body = StatsAnswer<EventSalesView>), Errors<401, 403, 404>),
)]
pub(super) async fn get_event_stats(
    State(stats): State<StatsService>,
    _admin: Admin,
    Path(id): Path<Uuid>,
) -> Result<Json<StatsAnswer<EventSalesView>>, ApiError> {
    let not_found = || ApiError::not_found("EVENT_NOT_FOUND", "There is no such event.");
    let event = stats.event(id).await?.ok_or_else(not_found)?;
    let counters = &event.counters;
    let sold = counters.of(StatsCounter::PlacesSold);
    let overview = EventOverviewView {
        id: event.id,
        title: title_or_id(event.title, event.id),
        venue: event.venue,
        event_date: event.starts_at.map(|time| time.to_string()),
        status: event.status,
        total_reservations: counters.of(StatsCounter::Created),
        confirmed_reservations: counters.of(StatsCounter::Confirmed),
        pending_reservations: counters.of(StatsCounter::Pending),
        cancelled_reservations: counters.of(StatsCounter::Cancelled),
        expired_reservations: counters.of(StatsCounter::Expired),
        total_revenue: counters.revenue(),
        total_seats: event.places,
        sold_seats: sold,
        available_seats: (event.places - sold).max(0),
        occupancy_rate: percent(sold, event.places),
    };
    answer(&stats, EventSalesView { overview }).await
}
