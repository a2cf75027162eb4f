//! Artists over HTTP.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{Admin, ApiError, Context, ErrorStatus, Json, Page, Paged, Pagination, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::errors::artist_not_found;
use crate::events::views::EventSummaryView;
use crate::http::actor;
use crate::response_cache::http::{CACHED_BRIEFLY, render, respond};
use crate::response_cache::{CacheLifetime, CachedResponse, ExpiryHint};
use crate::text::parse_image_url;
use crate::{
    Artist, ArtistChange, ArtistDetail, ArtistId, ArtistName, CatalogService, NewArtist, Schedule,
};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .routes(routes!(list_artists))
        .routes(routes!(get_artist))
        .routes(routes!(create_artist))
        .routes(routes!(edit_artist))
}

const MEMBERSHIP_PRICE_DEFAULT_WON: i64 = 30_000;
const MEMBERSHIP_PRICE_MAX_WON: i64 = 10_000_000;
const DESCRIPTION_CHARS_MAX: usize = 2_000;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtistView {
    id: Uuid,
    name: String,
    description: String,
    image_url: Option<String>,
    /// The price of a year's fan membership, in won.
    #[schema(value_type = i64, example = 30_000)]
    membership_price: Won,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Artist> for ArtistView {
    fn from(artist: Artist) -> ArtistView {
        ArtistView {
            id: artist.id.0,
            name: artist.name.to_string(),
            description: artist.description,
            image_url: Some(artist.image_url).filter(|url| !url.is_empty()),
            membership_price: artist.membership_price,
            created_at: artist.created_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ArtistListView {
    artists: Vec<ArtistView>,
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
        ErrorStatus<400>,
    ),
)]
pub async fn list_artists(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    page: Page,
) -> Result<Response, ApiError> {
    let key = format!("artists {} {}", page.number(), page.limit());
    let cache = catalog.cache.clone();
    let load = || {
        let catalog = catalog.clone();
        async move {
            let now = catalog.clock.now();
            let (artists, total, revision) = catalog.list_artists(page).await?;
            let artists = artists.into_iter().map(ArtistView::from).collect();
            let Paged { items: artists, pagination } = Paged::new(artists, total, page);
            let body = render(&ArtistListView { artists, pagination })?;
            let lifetime = CacheLifetime::new(ExpiryHint::default(), now, catalog.cache.settings());
            Ok(CachedResponse::new(body, revision, lifetime))
        }
    };
    let cached = cache.get(&key, load).await?;
    Ok(respond(&headers, &cached, CACHED_BRIEFLY))
}

#[derive(Serialize, ToSchema)]
pub struct ArtistDetailView {
    artist: ArtistView,
    /// The coming events in the order of their dates, at most 50.
    events: Vec<EventSummaryView>,
}

impl ArtistDetailView {
    fn new(detail: ArtistDetail, now: Timestamp) -> ArtistDetailView {
        let events = detail.upcoming.into_iter();
        ArtistDetailView {
            artist: detail.artist.into(),
            events: events.map(|event| EventSummaryView::new(event, now)).collect(),
        }
    }
}

/// Returns an artist with up to 50 coming events, nearest first.
///
/// Public. Caches may keep the response for 5 s. Errors: 404 `ARTIST_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/artists/{id}", tag = "artists", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ArtistDetailView),
        (status = 304, description = "The client has the current version."),
        ErrorStatus<400>, ErrorStatus<404>,
    ),
)]
pub async fn get_artist(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let cache = catalog.cache.clone();
    let load = || {
        let catalog = catalog.clone();
        async move { load_artist(&catalog, ArtistId(id)).await }
    };
    let cached = cache.get(&format!("artist {id}"), load).await?;
    Ok(respond(&headers, &cached, CACHED_BRIEFLY))
}

