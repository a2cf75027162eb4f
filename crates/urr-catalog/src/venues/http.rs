//! Venues and halls over HTTP.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use urr_service::{ApiError, Errors, Json, Organiser, Page, Paged, Pagination, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{
    AdminActor, CatalogService, Hall, HallChange, HallId, HallSummary, NewHall, NewVenue, Venue,
    VenueChange, VenueId,
};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .routes(routes!(list_venues))
        .routes(routes!(get_venue))
        .routes(routes!(create_venue))
        .routes(routes!(edit_venue, delete_venue))
        .routes(routes!(create_hall))
        .routes(routes!(get_hall, edit_hall, delete_hall))
        .routes(routes!(list_seat_layouts))
}

#[derive(Serialize, ToSchema)]
pub struct VenueListView {
    venues: Vec<Venue>,
    pagination: Pagination,
}

/// Lists venues by name.
///
/// Public. Names are ordered by their bytes.
#[utoipa::path(
    get, path = "/api/venues", tag = "venues", params(Page),
    responses((status = 200, body = VenueListView), Errors<400>),
)]
pub async fn list_venues(
    State(catalog): State<CatalogService>,
    page: Page,
) -> Result<Json<VenueListView>, ApiError> {
    let (venues, total) = catalog.list_venues(page).await?;
    let Paged { items: venues, pagination } = Paged::new(venues, total, page);
    Ok(Json(VenueListView { venues, pagination }))
}

#[derive(Serialize, ToSchema)]
pub struct VenueDetailView {
    venue: Venue,
    /// By name; at most 100.
    halls: Vec<HallSummary>,
}

/// Returns a venue with its halls.
///
/// Public. Up to 100 halls, without their seats. Errors: 404 `VENUE_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/venues/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses((status = 200, body = VenueDetailView), Errors<400>, Errors<404>),
)]
pub async fn get_venue(
    State(catalog): State<CatalogService>,
    Path(id): Path<VenueId>,
) -> Result<Json<VenueDetailView>, ApiError> {
    let (venue, halls) = catalog.get_venue(id).await?;
    Ok(Json(VenueDetailView { venue, halls }))
}

#[derive(Serialize, ToSchema)]
pub struct VenueOnlyView {
    venue: Venue,
}

/// Creates a venue.
///
/// For administrators. Errors: 400 `INVALID_NAME`, `INVALID_TEXT`; 409 `NAME_TAKEN`.
#[utoipa::path(
    post, path = "/api/admin/venues", tag = "venues", request_body = NewVenue,
    responses((status = 201, body = VenueOnlyView), Errors<401, 403, 409>),
)]
pub async fn create_venue(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Json(new): Json<NewVenue>,
) -> Result<(StatusCode, Json<VenueOnlyView>), ApiError> {
    let venue = catalog.create_venue(new, actor).await?;
    Ok((StatusCode::CREATED, Json(VenueOnlyView { venue })))
}

/// Changes a venue.
///
/// For administrators. Fields that are not sent stay as they are. Errors: 404 `VENUE_NOT_FOUND`;
/// 409 `NAME_TAKEN`.
#[utoipa::path(
    put, path = "/api/admin/venues/{id}", tag = "venues", params(("id" = Uuid, Path)),
    request_body = VenueChange,
    responses((status = 200, body = VenueOnlyView), Errors<401, 403, 404, 409>),
)]
pub async fn edit_venue(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Path(id): Path<VenueId>,
    Json(change): Json<VenueChange>,
) -> Result<Json<VenueOnlyView>, ApiError> {
    Ok(Json(VenueOnlyView { venue: catalog.edit_venue(id, change, actor).await? }))
}

/// Deletes a venue without halls and events.
///
/// For administrators. Errors: 404 `VENUE_NOT_FOUND`; 409 `VENUE_IN_USE`.
#[utoipa::path(
    delete, path = "/api/admin/venues/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses((status = 204, description = "The venue is deleted."), Errors<401, 403, 404, 409>),
)]
pub async fn delete_venue(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Path(id): Path<VenueId>,
) -> Result<StatusCode, ApiError> {
    catalog.delete_venue(id, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, ToSchema)]
