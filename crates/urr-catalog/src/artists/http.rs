//! Artists over HTTP.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use urr_service::{ApiError, Errors, Json, Page, Paged, Pagination, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::events::views::EventSummaryView;
use crate::response_cache::http::CACHED_BRIEFLY;
use crate::response_cache::{CachedResponse, ExpiryHint};
use crate::{AdminActor, Artist, ArtistChange, ArtistId, CatalogService, NewArtist, Schedule};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .routes(routes!(list_artists))
        .routes(routes!(get_artist))
        .routes(routes!(create_artist))
        .routes(routes!(edit_artist))
}

#[derive(Serialize, ToSchema)]
pub struct ArtistListView {
    artists: Vec<Artist>,
    pagination: Pagination,
}

/// Lists artists by name.
///
/// Public. Names are ordered by their bytes. Caches may keep the response for 5 s.
#[utoipa::path(
    get, path = "/api/artists", tag = "artists", params(Page),
    responses(
        (status = 200, body = ArtistListView),
        (status = 304, description = "The client has the current version."),
    ),
)]
pub async fn list_artists(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    page: Page,
) -> Result<Response, ApiError> {
    let key = format!("artists {} {}", page.number(), page.limit());
    catalog.cached(&headers, CACHED_BRIEFLY, &key, |catalog| load_list(catalog, page)).await
}

async fn load_list(catalog: CatalogService, page: Page) -> Result<CachedResponse, ApiError> {
    let now = catalog.0.clock.now();
    let (artists, total, revision) = catalog.list_artists(page).await?;
    let Paged { items: artists, pagination } = Paged::new(artists, total, page);
    let view = ArtistListView { artists, pagination };
    catalog.0.cache.response(&view, revision, ExpiryHint::default(), now)
}

#[derive(Serialize, ToSchema)]
pub struct ArtistDetailView {
    artist: Artist,
    /// The coming events in the order of their dates, at most 50.
    events: Vec<EventSummaryView>,
}

/// Returns an artist with up to 50 coming events, nearest first.
///
/// Public. Caches may keep the response for 5 s. Errors: 404 `ARTIST_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/artists/{id}", tag = "artists", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ArtistDetailView),
        (status = 304, description = "The client has the current version."),
        Errors<404>,
    ),
)]
pub async fn get_artist(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    Path(id): Path<ArtistId>,
) -> Result<Response, ApiError> {
    let key = format!("artist {id}");
    catalog.cached(&headers, CACHED_BRIEFLY, &key, |catalog| load_artist(catalog, id)).await
}

async fn load_artist(catalog: CatalogService, id: ArtistId) -> Result<CachedResponse, ApiError> {
    let detail = catalog.get_artist(id).await?;
    let (now, distance) = (detail.now, catalog.0.settings.cache.opening_distance);
    let schedules = || detail.upcoming.iter().map(|event| event.schedule);
    let expiry_hint = ExpiryHint {
        // An event that starts is no longer a coming one.
        next_change: schedules()
            .flat_map(|schedule| [schedule.next_change_after(now), Some(schedule.starts_at())])
            .flatten()
            .filter(|change| *change > now)
            .min(),
        is_near_opening: schedules().any(|one: Schedule| one.is_near_opening(now, distance)),
    };
    let events = detail.upcoming.into_iter().map(|event| EventSummaryView::new(event, now));
    let view = ArtistDetailView { artist: detail.artist, events: events.collect() };
    catalog.0.cache.response(&view, detail.revision, expiry_hint, now)
}

#[derive(Serialize, ToSchema)]
pub struct ArtistOnlyView {
    artist: Artist,
}

/// Creates an artist.
///
/// For administrators. Errors: 400 `INVALID_NAME` (1 to 100 characters), `INVALID_DESCRIPTION` (up
/// to 2,000), `INVALID_MEMBERSHIP_PRICE` (0 to 10,000,000 won; 30,000 if not given),
/// `INVALID_IMAGE_URL`, `INVALID_TEXT`; 409 `ARTIST_NAME_TAKEN`.
#[utoipa::path(
    post, path = "/api/admin/artists", tag = "artists", request_body = NewArtist,
    responses((status = 201, body = ArtistOnlyView), Errors<401, 403, 409>),
)]
pub async fn create_artist(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Json(new): Json<NewArtist>,
) -> Result<(StatusCode, Json<ArtistOnlyView>), ApiError> {
    let artist = catalog.create_artist(new, actor).await?;
    Ok((StatusCode::CREATED, Json(ArtistOnlyView { artist })))
}

/// Changes an artist.
///
/// For administrators. Fields that are not sent stay as they are. Errors: as for creating; 404
/// `ARTIST_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/admin/artists/{id}", tag = "artists", params(("id" = Uuid, Path)),
    request_body = ArtistChange,
    responses((status = 200, body = ArtistOnlyView), Errors<401, 403, 404, 409>),
)]
pub async fn edit_artist(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Path(id): Path<ArtistId>,
    Json(change): Json<ArtistChange>,
) -> Result<Json<ArtistOnlyView>, ApiError> {
    Ok(Json(ArtistOnlyView { artist: catalog.edit_artist(id, change, actor).await? }))
}
