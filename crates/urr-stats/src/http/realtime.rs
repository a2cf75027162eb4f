//! What happens now: the last hour, the latest reservations, trending events.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json};
use utoipa::ToSchema;

use super::{StatsAnswer, answer, title_or_id};
use crate::StatsService;
use crate::domain::ReservationFact;
use crate::queries::RealtimeStats;

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
    /// Seats and standing tickets that are held.
    locked_seats: i64,
    /// Payments of the last hour.
    active_payments: i64,
    /// Users who reserved or paid within the last hour.
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

/// Returns what happens now.
///
/// For administrators. `lockedSeats` are held and not paid; active users are those of the last
/// hour.
#[utoipa::path(
    get, path = "/api/stats/realtime", tag = "statistics",
    responses(
        (status = 200, body = StatsAnswer<RealtimeView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(super) async fn get_realtime(
    State(stats): State<StatsService>,
    _admin: Admin,
) -> Result<Json<StatsAnswer<RealtimeView>>, ApiError> {
    let RealtimeStats { held_places, last_hour, recent, trending } = stats.realtime().await?;
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

fn recent_view((reservation, title): (ReservationFact, Option<String>)) -> RecentView {
    let terms = &reservation.terms;
    RecentView {
        status: reservation.state().as_str(),
        reservation_id: reservation.id,
        event_id: terms.event_id,
        title: title_or_id(title, terms.event_id),
        amount: terms.amount,
        quantity: terms.quantity,
        at: terms.at.to_string(),
    }
}