pub struct HallDetailView {
    hall: Hall,
}

/// Creates a hall with its seats.
///
/// For administrators. The seats are a `grid` (rows of equal length, graded from front to back) or
/// a `layout` of sections. Lengths of a layout are centimetres; the stage is at (0, 0) and `y`
/// grows away from it; the position of a section is the middle of its first row. At most 500
/// sections, 5,000 rows, 500 seats in a row and 100,000 seats. A seat's id is its number in the
/// order of sections, rows and seats, from 0.
///
/// Errors: 400 `INVALID_LAYOUT`; 404 `VENUE_NOT_FOUND`; 409 `NAME_TAKEN`.
#[utoipa::path(
    post, path = "/api/admin/venues/{id}/halls", tag = "venues", params(("id" = Uuid, Path)),
    request_body = NewHall,
    responses((status = 201, body = HallDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn create_hall(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Path(id): Path<VenueId>,
    Json(new): Json<NewHall>,
) -> Result<(StatusCode, Json<HallDetailView>), ApiError> {
    let hall = catalog.create_hall(id, new, actor).await?;
    Ok((StatusCode::CREATED, Json(HallDetailView { hall })))
}

/// Returns a hall with its seats.
///
/// For organisers and administrators. Errors: 404 `HALL_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/halls/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses((status = 200, body = HallDetailView), Errors<401, 403, 404>),
)]
pub async fn get_hall(
    State(catalog): State<CatalogService>,
    _organiser: Organiser,
    Path(id): Path<HallId>,
) -> Result<Json<HallDetailView>, ApiError> {
    Ok(Json(HallDetailView { hall: catalog.get_hall(id).await? }))
}

/// Changes a hall.
///
/// For administrators. Fields that are not sent stay as they are. Seats can change only while no
/// event uses the hall. With a `revision`, a change that someone else made meanwhile is not
/// overwritten. Errors: 400 `INVALID_LAYOUT`; 404 `HALL_NOT_FOUND`; 409 `HALL_IN_USE`,
/// `NAME_TAKEN`, `STALE_REVISION` (with `revision`).
#[utoipa::path(
    put, path = "/api/admin/halls/{id}", tag = "venues", params(("id" = Uuid, Path)),
    request_body = HallChange,
    responses((status = 200, body = HallDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn edit_hall(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Path(id): Path<HallId>,
    Json(change): Json<HallChange>,
) -> Result<Json<HallDetailView>, ApiError> {
    Ok(Json(HallDetailView { hall: catalog.edit_hall(id, change, actor).await? }))
}

/// Deletes a hall that no event uses.
///
/// For administrators. Errors: 404 `HALL_NOT_FOUND`; 409 `HALL_IN_USE`.
#[utoipa::path(
    delete, path = "/api/admin/halls/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses((status = 204, description = "The hall is deleted."), Errors<401, 403, 404, 409>),
)]
pub async fn delete_hall(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Path(id): Path<HallId>,
) -> Result<StatusCode, ApiError> {
    catalog.delete_hall(id, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, ToSchema)]
pub struct SeatLayoutListView {
    layouts: Vec<Hall>,
    pagination: Pagination,
}

/// Lists all halls with their seats, by name.
///
/// For organisers and administrators, in pages.
#[utoipa::path(
    get, path = "/api/admin/seat-layouts", tag = "venues", params(Page),
    responses((status = 200, body = SeatLayoutListView), Errors<401, 403>),
)]
pub async fn list_seat_layouts(
    State(catalog): State<CatalogService>,
    _organiser: Organiser,
    page: Page,
) -> Result<Json<SeatLayoutListView>, ApiError> {
    let (halls, total) = catalog.list_halls(page).await?;
    let Paged { items: layouts, pagination } = Paged::new(halls, total, page);
    Ok(Json(SeatLayoutListView { layouts, pagination }))
}
