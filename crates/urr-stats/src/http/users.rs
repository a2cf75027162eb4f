//! Users: accounts by day, and how users book.

use axum::extract::State;
use serde::Serialize;
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::ToSchema;

use super::{DaysQuery, StatsAnswer, answer};
use crate::StatsService;
use crate::domain::{StatsCounter, ratio, ratio_number};

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
#[serde(rename_all = "camelCase")]
struct RoleView {
    /// Always `user`: roles are not announced.
    role: &'static str,
    count: i64,
}

/// Lists new users by day.
///
/// For administrators. `cumulativeUsers` counts all until that day.
#[utoipa::path(
    get, path = "/api/stats/users", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = StatsAnswer<UserStatsView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_user_stats(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<StatsAnswer<UserStatsView>>, ApiError> {
    let users = stats.users(query.days()).await?;
    let mut count =
        users.before.of(StatsCounter::Registered) - users.before.of(StatsCounter::Deleted);
    let mut daily = Vec::new();
    for (day, counters) in users.hours.by_day() {
        let (new_users, gone) =
            (counters.of(StatsCounter::Registered), counters.of(StatsCounter::Deleted));
        count += new_users - gone;
        if new_users != 0 || gone != 0 {
            daily.push(UserDayView { date: day.to_string(), new_users, cumulative_users: count });
        }
    }
    daily.reverse();
    answer(&stats, UserStatsView { daily, by_role: vec![RoleView { role: "user", count }] }).await
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
#[serde(rename_all = "camelCase")]
struct WeekdayView {
    /// 1 is Monday.
    weekday: i8,
    reservations: i64,
    confirmed: i64,
}

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
    responses(
        (status = 200, body = StatsAnswer<UserBehaviorView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_user_behavior(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<StatsAnswer<UserBehaviorView>>, ApiError> {
    let behavior = stats.user_behavior(query.days()).await?;
    let (recent, all_time) = (&behavior.recent, &behavior.all_time);
    let user_type = |user_type, from, below| UserTypeView {
        user_type,
        user_count: all_time.people_between(from, below),
    };
    let totals = behavior.hours.total();
    let minutes = 60 * totals.of(StatsCounter::Pays);
    let spending = SPENDING_TIERS.into_iter().zip(behavior.spending);
    let weekdays = behavior.hours.by_weekday().into_iter();
    answer(
        &stats,
        UserBehaviorView {
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
            avg_time_to_payment: ratio(totals.of(StatsCounter::PaidSeconds), minutes),
            weekday_activity: weekdays
                .map(|(weekday, counters)| WeekdayView {
                    weekday,
                    reservations: counters.of(StatsCounter::Created),
                    confirmed: counters.of(StatsCounter::Confirmed),
                })
                .collect(),
        },
    )
    .await
}
