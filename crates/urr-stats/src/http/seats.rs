//! Seat preferences: which seats are sold, by section, price and row.

use std::cmp::Reverse;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Admin, ApiError, ErrorBody, Json, Query};
use utoipa::{IntoParams, ToSchema};

use super::{StatsAnswer, answer};
use crate::StatsService;
use crate::domain::{SeatOccupancy, SeatPreferences, percent};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeatsQuery {
    /// Without an event, the hundred events that start last.
    event_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeatPreferencesView {
    /// By name; standing tickets are the section `standing`.
    by_section: Vec<SectionView>,
    /// `budget` below 50,000 won, `standard` below 100,000, `premium` below 150,000, `vip`.
    by_price_tier: Vec<PriceTierView>,
    /// The ten rows with the highest reservation rate.
    top_rows: Vec<RowView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SectionView {
    section: String,
    total_seats: i64,
    reserved_seats: i64,
    reservation_rate: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PriceTierView {
    price_tier: &'static str,
    total_seats: i64,
    reserved_seats: i64,
    reservation_rate: f64,
    avg_price: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RowView {
    section: String,
    row_number: String,
    total_seats: i64,
    reserved_seats: i64,
    reservation_rate: f64,
}

const TOP_ROWS_MAX: usize = 10;

/// The cheapest first.
const TIERS: [&str; 4] = ["budget", "standard", "premium", "vip"];

/// Returns which seats are sold, by section, price and row.
///
/// For administrators. Without `eventId` it covers the hundred events that start last. Errors: 404
/// `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/stats/seat-preferences", tag = "statistics", params(SeatsQuery),
    responses(
        (status = 200, body = StatsAnswer<SeatPreferencesView>),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
pub(super) async fn get_seat_preferences(
    State(stats): State<StatsService>,
    _admin: Admin,
    Query(query): Query<SeatsQuery>,
) -> Result<Json<StatsAnswer<SeatPreferencesView>>, ApiError> {
    let not_found = || ApiError::not_found("EVENT_NOT_FOUND", "There is no such event.");
    let found = stats.seat_preferences(query.event_id).await?.ok_or_else(not_found)?;
    answer(&stats, SeatPreferencesView::from(found)).await
}

impl From<SeatPreferences> for SeatPreferencesView {
    fn from(found: SeatPreferences) -> SeatPreferencesView {
        let section = |(section, occupancy): (String, SeatOccupancy)| SectionView {
            section,
            total_seats: occupancy.seats,
            reserved_seats: occupancy.sold,
            reservation_rate: percent(occupancy.sold, occupancy.seats),
        };
        let tier = |price_tier: &'static str| {
            let occupancy = found.tiers.get(price_tier)?;
            Some(PriceTierView {
                price_tier,
                total_seats: occupancy.seats,
                reserved_seats: occupancy.sold,
                reservation_rate: percent(occupancy.sold, occupancy.seats),
                avg_price: occupancy.price_average(),
            })
        };
        let row = |((section, row_number), occupancy): ((String, String), SeatOccupancy)| RowView {
            section,
            row_number,
            total_seats: occupancy.seats,
            reserved_seats: occupancy.sold,
            reservation_rate: percent(occupancy.sold, occupancy.seats),
        };
        let mut rows: Vec<_> =
            found.rows.into_iter().filter(|(_, occupancy)| occupancy.sold > 0).collect();
        // A row has at least one seat. Equal rows stay in the order of their names.
        let part = |occupancy: &SeatOccupancy| occupancy.sold * 1_000_000 / occupancy.seats;
        rows.sort_by_key(|(_, occupancy)| Reverse((part(occupancy), occupancy.sold)));
        SeatPreferencesView {
            by_section: found.sections.into_iter().map(section).collect(),
            by_price_tier: TIERS.into_iter().filter_map(tier).collect(),
            top_rows: rows.into_iter().take(TOP_ROWS_MAX).map(row).collect(),
        }
    }
}
