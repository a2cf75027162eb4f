//! Sales in total, by day, by payment method and by period.

use axum::response::Response;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use urr_service::{
    ApiError, CsvColumn, CsvLanguage, CsvQuery, CsvRow, Errors, Json, Query, csv_row,
};
use utoipa::{IntoParams, ToSchema};

use super::{CsvRecord, DaysQuery, FirstDay, StatsAnswer, StatsReader, StatsResult, csv_file};
use crate::domain::{MethodTotals, StatsCounters, StatsPeriod, average};
use crate::store::counter_queries::{counters_total, hour_list, method_list};
use crate::store::event_queries::event_counts;

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
pub(super) async fn get_overview(stats: StatsReader) -> StatsResult<OverviewView> {
    stats
        .answer(|tx| {
            let totals = counters_total(tx)?;
            Ok(OverviewView {
                total_users: totals.users(),
                active_events: event_counts(tx)?.on_sale,
                total_reservations: totals.created,
                confirmed_reservations: totals.confirmed,
                cancelled_reservations: totals.cancelled,
                expired_reservations: totals.expired,
                total_revenue: totals.revenue(),
                completed_payments: totals.charges,
                payment_revenue: totals.charged,
                refunds: totals.refunded,
                transfers: totals.transfers,
                memberships: totals.memberships,
            })
        })
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
    stats: StatsReader,
    FirstDay(since): FirstDay,
) -> StatsResult<Vec<DayView>> {
    let view = |(day, counters): (Date, StatsCounters)| DayView {
        date: day.to_string(),
        reservations: counters.created,
        confirmed: counters.confirmed,
        cancelled: counters.cancelled,
        expired: counters.expired,
        revenue: counters.revenue(),
        refunds: counters.refunded,
        transfers: counters.transfers,
        memberships: counters.memberships,
        new_users: counters.registered,
    };
    stats
        .answer(move |tx| Ok(hour_list(tx, since)?.by_day().into_iter().rev().map(view).collect()))
        .await
}

impl CsvRecord for DayView {
    const COLUMNS: &'static [CsvColumn] = &[
        CsvColumn("날짜", "Day"),
        CsvColumn("예매", "Reservations"),
        CsvColumn("확정", "Confirmed"),
        CsvColumn("취소", "Cancelled"),
        CsvColumn("만료", "Expired"),
        CsvColumn("매출(원)", "Revenue (won)"),
        CsvColumn("환불(원)", "Refunds (won)"),
        CsvColumn("양도", "Transfers"),
        CsvColumn("멤버십", "Memberships"),
        CsvColumn("신규 회원", "New users"),
    ];

    fn row(&self) -> CsvRow {
        csv_row![
            self.date.as_str(),
            self.reservations,
            self.confirmed,
            self.cancelled,
            self.expired,
            self.revenue,
            self.refunds,
            self.transfers,
            self.memberships,
            self.new_users,
        ]
    }
}

/// Returns the days on which something happened as a CSV file.
///
/// For administrators. The same days as `GET /api/stats/daily`. Errors: 400 `INVALID_LANGUAGE`; 503
/// `STATISTICS_REBUILDING`.
#[utoipa::path(
    get, path = "/api/stats/daily.csv", tag = "statistics", params(DaysQuery, CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403>),
)]
pub(super) async fn export_days(
    stats: StatsReader,
    first_day: FirstDay,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let Json(list) = list_days(stats, first_day).await?;
    csv_file("daily", language, list.rebuilding, &list.data)
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
    stats: StatsReader,
) -> StatsResult<Vec<PaymentMethodView>> {
    let view = |(method, totals): (String, MethodTotals)| PaymentMethodView {
        method,
        count: totals.charges,
        total_amount: totals.charged,
        average_amount: average(totals.charged, totals.charges),
        refund_count: totals.refunds,
        refund_amount: totals.refunded,
    };
    stats.answer(move |tx| Ok(method_list(tx)?.into_iter().map(view).collect())).await
}

impl CsvRecord for PaymentMethodView {
    const COLUMNS: &'static [CsvColumn] = &[
        CsvColumn("결제 수단", "Method"),
        CsvColumn("결제 건수", "Payments"),
        CsvColumn("결제 금액(원)", "Charged (won)"),
        CsvColumn("평균 금액(원)", "Average (won)"),
        CsvColumn("환불 건수", "Refunds"),
        CsvColumn("환불 금액(원)", "Refunded (won)"),
    ];

    fn row(&self) -> CsvRow {
        csv_row![
            self.method.as_str(),
            self.count,
            self.total_amount,
            self.average_amount,
            self.refund_count,
            self.refund_amount,
        ]
    }
}

/// Returns payments by method as a CSV file.
///
/// For administrators. Errors: 400 `INVALID_LANGUAGE`; 503 `STATISTICS_REBUILDING`.
#[utoipa::path(
    get, path = "/api/stats/payments.csv", tag = "statistics", params(CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403>),
)]
pub(super) async fn export_payment_methods(
    stats: StatsReader,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let Json(list) = list_payment_methods(stats).await?;
    csv_file("payment-methods", language, list.rebuilding, &list.data)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RevenueQuery {
    /// `daily` by default.
    #[param(inline)]
    period: Option<StatsPeriod>,
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
    get, path = "/api/stats/revenue", tag = "statistics", params(RevenueQuery, DaysQuery),
    responses((status = 200, body = StatsAnswer<Vec<RevenueView>>), Errors<401, 403>),
)]
pub(super) async fn list_revenue(
    stats: StatsReader,
    FirstDay(since): FirstDay,
    Query(query): Query<RevenueQuery>,
) -> StatsResult<Vec<RevenueView>> {
    let period = query.period.unwrap_or(StatsPeriod::Daily);
    let has_money =
        |(_, counters): &(String, StatsCounters)| counters.charges != 0 || counters.refunds != 0;
    let view = |(period, counters): (String, StatsCounters)| RevenueView {
        period,
        payment_count: counters.charges,
        total_revenue: counters.revenue(),
        average_amount: counters.charge_average(),
        refunds: counters.refunded,
    };
    stats
        .answer(move |tx| {
            let periods = hour_list(tx, since)?.by_period(period).into_iter().rev();
            Ok(periods.filter(has_money).map(view).collect())
        })
        .await
}

impl CsvRecord for RevenueView {
    const COLUMNS: &'static [CsvColumn] = &[
        CsvColumn("기간", "Period"),
        CsvColumn("결제 건수", "Payments"),
        CsvColumn("매출(원)", "Revenue (won)"),
        CsvColumn("평균 금액(원)", "Average (won)"),
        CsvColumn("환불(원)", "Refunds (won)"),
    ];

    fn row(&self) -> CsvRow {
        csv_row![
            self.period.as_str(),
            self.payment_count,
            self.total_revenue,
            self.average_amount,
            self.refunds,
        ]
    }
}

/// Returns revenue by day, week or month as a CSV file.
///
/// For administrators. Errors: 400 `INVALID_LANGUAGE`; 503 `STATISTICS_REBUILDING`.
#[utoipa::path(
    get, path = "/api/stats/revenue.csv", tag = "statistics",
    params(RevenueQuery, DaysQuery, CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403>),
)]
pub(super) async fn export_revenue(
    stats: StatsReader,
    first_day: FirstDay,
    query: Query<RevenueQuery>,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let Json(list) = list_revenue(stats, first_day, query).await?;
    csv_file("revenue", language, list.rebuilding, &list.data)
}
