//! When people come, and what becomes of what they began.

use axum::extract::State;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::{IntoParams, ToSchema};

use super::{DaysQuery, Envelope, answer, clamp, title_or_id};
use crate::Stats;
use crate::domain::{
    Figure, Figures, Hours, Reservation, average, is_weekend, percent, ratio_number,
};
use crate::reading::Realtime;
use crate::store::looks::EventLook;

const TRAFFIC_DAYS_DEFAULT: u16 = 7;
const TRAFFIC_DAYS_MAX: u16 = 90;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TrafficQuery {
    /// How many days to look back, today included; 7 if it is not given, at most 90.
    days: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HourlyTrafficView {
    /// From 0 to 23.
    hourly: Vec<HourView>,
    weekday_comparison: Vec<DayTypeView>,
    /// The hour with the most reservations; of several the first.
    peak_hour: PeakHourView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HourView {
    hour: u8,
    total_reservations: i64,
    confirmed: i64,
    cancelled: i64,
    revenue: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DayTypeView {
    /// `weekday` or `weekend`.
    day_type: &'static str,
    reservations: i64,
    /// What a payment took on average.
    avg_amount: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PeakHourView {
    hour: u8,
    reservations: i64,
}

/// What happens at which hour of the day.
#[utoipa::path(
    get, path = "/api/stats/hourly-traffic", tag = "statistics", params(TrafficQuery),
    responses(
        (status = 200, body = Envelope<HourlyTrafficView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_hourly_traffic(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<TrafficQuery>,
) -> Result<Json<Envelope<HourlyTrafficView>>, ApiError> {
    let days = clamp(query.days, TRAFFIC_DAYS_DEFAULT, TRAFFIC_DAYS_MAX);
    let hours = stats.hours(days).await?;
    let view = |(hour, figures): (u8, Figures)| HourView {
        hour,
        total_reservations: figures.of(Figure::Created),
        confirmed: figures.of(Figure::Confirmed),
        cancelled: figures.of(Figure::Cancelled),
        revenue: figures.revenue(),
    };
    let hourly: Vec<HourView> = hours.by_hour().into_iter().map(view).collect();
    let mut peak_hour = PeakHourView { hour: 0, reservations: 0 };
    for hour in &hourly {
        if hour.total_reservations > peak_hour.reservations {
            let reservations = hour.total_reservations;
            peak_hour = PeakHourView { hour: hour.hour, reservations };
        }
    }
    let weekday_comparison =
        vec![day_type(&hours, "weekday", false), day_type(&hours, "weekend", true)];
    answer(&stats, HourlyTrafficView { hourly, weekday_comparison, peak_hour }).await
}

fn day_type(hours: &Hours, day_type: &'static str, weekend: bool) -> DayTypeView {
    let figures = hours.total_where(|hour| is_weekend(hour.day) == weekend);
    DayTypeView {
        day_type,
        reservations: figures.of(Figure::Created),
        avg_amount: average(figures.of(Figure::Charged), figures.of(Figure::Charges)),
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversionView {
    funnel: FunnelView,
    rates: ConversionRatesView,
    /// By the day on which reservations were begun, newest first.
    daily_trend: Vec<ConversionDayView>,
}

/// What became of the reservations that were begun within the days.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FunnelView {
    total_started: i64,
    /// Paid and not cancelled since.
    completed: i64,
    cancelled: i64,
    expired: i64,
    pending: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConversionRatesView {
    conversion_rate: f64,
    cancellation_rate: f64,
    pending_rate: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConversionDayView {
    date: String,
    total: i64,
    completed: i64,
    conversion_rate: f64,
}

/// Reservations by when they were begun, whatever became of them.
fn started(figures: &Figures) -> i64 {
    let outcomes = [Figure::Completed, Figure::Dropped, Figure::Lapsed, Figure::Pending];
    outcomes.into_iter().map(|outcome| figures.of(outcome)).sum()
}

/// How many of the reservations that were begun are completed.
#[utoipa::path(
    get, path = "/api/stats/conversion", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = Envelope<ConversionView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_conversion(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<Envelope<ConversionView>>, ApiError> {
    let hours = stats.hours(query.days()).await?;
    let totals = hours.total();
    let funnel = FunnelView {
        total_started: started(&totals),
        completed: totals.of(Figure::Completed),
        cancelled: totals.of(Figure::Dropped),
        expired: totals.of(Figure::Lapsed),
        pending: totals.of(Figure::Pending),
    };
    let view = |(day, figures): (Date, Figures)| {
        let (total, completed) = (started(&figures), figures.of(Figure::Completed));
        let conversion_rate = percent(completed, total);
        ConversionDayView { date: day.to_string(), total, completed, conversion_rate }
    };
    let days = hours.by_day().into_iter().rev().map(view);
    answer(
        &stats,
        ConversionView {
            rates: ConversionRatesView {
                conversion_rate: percent(funnel.completed, funnel.total_started),
                cancellation_rate: percent(funnel.cancelled, funnel.total_started),
                pending_rate: percent(funnel.pending, funnel.total_started),
            },
            funnel,
            daily_trend: days.filter(|day| day.total > 0).collect(),
        },
    )
    .await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancellationsView {
    overview: CancellationOverviewView,
    /// From 0 to 23.
    hourly_pattern: Vec<CancellationHourView>,
    /// At most ten, the most cancelled first.
    by_event: Vec<CancelledEventView>,
    /// Newest first.
    daily_trend: Vec<CancellationDayView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancellationOverviewView {
    total_cancelled: i64,
    /// From reserving to cancelling.
    avg_hours_before_cancel: f64,
    /// What was promised to be given back.
    total_refund_amount: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancellationHourView {
    hour: u8,
    cancellations: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancelledEventView {
    id: Uuid,
    title: String,
    total_reservations: i64,
    cancelled: i64,
    cancellation_rate: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancellationDayView {
    date: String,
    cancellations: i64,
}

/// What was cancelled within the days.
#[utoipa::path(
    get, path = "/api/stats/cancellations", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = Envelope<CancellationsView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_cancellations(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<Envelope<CancellationsView>>, ApiError> {
    let found = stats.cancellations(query.days()).await?;
    let totals = found.hours.total();
    let hour = |(hour, figures): (u8, Figures)| CancellationHourView {
        hour,
        cancellations: figures.of(Figure::Cancelled),
    };
    let day = |(day, figures): (Date, Figures)| CancellationDayView {
        date: day.to_string(),
        cancellations: figures.of(Figure::Cancelled),
    };
    let seconds = totals.of(Figure::CancelledSeconds);
    let by_event = found.events.into_iter().map(CancelledEventView::from);
    let days = found.hours.by_day().into_iter().rev().map(day);
    answer(
        &stats,
        CancellationsView {
            overview: CancellationOverviewView {
                total_cancelled: totals.of(Figure::Cancelled),
                avg_hours_before_cancel: ratio_number(seconds, 3_600 * totals.of(Figure::Cancels)),
                total_refund_amount: totals.of(Figure::Owed),
            },
            hourly_pattern: found.hours.by_hour().into_iter().map(hour).collect(),
            by_event: by_event.filter(|event| event.cancelled > 0).collect(),
            daily_trend: days.filter(|day| day.cancellations > 0).collect(),
        },
    )
    .await
}

impl From<EventLook> for CancelledEventView {
    fn from(event: EventLook) -> CancelledEventView {
        let total_reservations = event.figures.of(Figure::Created);
        let cancelled = event.figures.of(Figure::Cancelled);
        CancelledEventView {
            id: event.id,
            title: title_or_id(event.title, event.id),
            total_reservations,
            cancelled,
            cancellation_rate: percent(cancelled, total_reservations),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RealtimeView {
    current: CurrentView,
    last_hour: LastHourView,
    /// The reservations that changed last, at most ten, newest first.
    recent_activity: Vec<RecentView>,
    /// At most five events, by reservations of the last hour.
    trending_events: Vec<TrendingView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CurrentView {
    /// Seats and standing tickets that are held and not paid.
    locked_seats: i64,
    /// Payments of the last hour.
    active_payments: i64,
    /// Who reserved or paid within the last hour.
    active_users: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastHourView {
    reservations: i64,
    revenue: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RecentView {
    #[schema(example = "confirmed")]
    status: &'static str,
    reservation_id: Uuid,
    event_id: Uuid,
    title: String,
    amount: i64,
    quantity: i64,
    at: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TrendingView {
    id: Uuid,
    title: String,
    recent_reservations: i64,
}

/// What happens now.
#[utoipa::path(
    get, path = "/api/stats/realtime", tag = "statistics",
    responses(
        (status = 200, body = Envelope<RealtimeView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_realtime(
    State(stats): State<Stats>,
    _admin: Admin,
) -> Result<Json<Envelope<RealtimeView>>, ApiError> {
    let Realtime { held_places, last_hour, recent, trending } = stats.realtime().await?;
    let trending = trending.into_iter().map(|(id, title, recent_reservations)| TrendingView {
        id,
        title: title_or_id(title, id),
        recent_reservations,
    });
    answer(
        &stats,
        RealtimeView {
            current: CurrentView {
                locked_seats: held_places,
                active_payments: last_hour.charges,
                active_users: last_hour.users,
            },
            last_hour: LastHourView {
                reservations: last_hour.reservations,
                revenue: last_hour.revenue,
            },
            recent_activity: recent.into_iter().map(recent_view).collect(),
            trending_events: trending.collect(),
        },
    )
    .await
}

fn recent_view((reservation, title): (Reservation, Option<String>)) -> RecentView {
    let terms = &reservation.terms;
    RecentView {
        status: reservation.state().name(),
        reservation_id: reservation.id,
        event_id: terms.event_id,
        title: title_or_id(title, terms.event_id),
        amount: terms.amount,
        quantity: terms.quantity,
        at: terms.at.to_string(),
    }
}
