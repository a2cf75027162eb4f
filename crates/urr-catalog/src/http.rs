//! The catalogue over HTTP.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{Admin, ApiError, Context, ErrorBody, Json, Page, Paged, Pagination, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{
    Artist, ArtistId, ArtistName, Catalog, CreateArtistError, InvalidArtistName, NewArtist,
};

const MEMBERSHIP_PRICE_DEFAULT_WON: i64 = 30_000;
const MEMBERSHIP_PRICE_MAX_WON: i64 = 10_000_000;
const DESCRIPTION_CHARS_MAX: usize = 2_000;

pub fn routes() -> OpenApiRouter<Catalog> {
    OpenApiRouter::new()
        .routes(routes!(list_artists))
        .routes(routes!(get_artist))
        .routes(routes!(create_artist))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ArtistView {
    id: Uuid,
    name: String,
    description: String,
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
            membership_price: artist.membership_price,
            created_at: artist.created_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct ArtistListView {
    artists: Vec<ArtistView>,
    pagination: Pagination,
}

/// The artists, by name.
#[utoipa::path(
    get, path = "/api/artists", tag = "artists", params(Page),
    responses((status = 200, body = ArtistListView), (status = 400, body = ErrorBody)),
)]
async fn list_artists(
    State(catalog): State<Catalog>,
    page: Page,
) -> Result<Json<ArtistListView>, ApiError> {
    let (artists, total) = catalog.list_artists(page).await?;
    let artists = artists.into_iter().map(ArtistView::from).collect();
    let Paged { items: artists, pagination } = Paged::new(artists, total, page);
    Ok(Json(ArtistListView { artists, pagination }))
}

#[derive(Serialize, ToSchema)]
struct ArtistDetailView {
    artist: ArtistView,
}

/// One artist.
#[utoipa::path(
    get, path = "/api/artists/{id}", tag = "artists", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ArtistDetailView),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn get_artist(
    State(catalog): State<Catalog>,
    Path(id): Path<Uuid>,
) -> Result<Json<ArtistDetailView>, ApiError> {
    let artist = catalog.get_artist(ArtistId(id)).await?;
    let artist = artist.ok_or_else(|| {
        ApiError::not_found("ARTIST_NOT_FOUND", "There is no artist with this id.")
    })?;
    Ok(Json(ArtistDetailView { artist: artist.into() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateArtistBody {
    #[schema(max_length = 100, example = "한강 밴드")]
    name: String,
    #[serde(default)]
    #[schema(max_length = 2_000)]
    description: String,
    /// In won; 30,000 if it is not given.
    #[schema(minimum = 0, maximum = 10_000_000)]
    membership_price: Option<i64>,
}

impl CreateArtistBody {
    fn parse(self) -> Result<NewArtist, ApiError> {
        let name = ArtistName::parse(&self.name)?;
        if self.description.chars().count() > DESCRIPTION_CHARS_MAX {
            let sentence =
                format!("The description is longer than {DESCRIPTION_CHARS_MAX} characters.");
            return Err(ApiError::bad_request("INVALID_DESCRIPTION", sentence));
        }
        let price = self.membership_price.unwrap_or(MEMBERSHIP_PRICE_DEFAULT_WON);
        if !(0..=MEMBERSHIP_PRICE_MAX_WON).contains(&price) {
            let sentence = format!("The price must be from 0 to {MEMBERSHIP_PRICE_MAX_WON} won.");
            return Err(ApiError::bad_request("INVALID_MEMBERSHIP_PRICE", sentence));
        }
        let description = self.description;
        Ok(NewArtist { name, description, membership_price: Won::new(price) })
    }
}

/// Adds an artist.
#[utoipa::path(
    post, path = "/api/admin/artists", tag = "artists", request_body = CreateArtistBody,
    responses(
        (status = 201, body = ArtistDetailView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
async fn create_artist(
    State(catalog): State<Catalog>,
    _admin: Admin,
    Context(context): Context,
    Json(body): Json<CreateArtistBody>,
) -> Result<(StatusCode, Json<ArtistDetailView>), ApiError> {
    let artist = catalog.create_artist(body.parse()?, context).await?;
    Ok((StatusCode::CREATED, Json(ArtistDetailView { artist: artist.into() })))
}

impl From<InvalidArtistName> for ApiError {
    fn from(invalid: InvalidArtistName) -> ApiError {
        ApiError::bad_request("INVALID_NAME", invalid.to_string())
    }
}

impl From<CreateArtistError> for ApiError {
    fn from(error: CreateArtistError) -> ApiError {
        match error {
            CreateArtistError::NameTaken => {
                ApiError::conflict("ARTIST_NAME_TAKEN", "An artist with this name exists already.")
            }
            CreateArtistError::Storage(error) => error.into(),
        }
    }
}
