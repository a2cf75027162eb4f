//! Sales in total, by day, by payment method and by period.

use axum::extract::State;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use urr_service::{Admin, ApiError, Errors, Json, Query};
use utoipa::{IntoParams, ToSchema};

use super::{DaysQuery, StatsAnswer, answer};
use crate::StatsService;
use crate::domain::{MethodTotals, StatsCounter, StatsCounters, StatsPeriod, average};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OverviewView {
    /// Accounts that are open.
    total_users: i64,
    /// Events on sale at this moment.
    active_events: i64,
    total_reservations: i64,
    confirmed_reservations: i64,
    cancelled_reservations: i64,
    expired_reservations: i64,
    /// Charges less refunds.
    total_revenue: i64,
    completed_payments: i64,
    /// The amount charged.
    payment_revenue: i64,
    /// The amount refunded.
    refunds: i64,
    transfers: i64,
    memberships: i64,
}

/// Returns the totals since the beginning.
///
/// For administrators. Revenue is what was charged less what was refunded, each on its own day.
/// While `rebuilding` is true the statistics are being counted again and are too small.
#[utoipa::path(
    get, path = "/api/stats/overview", tag = "statistics",
    responses((status = 200, body = StatsAnswer<OverviewView>), Errors<401, 403>),
)]
pub(super) async fn get_overview(
    State(stats): State<StatsService>,
    _admin: Admin,
) -> Result<Json<StatsAnswer<OverviewView>>, ApiError> {
    let overview = stats.overview().await?;
    let totals = &overview.totals;
    answer(
        &stats,
        OverviewView {
            total_users: totals.of(StatsCounter::Registered) - totals.of(StatsCounter::Deleted),
            active_events: overview.events.on_sale,
            total_reservations: totals.of(StatsCounter::Created),
            confirmed_reservations: totals.of(StatsCounter::Confirmed),
            cancelled_reservations: totals.of(StatsCounter::Cancelled),
            expired_reservations: totals.of(StatsCounter::Expired),
            total_revenue: totals.revenue(),
            completed_payments: totals.of(StatsCounter::Charges),
            payment_revenue: totals.of(StatsCounter::Charged),
            refunds: totals.of(StatsCounter::Refunded),
            transfers: totals.of(StatsCounter::Transfers),
            memberships: totals.of(StatsCounter::Memberships),
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
    /// Charges less refunds, each on its day: it may be below zero.
    revenue: i64,
    /// The amount refunded.
    refunds: i64,
    transfers: i64,
    memberships: i64,
    new_users: i64,
}

/// Lists the days on which something happened, newest first.
///
/// For administrators. `days` looks back including today: 30 by default, at most 365. Days are
/// those of Korea.
#[utoipa::path(
    get, path = "/api/stats/daily", tag = "statistics", params(DaysQuery),
    responses((status = 200, body = StatsAnswer<Vec<DayView>>), Errors<401, 403>),
)]
pub(super) async fn list_days(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<StatsAnswer<Vec<DayView>>>, ApiError> {
    let days = stats.hours(query.days()).await?.by_day();
    let view = |(day, counters): (Date, StatsCounters)| DayView {
        date: day.to_string(),
        reservations: counters.of(StatsCounter::Created),
        confirmed: counters.of(StatsCounter::Confirmed),
        cancelled: counters.of(StatsCounter::Cancelled),
        expired: counters.of(StatsCounter::Expired),
        revenue: counters.revenue(),
        refunds: counters.of(StatsCounter::Refunded),
        transfers: counters.of(StatsCounter::Transfers),
        memberships: counters.of(StatsCounter::Memberships),
        new_users: counters.of(StatsCounter::Registered),
    };
    answer(&stats, days.into_iter().rev().map(view).collect()).await
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

/// Lists payments by method, the largest amount first.
///
/// For administrators. Amounts are won since the beginning.
#[utoipa::path(
    get, path = "/api/stats/payments", tag = "statistics",
    responses((status = 200, body = StatsAnswer<Vec<PaymentMethodView>>), Errors<401, 403>),
)]
pub(super) async fn list_payment_methods(
    State(stats): State<StatsService>,
    _admin: Admin,
) -> Result<Json<StatsAnswer<Vec<PaymentMethodView>>>, ApiError> {
    let view = |(method, counters): (String, MethodTotals)| PaymentMethodView {
        method,
        count: counters.charges,
        total_amount: counters.charged,
        average_amount: average(counters.charged, counters.charges),
        refund_count: counters.refunds,
        refund_amount: counters.refunded,
    };
    answer(&stats, stats.methods().await?.into_iter().map(view).collect()).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RevenueQuery {
    /// `daily` by default.
    #[param(inline)]
    period: Option<PeriodName>,
    /// The number of days, today included; 30 by default, at most 365.
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
    /// Charges less refunds.
    total_revenue: i64,
    /// The average charge.
    average_amount: i64,
    refunds: i64,
}

/// Lists revenue by day, week or month, newest first.
///
/// For administrators. A week is named by its Monday.
#[utoipa::path(
    get, path = "/api/stats/revenue", tag = "statistics", params(RevenueQuery),
    responses((status = 200, body = StatsAnswer<Vec<RevenueView>>), Errors<401, 403>),
)]
pub(super) async fn list_revenue(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<RevenueQuery>,
) -> Result<Json<StatsAnswer<Vec<RevenueView>>>, ApiError> {
    let period = match query.period.unwrap_or(PeriodName::Daily) {
        PeriodName::Daily => StatsPeriod::Day,
        PeriodName::Weekly => StatsPeriod::Week,
        PeriodName::Monthly => StatsPeriod::Month,
    };
    let hours = stats.hours(DaysQuery { days: query.days }.days()).await?;
    let has_money = |(_, counters): &(String, StatsCounters)| {
        counters.of(StatsCounter::Charges) != 0 || counters.of(StatsCounter::Refunds) != 0
    };
    let view = |(period, counters): (String, StatsCounters)| RevenueView {
        period,
        payment_count: counters.of(StatsCounter::Charges),
        total_revenue: counters.revenue(),
        average_amount: average(
            counters.of(StatsCounter::Charged),
            counters.of(StatsCounter::Charges),
        ),
        refunds: counters.of(StatsCounter::Refunded),
    };
    let periods = hours.by_period(period).into_iter().rev();
    answer(&stats, periods.filter(has_money).map(view).collect()).await
}