async fn load_artist(catalog: &CatalogService, id: ArtistId) -> Result<CachedResponse, ApiError> {
    let detail = catalog.get_artist(id).await?.ok_or_else(artist_not_found)?;
    let (revision, now, settings) = (detail.revision, detail.now, catalog.cache.settings());
    let schedules = || detail.upcoming.iter().map(|event| event.schedule);
    let near = |schedule: Schedule| schedule.is_near_opening(now, settings.opening_distance);
    let expiry_hint = ExpiryHint {
        // An event that starts is no longer a coming one.
        next_change: schedules()
            .flat_map(|schedule| [schedule.next_change_after(now), Some(schedule.starts_at())])
            .flatten()
            .filter(|change| *change > now)
            .min(),
        is_near_opening: schedules().any(near),
    };
    let body = render(&ArtistDetailView::new(detail, now))?;
    Ok(CachedResponse::new(body, revision, CacheLifetime::new(expiry_hint, now, settings)))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateArtistBody {
    #[schema(max_length = 100, example = "한강 밴드")]
    name: String,
    #[serde(default)]
    #[schema(max_length = 2_000)]
    description: String,
    /// Begins with `https://` or `/api/image/`.
    #[serde(default)]
    #[schema(max_length = 500)]
    image_url: String,
    /// In won; 30,000 if it is not given.
    #[schema(minimum = 0, maximum = 10_000_000)]
    membership_price: Option<i64>,
}

fn parse_description(text: String) -> Result<String, ApiError> {
    if text.chars().count() > DESCRIPTION_CHARS_MAX {
        let sentence =
            format!("The description is longer than {DESCRIPTION_CHARS_MAX} characters.");
        return Err(ApiError::bad_request("INVALID_DESCRIPTION", sentence));
    }
    Ok(text)
}

fn parse_price(price: i64) -> Result<Won, ApiError> {
    if !(0..=MEMBERSHIP_PRICE_MAX_WON).contains(&price) {
        let sentence = format!("The price must be from 0 to {MEMBERSHIP_PRICE_MAX_WON} won.");
        return Err(ApiError::bad_request("INVALID_MEMBERSHIP_PRICE", sentence));
    }
    Ok(Won::new(price))
}

impl CreateArtistBody {
    fn parse(self) -> Result<NewArtist, ApiError> {
        let price = self.membership_price.unwrap_or(MEMBERSHIP_PRICE_DEFAULT_WON);
        Ok(NewArtist {
            name: ArtistName::parse(&self.name)?,
            description: parse_description(self.description)?,
            image_url: parse_image_url(&self.image_url)?,
            membership_price: parse_price(price)?,
        })
    }
}

#[derive(Serialize, ToSchema)]
pub struct ArtistOnlyView {
    artist: ArtistView,
}

/// Creates an artist.
///
/// For administrators. Errors: 400 `INVALID_NAME` (1 to 100 characters), `INVALID_DESCRIPTION` (up
/// to 2,000), `INVALID_MEMBERSHIP_PRICE` (0 to 10,000,000 won; 30,000 if not given),
/// `INVALID_IMAGE_URL`, `INVALID_TEXT`; 409 `ARTIST_NAME_TAKEN`.
#[utoipa::path(
    post, path = "/api/admin/artists", tag = "artists", request_body = CreateArtistBody,
    responses(
        (status = 201, body = ArtistOnlyView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<409>,
    ),
)]
pub async fn create_artist(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Json(body): Json<CreateArtistBody>,
) -> Result<(StatusCode, Json<ArtistOnlyView>), ApiError> {
    let artist = catalog.create_artist(body.parse()?, actor(&admin, context)).await?;
    Ok((StatusCode::CREATED, Json(ArtistOnlyView { artist: artist.into() })))
}

/// Fields that are left out keep their value.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditArtistBody {
    #[schema(max_length = 100)]
    name: Option<String>,
    #[schema(max_length = 2_000)]
    description: Option<String>,
    /// An empty text removes it.
    #[schema(max_length = 500)]
    image_url: Option<String>,
    #[schema(minimum = 0, maximum = 10_000_000)]
    membership_price: Option<i64>,
}

impl EditArtistBody {
    fn parse(self) -> Result<ArtistChange, ApiError> {
        Ok(ArtistChange {
            name: self.name.map(|name| ArtistName::parse(&name)).transpose()?,
            description: self.description.map(parse_description).transpose()?,
            image_url: self.image_url.map(|url| parse_image_url(&url)).transpose()?,
            membership_price: self.membership_price.map(parse_price).transpose()?,
        })
    }
}

/// Changes an artist.
///
/// For administrators. Fields that are not sent stay as they are. Errors: as for creating; 404
/// `ARTIST_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/admin/artists/{id}", tag = "artists", params(("id" = Uuid, Path)),
    request_body = EditArtistBody,
    responses(
        (status = 200, body = ArtistOnlyView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<404>, ErrorStatus<409>,
    ),
)]
pub async fn edit_artist(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<EditArtistBody>,
) -> Result<Json<ArtistOnlyView>, ApiError> {
    let change = body.parse()?;
    let artist = catalog.edit_artist(ArtistId(id), change, actor(&admin, context)).await?;
    Ok(Json(ArtistOnlyView { artist: artist.into() }))
}
