//! What happens now: the last hour, the latest reservations, trending events.

use std::time::Duration;

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Errors};
use urr_storage::{Tx, storable_time};
use utoipa::ToSchema;

use super::{StatsAnswer, StatsReader, StatsResult, title_or_id};
use crate::store::event_queries::{event_title, trending_list};
use crate::store::facts::reservation_latest;
use crate::store::user_queries::{held_places, last_hour_stats};

const HOUR: Duration = Duration::from_hours(1);
const RECENT_MAX: u32 = 10;
const TRENDING_MAX: u32 = 5;

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
    responses((status = 200, body = StatsAnswer<RealtimeView>), Errors<401, 403>),
)]
pub(super) async fn get_realtime(stats: StatsReader) -> StatsResult<RealtimeView> {
    let now = stats.0.clock.now();
    stats.answer(move |tx| realtime(tx, now)).await
}

fn realtime(tx: &mut Tx<'_>, now: Timestamp) -> Result<RealtimeView, ApiError> {
    let since = storable_time(now.checked_sub(HOUR).unwrap_or(Timestamp::MIN));
    let mut recent_activity = Vec::new();
    for reservation in reservation_latest(tx, RECENT_MAX)? {
        let terms = &reservation.terms;
        recent_activity.push(RecentView {
            status: reservation.state().as_str(),
            reservation_id: reservation.id,
            event_id: terms.event_id,
            title: title_or_id(event_title(tx, terms.event_id)?, terms.event_id),
            amount: terms.amount,
            quantity: terms.quantity,
            at: terms.at.to_string(),
        });
    }
    let mut trending_events = Vec::new();
    for (id, recent_reservations) in trending_list(tx, since, TRENDING_MAX)? {
        let title = title_or_id(event_title(tx, id)?, id);
        trending_events.push(TrendingView { id, title, recent_reservations });
    }
    let last_hour = last_hour_stats(tx, since)?;
    Ok(RealtimeView {
        current: CurrentView {
            locked_seats: held_places(tx, now)?,
            active_payments: last_hour.charges,
            active_users: last_hour.users,
        },
        last_hour: LastHourView {
            reservations: last_hour.reservations,
            revenue: last_hour.revenue,
        },
        recent_activity,
        trending_events,
    })
}
