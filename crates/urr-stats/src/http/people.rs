//! Who comes, and what they do.

use axum::extract::State;
use serde::Serialize;
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::ToSchema;

use super::{DaysQuery, Envelope, answer};
use crate::Stats;
use crate::domain::{Figure, ratio, ratio_number};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsersView {
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
    /// Which of them are administrators is not announced: all are users.
    role: &'static str,
    count: i64,
}

/// Accounts by day.
#[utoipa::path(
    get, path = "/api/stats/users", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = Envelope<UsersView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_user_figures(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<Envelope<UsersView>>, ApiError> {
    let users = stats.users(query.days()).await?;
    let mut count = users.before.of(Figure::Registered) - users.before.of(Figure::Deleted);
    let mut daily = Vec::new();
    for (day, figures) in users.hours.by_day() {
        let (new_users, gone) = (figures.of(Figure::Registered), figures.of(Figure::Deleted));
        count += new_users - gone;
        if new_users != 0 || gone != 0 {
            daily.push(UserDayView { date: day.to_string(), new_users, cumulative_users: count });
        }
    }
    daily.reverse();
    answer(&stats, UsersView { daily, by_role: vec![RoleView { role: "user", count }] }).await
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserBehaviorView {
    /// Who reserved within the days: `new` (once ever), `returning` (up to four times), `loyal`.
    user_types: Vec<UserTypeView>,
    average_metrics: AverageMetricsView,
    /// Who paid within the days, by what they spent and did not get back.
    spending_distribution: Vec<SpendingView>,
    /// Minutes from reserving to having paid.
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

/// Who reserved so often is loyal.
const LOYAL_FROM: i64 = 5;

/// What people do within the days.
#[utoipa::path(
    get, path = "/api/stats/user-behavior", tag = "statistics", params(DaysQuery),
    responses(
        (status = 200, body = Envelope<UserBehaviorView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_user_behavior(
    State(stats): State<Stats>,
    _admin: Admin,
    Query(query): Query<DaysQuery>,
) -> Result<Json<Envelope<UserBehaviorView>>, ApiError> {
    let behavior = stats.user_behavior(query.days()).await?;
    let (lately, ever) = (&behavior.lately, &behavior.ever);
    let user_type = |user_type, from, below| UserTypeView {
        user_type,
        user_count: ever.people_between(from, below),
    };
    let totals = behavior.hours.total();
    let minutes = 60 * totals.of(Figure::Pays);
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
                avg_reservations: ratio_number(lately.reservations(), lately.people()),
                max_reservations: lately.max(),
                median_reservations: lately.median(),
            },
            spending_distribution: spending
                .map(|(spending_tier, user_count)| SpendingView { spending_tier, user_count })
                .collect(),
            avg_time_to_payment: ratio(totals.of(Figure::PaidSeconds), minutes),
            weekday_activity: weekdays
                .map(|(weekday, figures)| WeekdayView {
                    weekday,
                    reservations: figures.of(Figure::Created),
                    confirmed: figures.of(Figure::Confirmed),
                })
                .collect(),
        },
    )
    .await
}
