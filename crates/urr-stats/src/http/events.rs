//! Sales by event.

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Errors, Path, Query};
use utoipa::{IntoParams, ToSchema};

use super::{EventStatsReader, StatsAnswer, StatsResult, clamp, event_not_found, title_or_id};
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
/// For organisers (their own events) and administrators (all). `sortBy` is `revenue` (the default), `reservations` or `occupancy`.
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
    /// Seats that are not sold.
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
            available_seats: (event.places - counters.places_sold).max(0),
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
