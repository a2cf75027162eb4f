//! Users: accounts by day, and how users book.

use jiff::civil::Date;
use serde::Serialize;
use urr_kernel::start_of_korean_date;
use urr_service::{ApiError, Errors};
use urr_storage::{Tx, storable_time};
use utoipa::ToSchema;

use super::{DaysQuery, FirstDay, StatsAnswer, StatsReader, StatsResult};
use crate::domain::{ReservationDistribution, StatsCounters, ratio, ratio_number};
use crate::store::counter_queries::{counters_total_before, hour_list};
use crate::store::user_queries::{reservations_per_user, spending_tiers, users_by_role};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserStatsView {
    /// The days on which an account was opened or closed, newest first.
    daily: Vec<UserDayView>,
    by_role: Vec<RoleView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UserDayView {
    date: String,
    new_users: i64,
    /// Accounts at the end of the day.
    cumulative_users: i64,
}

#[derive(Serialize, ToSchema)]
struct RoleView {
    #[schema(example = "user")]
    role: String,
    /// Accounts that are open.
    count: i64,
}

/// Lists new users by day.
///
/// For administrators. `cumulativeUsers` counts all until that day; `byRole` counts the accounts
/// that are open now.
#[utoipa::path(
    get, path = "/api/stats/users", tag = "statistics", params(DaysQuery),
    responses((status = 200, body = StatsAnswer<UserStatsView>), Errors<401, 403>),
)]
pub(super) async fn get_user_stats(
    stats: StatsReader,
    FirstDay(since): FirstDay,
) -> StatsResult<UserStatsView> {
    stats
        .answer(move |tx| {
            let mut count = counters_total_before(tx, since)?.users();
            let mut daily = Vec::new();
            for (day, counters) in hour_list(tx, since)?.by_day() {
                count += counters.users();
                if counters.registered != 0 || counters.deleted != 0 {
                    daily.push(UserDayView {
                        date: day.to_string(),
                        new_users: counters.registered,
                        cumulative_users: count,
                    });
                }
            }
            daily.reverse();
            let roles = users_by_role(tx)?.into_iter();
            let by_role = roles.map(|(role, count)| RoleView { role, count }).collect();
            Ok(UserStatsView { daily, by_role })
        })
        .await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserBehaviorView {
    /// Users who reserved within the days: `new` (once ever), `returning` (up to four times), `loyal`.
    user_types: Vec<UserTypeView>,
    average_metrics: AverageMetricsView,
    /// Users who paid within the days, by charges less refunds.
    spending_distribution: Vec<SpendingView>,
    /// Minutes from reserving to paying.
    #[schema(example = "2.50")]
    avg_time_to_payment: String,
    /// From Monday on.
    weekday_activity: Vec<WeekdayView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UserTypeView {
    #[serde(rename = "type")]
    user_type: &'static str,
    user_count: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AverageMetricsView {
    avg_reservations: f64,
    max_reservations: i64,
    median_reservations: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SpendingView {
    /// `under_50000`, `under_150000`, `under_300000` or `300000_and_more` won.
    spending_tier: &'static str,
    user_count: i64,
}

#[derive(Serialize, ToSchema)]
struct WeekdayView {
    /// 1 is Monday.
    weekday: i8,
    reservations: i64,
    confirmed: i64,
}

/// Bounds of the spending tiers, in won.
const SPENDING_BOUNDS: [i64; 3] = [50_000, 150_000, 300_000];
const SPENDING_TIERS: [&str; 4] =
    ["under_50000", "under_150000", "under_300000", "300000_and_more"];

/// A user with this many reservations is loyal.
const LOYAL_FROM: i64 = 5;

/// Returns how users buy.
///
/// For administrators. Of the users who reserved within the days: `new` (once ever), `returning`
/// (up to four times), `loyal`; spending, and the time to payment in minutes. Weekday 1 is Monday.
#[utoipa::path(
    get, path = "/api/stats/user-behavior", tag = "statistics", params(DaysQuery),
    responses((status = 200, body = StatsAnswer<UserBehaviorView>), Errors<401, 403>),
)]
pub(super) async fn get_user_behavior(
    stats: StatsReader,
    FirstDay(since): FirstDay,
) -> StatsResult<UserBehaviorView> {
    stats.answer(move |tx| user_behavior(tx, since)).await
}

fn user_behavior(tx: &mut Tx<'_>, since: Date) -> Result<UserBehaviorView, ApiError> {
    let start = storable_time(start_of_korean_date(since));
    let hours = hour_list(tx, since)?;
    let recent = ReservationDistribution(reservations_per_user(tx, start, false)?);
    let all_time = ReservationDistribution(reservations_per_user(tx, start, true)?);
    let user_type = |user_type, from, below| UserTypeView {
        user_type,
        user_count: all_time.people_between(from, below),
    };
    let spending = SPENDING_TIERS.into_iter().zip(spending_tiers(tx, start, SPENDING_BOUNDS)?);
    let weekday = |(weekday, counters): (i8, StatsCounters)| WeekdayView {
        weekday,
        reservations: counters.created,
        confirmed: counters.confirmed,
    };
    let totals = hours.total();
    Ok(UserBehaviorView {
        user_types: vec![
            user_type("new", 1, 2),
            user_type("returning", 2, LOYAL_FROM),
            user_type("loyal", LOYAL_FROM, i64::MAX),
        ],
        average_metrics: AverageMetricsView {
            avg_reservations: ratio_number(recent.reservations(), recent.people()),
            max_reservations: recent.max(),
            median_reservations: recent.median(),
        },
        spending_distribution: spending
            .map(|(spending_tier, user_count)| SpendingView { spending_tier, user_count })
            .collect(),
        avg_time_to_payment: ratio(totals.paid_seconds, 60 * totals.pays),
        weekday_activity: hours.by_weekday().into_iter().map(weekday).collect(),
    })
}
