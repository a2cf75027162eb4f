//! The dashboard: the numbers of the catalogue, and how reservations go.
//!
//! The second half is the ticket service's, and the names of buyers are the auth service's. While
//! one of them is away the rest is shown, and the answer says what is missing.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_contracts::internal::auth::{AccountSummary, ListUsers};
use urr_contracts::internal::ticket::{
    GetReservationFigures, RecentReservation, ReservationFigures,
};
use urr_kernel::{CallContext, Clock, Timestamp, Uuid, Won};
use urr_service::cache::{Cache, CacheOptions};
use urr_service::{ApiError, Context, Errors, EventScope, Json, Organiser};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{CatalogCounts, CatalogService, Operations};

/// The figures are sums over all reservations, so they are not made anew for every look.
const FIGURES_TTL: Duration = Duration::from_secs(5);
const FIGURES_MAX: usize = 1_000;

/// The services that the dashboard, previews and the list of problems ask.
#[derive(Clone)]
pub struct CatalogPeers {
    pub ticket: TicketClient,
    pub auth: AuthClient,
    pub operations: Operations,
}

/// The ticket service did not answer.
#[derive(Clone, Copy, Debug)]
struct FiguresUnavailable;

pub(crate) struct Dashboard {
    /// None in commands: then the catalogue's own numbers are all.
    peers: Option<CatalogPeers>,
    /// By organiser; those of all events under none.
    figures: Cache<Option<Uuid>, Arc<ReservationFigures>, FiguresUnavailable>,
}

impl Dashboard {
    pub fn new(peers: Option<CatalogPeers>, clock: Clock) -> Dashboard {
        let options = CacheOptions { ttl: FIGURES_TTL, entries_max: FIGURES_MAX };
        Dashboard { peers, figures: Cache::new(clock, options) }
    }

    /// The services that can be asked; none in commands.
    pub fn peers(&self) -> Option<&CatalogPeers> {
        self.peers.as_ref()
    }

    async fn figures(
        &self,
        organiser_id: Option<Uuid>,
        context: CallContext,
    ) -> Option<Arc<ReservationFigures>> {
        let ticket = self.peers.as_ref()?.ticket.clone();
        let load = || async move {
            let answer = ticket.call(GetReservationFigures { organiser_id }, &context).await;
            answer.map(Arc::new).map_err(|error| {
                tracing::warn!(%error, "the dashboard is without reservations");
                FiguresUnavailable
            })
        };
        self.figures.get_or_load(organiser_id, load).await.ok()
    }

    /// The accounts of the buyers, as far as they are known.
    async fn buyers(
        &self,
        reservations: &[RecentReservation],
        context: &CallContext,
    ) -> Vec<AccountSummary> {
        let Some(peers) = self.peers.as_ref().filter(|_| !reservations.is_empty()) else {
            return Vec::new();
        };
        let mut user_ids: Vec<Uuid> = reservations.iter().map(|one| one.user_id).collect();
        user_ids.sort_unstable();
        user_ids.dedup();
        match peers.auth.call(ListUsers { user_ids }, context).await {
            Ok(answer) => answer.users,
            Err(error) => {
                tracing::warn!(%error, "the dashboard is without names");
                Vec::new()
            }
        }
    }
}

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(get_dashboard))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DashboardView {
    stats: DashboardStatsView,
    /// Whether the ticket service has answered. If not, what comes from it is null.
    reservations_available: bool,
    /// The last ten, in any state, the newest first.
    recent_reservations: Option<Vec<RecentReservationView>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DashboardStatsView {
    #[serde(flatten)]
    catalog: CatalogCounts,
    /// Holds and confirmed reservations; neither cancelled nor expired ones.
    total_reservations: Option<u64>,
    /// What of them is paid, in won.
    #[schema(value_type = Option<i64>)]
    total_revenue: Option<Won>,
    /// Those that were made today, by the calendar of Korea.
    today_reservations: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentReservationView {
    id: Uuid,
    user_id: Uuid,
    reservation_number: String,
    event_title: String,
    #[schema(value_type = i64)]
    total_amount: Won,
    /// `pending`, `confirmed`, `cancelled` or `expired`.
    status: &'static str,
    created_at: Timestamp,
    /// For administrators only. Null also if the account is gone or the auth service is away.
    user_name: Option<String>,
    user_email: Option<String>,
}

impl RecentReservationView {
    fn new(reservation: &RecentReservation, buyers: &[AccountSummary]) -> RecentReservationView {
        let buyer = buyers.iter().find(|buyer| buyer.id == reservation.user_id);
        RecentReservationView {
            id: reservation.id,
            user_id: reservation.user_id,
            reservation_number: reservation.reservation_number.clone(),
            event_title: reservation.event_title.clone(),
            total_amount: reservation.total_amount,
            status: reservation.status.as_str(),
            created_at: reservation.created_at,
            user_name: buyer.map(|buyer| buyer.name.clone()),
            user_email: buyer.map(|buyer| buyer.email.clone()),
        }
    }
}

/// Returns the numbers of events and reservations.
///
/// For organisers (of their own events) and administrators (all): events by status, events whose
/// inventory is not ready, reservations and revenue, the last ten reservations, and counts of
/// artists, venues, halls and images. Reservations are up to five seconds old. While the ticket
/// service is away `reservationsAvailable` is false and its figures are null, never 0.
#[utoipa::path(
    get, path = "/api/admin/dashboard", tag = "events",
    responses((status = 200, body = DashboardView), Errors<401, 403>),
)]
pub async fn get_dashboard(
    State(catalog): State<CatalogService>,
    Organiser(reader): Organiser,
    Context(context): Context,
) -> Result<Json<DashboardView>, ApiError> {
    let scope = reader.event_scope();
    let counts = catalog.get_counts(scope.organiser_id()).await?;
    let dashboard = &catalog.0.dashboard;
    let figures = dashboard.figures(scope.organiser_id(), context).await;
    let recent = figures.as_ref().map_or(&[][..], |figures| figures.recent_reservations.as_slice());
    let buyers = match scope {
        EventScope::All => dashboard.buyers(recent, &context).await,
        EventScope::OwnedBy(_) | EventScope::AssignedTo(_) => Vec::new(),
    };
    let view = |one: &RecentReservation| RecentReservationView::new(one, &buyers);
    Ok(Json(DashboardView {
        stats: DashboardStatsView {
            catalog: counts,
            total_reservations: figures.as_ref().map(|figures| figures.total_reservations),
            total_revenue: figures.as_ref().map(|figures| figures.total_revenue),
            today_reservations: figures.as_ref().map(|figures| figures.today_reservations),
        },
        reservations_available: figures.is_some(),
        recent_reservations: figures.is_some().then(|| recent.iter().map(view).collect()),
    }))
}
