//! Seat preferences: which seats are sold, by section, price and row.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{Errors, Query};
use utoipa::{IntoParams, ToSchema};

use super::{StatsAnswer, StatsReader, StatsResult, event_not_found};
use crate::domain::{SeatOccupancy, SeatPreferences, percent};
use crate::store::event_queries::hall_sales_list;

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

/// How many seats there are, and how many of them are sold.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OccupancyView {
    total_seats: i64,
    reserved_seats: i64,
    reservation_rate: f64,
}

#[derive(Serialize, ToSchema)]
struct SectionView {
    section: String,
    #[serde(flatten)]
    occupancy: OccupancyView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PriceTierView {
    price_tier: &'static str,
    #[serde(flatten)]
    occupancy: OccupancyView,
    avg_price: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RowView {
    section: String,
    row_number: String,
    #[serde(flatten)]
    occupancy: OccupancyView,
}

/// Without an event, this many events count, the ones that start last.
const HALLS_MAX: u32 = 100;
const TOP_ROWS_MAX: usize = 10;

/// The cheapest first.
const TIERS: [&str; 4] = ["budget", "standard", "premium", "vip"];

/// Returns which seats are sold, by section, price and row.
///
/// For administrators. Without `eventId` it covers the hundred events that start last. Errors: 404
/// `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/stats/seat-preferences", tag = "statistics", params(SeatsQuery),
    responses((status = 200, body = StatsAnswer<SeatPreferencesView>), Errors<401, 403, 404>),
)]
pub(super) async fn get_seat_preferences(
    stats: StatsReader,
    Query(query): Query<SeatsQuery>,
) -> StatsResult<SeatPreferencesView> {
    let event_id = query.event_id;
    stats
        .answer(move |tx| {
            let halls = hall_sales_list(tx, event_id, HALLS_MAX)?;
            if event_id.is_some() && halls.is_empty() {
                return Err(event_not_found());
            }
            Ok(SeatPreferencesView::from(SeatPreferences::of(&halls)))
        })
        .await
}

impl From<SeatOccupancy> for OccupancyView {
    fn from(occupancy: SeatOccupancy) -> OccupancyView {
        OccupancyView {
            total_seats: occupancy.seats,
            reserved_seats: occupancy.sold,
            reservation_rate: percent(occupancy.sold, occupancy.seats),
        }
    }
}

impl From<SeatPreferences> for SeatPreferencesView {
    fn from(found: SeatPreferences) -> SeatPreferencesView {
        let section = |(section, occupancy): (String, SeatOccupancy)| SectionView {
            section,
            occupancy: occupancy.into(),
        };
        let tier = |price_tier: &'static str| {
            let occupancy = *found.tiers.get(price_tier)?;
            let avg_price = occupancy.price_average();
            Some(PriceTierView { price_tier, occupancy: occupancy.into(), avg_price })
        };
        let row = |((section, row_number), occupancy): ((String, String), SeatOccupancy)| RowView {
            section,
            row_number,
            occupancy: occupancy.into(),
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
