//! Venues over HTTP, and the routes of halls.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{Admin, ApiError, Context, ErrorStatus, Json, Page, Paged, Pagination, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::hall_http::{self, HallSummaryView};
use crate::errors::venue_not_found;
use crate::http::actor;
use crate::text::{parse_line, parse_paragraphs};
use crate::{CatalogService, NewVenue, Venue, VenueChange, VenueId};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .routes(routes!(list_venues))
        .routes(routes!(get_venue))
        .routes(routes!(create_venue))
        .routes(routes!(edit_venue, delete_venue))
        .routes(routes!(hall_http::create_hall))
        .routes(routes!(hall_http::get_hall, hall_http::edit_hall, hall_http::delete_hall))
        .routes(routes!(hall_http::list_seat_layouts))
}

const NAME_CHARS_MAX: usize = 100;
const ADDRESS_CHARS_MAX: usize = 300;
const DESCRIPTION_CHARS_MAX: usize = 2_000;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VenueView {
    id: Uuid,
    #[schema(example = "강변 오페라하우스")]
    name: String,
    address: String,
    description: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Venue> for VenueView {
    fn from(venue: Venue) -> VenueView {
        let Venue { id, name, address, description, created_at } = venue;
        VenueView { id: id.0, name, address, description, created_at }
    }
}

#[derive(Serialize, ToSchema)]
pub struct VenueListView {
    venues: Vec<VenueView>,
    pagination: Pagination,
}

/// Lists venues by name.
///
/// Public. Names are ordered by their bytes.
#[utoipa::path(
    get, path = "/api/venues", tag = "venues", params(Page),
    responses((status = 200, body = VenueListView), ErrorStatus<400>),
)]
pub async fn list_venues(
    State(catalog): State<CatalogService>,
    page: Page,
) -> Result<Json<VenueListView>, ApiError> {
    let (venues, total) = catalog.list_venues(page).await?;
    let venues = venues.into_iter().map(VenueView::from).collect();
    let Paged { items: venues, pagination } = Paged::new(venues, total, page);
    Ok(Json(VenueListView { venues, pagination }))
}

#[derive(Serialize, ToSchema)]
pub struct VenueDetailView {
    venue: VenueView,
    /// By name; at most 100.
    halls: Vec<HallSummaryView>,
}

/// Returns a venue with its halls.
///
/// Public. Up to 100 halls, without their seats. Errors: 404 `VENUE_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/venues/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses((status = 200, body = VenueDetailView), ErrorStatus<400>, ErrorStatus<404>),
)]
pub async fn get_venue(
    State(catalog): State<CatalogService>,
    Path(id): Path<Uuid>,
) -> Result<Json<VenueDetailView>, ApiError> {
    let found = catalog.get_venue(VenueId(id)).await?;
    let (venue, halls) = found.ok_or_else(venue_not_found)?;
    let halls = halls.into_iter().map(HallSummaryView::from).collect();
    Ok(Json(VenueDetailView { venue: venue.into(), halls }))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateVenueBody {
    #[schema(max_length = 100)]
    name: String,
    #[schema(max_length = 300)]
    address: String,
    #[serde(default)]
    #[schema(max_length = 2_000)]
    description: String,
}

#[derive(Serialize, ToSchema)]
pub struct VenueOnlyView {
    venue: VenueView,
}

/// Creates a venue.
///
/// For administrators. Errors: 400 `INVALID_NAME`, `INVALID_TEXT`; 409 `NAME_TAKEN`.
#[utoipa::path(
    post, path = "/api/admin/venues", tag = "venues", request_body = CreateVenueBody,
    responses(
        (status = 201, body = VenueOnlyView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<409>,
    ),
)]
pub async fn create_venue(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Json(body): Json<CreateVenueBody>,
) -> Result<(StatusCode, Json<VenueOnlyView>), ApiError> {
    let new = NewVenue {
        name: parse_line("name", &body.name, NAME_CHARS_MAX)?,
        address: parse_line("address", &body.address, ADDRESS_CHARS_MAX)?,
        description: parse_paragraphs("description", &body.description, DESCRIPTION_CHARS_MAX)?,
    };
    let venue = catalog.create_venue(new, actor(&admin, context)).await?;
    Ok((StatusCode::CREATED, Json(VenueOnlyView { venue: venue.into() })))
}

/// Fields that are left out keep their value.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditVenueBody {
    #[schema(max_length = 100)]
    name: Option<String>,
    #[schema(max_length = 300)]
    address: Option<String>,
    #[schema(max_length = 2_000)]
    description: Option<String>,
}

impl EditVenueBody {
    fn parse(&self) -> Result<VenueChange, ApiError> {
        let line = |what, text: &Option<String>, chars_max| {
            text.as_ref().map(|text| parse_line(what, text, chars_max)).transpose()
        };
        let description = self
            .description
            .as_ref()
            .map(|text| parse_paragraphs("description", text, DESCRIPTION_CHARS_MAX));
        Ok(VenueChange {
            name: line("name", &self.name, NAME_CHARS_MAX)?,
            address: line("address", &self.address, ADDRESS_CHARS_MAX)?,
            description: description.transpose()?,
        })
    }
}

/// Changes a venue.
///
/// For administrators. Fields that are not sent stay as they are. Errors: 404 `VENUE_NOT_FOUND`;
/// 409 `NAME_TAKEN`.
#[utoipa::path(
    put, path = "/api/admin/venues/{id}", tag = "venues", params(("id" = Uuid, Path)),
    request_body = EditVenueBody,
    responses(
        (status = 200, body = VenueOnlyView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<404>, ErrorStatus<409>,
    ),
)]
pub async fn edit_venue(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<EditVenueBody>,
) -> Result<Json<VenueOnlyView>, ApiError> {
    let venue = catalog.edit_venue(VenueId(id), body.parse()?, actor(&admin, context)).await?;
    Ok(Json(VenueOnlyView { venue: venue.into() }))
}

/// Deletes a venue without halls and events.
///
/// For administrators. Errors: 404 `VENUE_NOT_FOUND`; 409 `VENUE_IN_USE`.
#[utoipa::path(
    delete, path = "/api/admin/venues/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "The venue is deleted."),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<404>, ErrorStatus<409>,
    ),
)]
pub async fn delete_venue(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    catalog.delete_venue(VenueId(id), actor(&admin, context)).await?;
    Ok(StatusCode::NO_CONTENT)
}
