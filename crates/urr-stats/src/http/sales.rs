//! What was sold and what it brought in.

use axum::extract::State;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};

use super::{DaysQuery, Envelope, answer, clamp, title_or_id};
use crate::Stats;
use crate::domain::{Figure, Figures, MethodFigures, Period, average, percent};
use crate::store::looks::{EventLook, EventOrder};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OverviewView {
    /// Accounts that were opened and not closed.
    total_users: i64,
    /// Events on sale at this moment.
    active_events: i64,
    total_reservations: i64,
    confirmed_reservations: i64,
    cancelled_reservations: i64,
    expired_reservations: i64,
    /// What payments took less what refunds gave back.
    total_revenue: i64,
    completed_payments: i64,
    /// What payments took.
    payment_revenue: i64,
    /// What refunds gave back.
    refunds: i64,
    transfers: i64,
    memberships: i64,
}

/// Everything since the beginning.
#[utoipa::path(
    get, path = "/api/stats/overview", tag = "statistics",
    responses(
        (status = 200, body = Envelope<OverviewView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_overview(
    State(stats): State<Stats>,
    _admin: Admin,
) -> Result<Json<Envelope<OverviewView>>, ApiError> {
    let overview = stats.overview().await?;
    let totals = &overview.totals;
    answer(
        &stats,
        OverviewView {
            total_users: totals.of(Figure::Registered) - totals.of(Figure::Deleted),
            active_events: overview.events.on_sale,
            total_reservations: totals.of(Figure::Created),
            confirmed_reservations: totals.of(Figure::Confirmed),
            cancelled_reservations: totals.of(Figure::Cancelled),
            expired_reservations: totals.of(Figure::Expired),
            total_revenue: totals.revenue(),
            completed_payments: totals.of(Figure::Charges),
            payment_revenue: totals.of(Figure::Charged),
            refunds: totals.of(Figure::Refunded),
            transfers: totals.of(Figure::Transfers),
            memberships: totals.of(Figure::Memberships),
        },
    )
    .await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DayView {
    #[schema(example = "2026-11-15")]
    date: String,
    reservations: i64,
    confirmed: i64,
    cancelled: i64,
    expired: i64,
    /// What payments took less what refunds gave back, each on its day: it may be below zero.
    revenue: i64,
    /// What refunds gave back.
    refunds: i64,
    transfers: i64,
    memberships: i64,
    new_users: i64,
}

/// The days on which something happened, newest first.
#[utoipa::path(
    get, path = "/api/stats/daily", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = Envelope<Vec<DayView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_days(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<Envelope<Vec<DayView>>>, ApiError> {
    let days = stats.hours(query.days()).await?.by_day();
    let view = |(day, figures): (Date, Figures)| DayView {
        date: day.to_string(),
        reservations: figures.of(Figure::Created),
        confirmed: figures.of(Figure::Confirmed),
        cancelled: figures.of(Figure::Cancelled),
        expired: figures.of(Figure::Expired),
        revenue: figures.revenue(),
        refunds: figures.of(Figure::Refunded),
        transfers: figures.of(Figure::Transfers),
        memberships: figures.of(Figure::Memberships),
        new_users: figures.of(Figure::Registered),
    };
    answer(&stats, days.into_iter().rev().map(view).collect()).await
}

const EVENTS_DEFAULT: u16 = 10;
const EVENTS_MAX: u16 = 100;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventsQuery {
    /// 10 if it is not given, at most 100.
    limit: Option<i64>,
    /// `revenue` if it is not given.
    sort_by: Option<SortBy>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum SortBy {
    Revenue,
    Reservations,
    Occupancy,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventFiguresView {
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

impl From<EventLook> for EventFiguresView {
    fn from(event: EventLook) -> EventFiguresView {
        let sold = event.figures.of(Figure::PlacesSold);
        EventFiguresView {
            id: event.id,
            title: title_or_id(event.title, event.id),
            venue: event.venue,
            event_date: event.starts_at.map(|time| time.to_string()),
            status: event.status,
            reservations: event.figures.of(Figure::Created),
            confirmed_reservations: event.figures.of(Figure::Confirmed),
            revenue: event.figures.revenue(),
            total_seats: event.places,
            sold_seats: sold,
            occupancy_rate: percent(sold, event.places),
        }
    }
}

/// Events with their figures, the best first.
#[utoipa::path(
    get, path = "/api/stats/events", tag = "statistics", params(EventsQuery),
    responses(
        (status = 200, body = Envelope<Vec<EventFiguresView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_event_figures(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<EventsQuery>,
) -> Result<Json<Envelope<Vec<EventFiguresView>>>, ApiError> {
    let order = match query.sort_by.unwrap_or(SortBy::Revenue) {
        SortBy::Revenue => EventOrder::Revenue,
        SortBy::Reservations => EventOrder::Reservations,
        SortBy::Occupancy => EventOrder::Occupancy,
    };
    let limit = u32::from(clamp(query.limit, EVENTS_DEFAULT, EVENTS_MAX));
    let events = stats.events(order, limit).await?;
    answer(&stats, events.into_iter().map(EventFiguresView::from).collect()).await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventDetailView {
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
    /// Waiting for their payment.
    pending_reservations: i64,
    cancelled_reservations: i64,
    expired_reservations: i64,
    total_revenue: i64,
    total_seats: i64,
    sold_seats: i64,
    /// Those that are not sold.
    available_seats: i64,
    occupancy_rate: f64,
}

/// One event with its figures.
#[utoipa::path(
    get, path = "/api/stats/events/{eventId}", tag = "statistics", params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = Envelope<EventDetailView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
pub(super) async fn get_event_figures(
    State(stats): State<Stats>,
    _admin: Admin,
    Path(id): Path<Uuid>,
) -> Result<Json<Envelope<EventDetailView>>, ApiError> {
    let not_found = || ApiError::not_found("EVENT_NOT_FOUND", "There is no such event.");
    let event = stats.event(id).await?.ok_or_else(not_found)?;
    let figures = &event.figures;
    let sold = figures.of(Figure::PlacesSold);
    let overview = EventOverviewView {
        id: event.id,
        title: title_or_id(event.title, event.id),
        venue: event.venue,
        event_date: event.starts_at.map(|time| time.to_string()),
        status: event.status,
        total_reservations: figures.of(Figure::Created),
        confirmed_reservations: figures.of(Figure::Confirmed),
        pending_reservations: figures.of(Figure::Pending),
        cancelled_reservations: figures.of(Figure::Cancelled),
        expired_reservations: figures.of(Figure::Expired),
        total_revenue: figures.revenue(),
        total_seats: event.places,
        sold_seats: sold,
        available_seats: (event.places - sold).max(0),
        occupancy_rate: percent(sold, event.places),
    };
    answer(&stats, EventDetailView { overview }).await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaymentMethodView {
    #[schema(example = "card")]
    method: String,
    count: i64,
    total_amount: i64,
    average_amount: i64,
    refund_count: i64,
    refund_amount: i64,
}

/// What was paid in which way, the most used first.
#[utoipa::path(
    get, path = "/api/stats/payments", tag = "statistics",
    responses(
        (status = 200, body = Envelope<Vec<PaymentMethodView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_payment_methods(
    State(stats): State<Stats>,
    _admin: Admin,
) -> Result<Json<Envelope<Vec<PaymentMethodView>>>, ApiError> {
    let view = |(method, figures): (String, MethodFigures)| PaymentMethodView {
        method,
        count: figures.charges,
        total_amount: figures.charged,
        average_amount: average(figures.charged, figures.charges),
        refund_count: figures.refunds,
        refund_amount: figures.refunded,
    };
    answer(&stats, stats.methods().await?.into_iter().map(view).collect()).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RevenueQuery {
    /// `daily` if it is not given.
    period: Option<PeriodName>,
    /// How many days to look back, today included; 30 if it is not given, at most 365.
    days: Option<i64>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum PeriodName {
    Daily,
    Weekly,
    Monthly,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RevenueView {
    /// The day, the Monday of the week, or the month.
    #[schema(example = "2026-11-09")]
    period: String,
    payment_count: i64,
    /// What payments took less what refunds gave back.
    total_revenue: i64,
    /// What a payment took on average.
    average_amount: i64,
    refunds: i64,
}

/// What came in by day, week or month, newest first.
#[utoipa::path(
    get, path = "/api/stats/revenue", tag = "statistics", params(RevenueQuery),
    responses(
        (status = 200, body = Envelope<Vec<RevenueView>>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn list_revenue(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<RevenueQuery>,
) -> Result<Json<Envelope<Vec<RevenueView>>>, ApiError> {
    let period = match query.period.unwrap_or(PeriodName::Daily) {
        PeriodName::Daily => Period::Day,
        PeriodName::Weekly => Period::Week,
        PeriodName::Monthly => Period::Month,
    };
    let hours = stats.hours(DaysQuery { days: query.days }.days()).await?;
    let has_money = |(_, figures): &(String, Figures)| {
        figures.of(Figure::Charges) != 0 || figures.of(Figure::Refunds) != 0
    };
    let view = |(period, figures): (String, Figures)| RevenueView {
        period,
        payment_count: figures.of(Figure::Charges),
        total_revenue: figures.revenue(),
        average_amount: average(figures.of(Figure::Charged), figures.of(Figure::Charges)),
        refunds: figures.of(Figure::Refunded),
    };
    let periods = hours.by_period(period).into_iter().rev();
    answer(&stats, periods.filter(has_money).map(view).collect()).await
}
