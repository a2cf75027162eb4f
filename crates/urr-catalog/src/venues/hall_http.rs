//! Halls over HTTP.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_layout::{Grid, Layout};
use urr_service::{Admin, ApiError, Context, ErrorStatus, Json, Page, Paged, Pagination, Path};
use utoipa::ToSchema;

use crate::errors::hall_not_found;
use crate::http::actor;
use crate::text::{parse_line, parse_paragraphs};
use crate::{
    CatalogService, Hall, HallChange, HallId, HallSummary, NewHall, SeatTemplate, VenueId,
};

const NAME_CHARS_MAX: usize = 100;
const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// A hall without its seats.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HallSummaryView {
    id: Uuid,
    venue_id: Uuid,
    #[schema(example = "대극장")]
    name: String,
    description: String,
    total_seats: u32,
    /// The grades, front to back. Each needs a price when an event is created.
    grades: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<HallSummary> for HallSummaryView {
    fn from(hall: HallSummary) -> HallSummaryView {
        let HallSummary { id, venue_id, name, description, seats_total, grades, created_at } = hall;
        HallSummaryView {
            id: id.0,
            venue_id: venue_id.0,
            name,
            description,
            total_seats: seats_total,
            grades,
            created_at,
        }
    }
}

/// A hall with its seats.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HallView {
    #[serde(flatten)]
    summary: HallSummaryView,
    layout_config: Layout,
    /// The grid that the layout was made from, if any.
    grid: Option<Grid>,
}

impl From<Hall> for HallView {
    fn from(hall: Hall) -> HallView {
        let (layout_config, grid) = (hall.template.layout().clone(), hall.template.grid().cloned());
        HallView { layout_config, grid, summary: hall.summary().into() }
    }
}

#[derive(Serialize, ToSchema)]
pub struct HallDetailView {
    hall: HallView,
}

/// The seats are given either as a grid or as a layout.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateHallBody {
    #[schema(max_length = 100)]
    name: String,
    #[serde(default)]
    #[schema(max_length = 2_000)]
    description: String,
    grid: Option<Grid>,
    layout: Option<Layout>,
}

/// `None` if neither was given.
fn parse_template(
    grid: Option<Grid>,
    layout: Option<Layout>,
) -> Result<Option<SeatTemplate>, ApiError> {
    match (grid, layout) {
        (Some(grid), None) => Ok(Some(SeatTemplate::from_grid(grid)?)),
        (None, Some(layout)) => Ok(Some(SeatTemplate::from_layout(layout)?)),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(ApiError::bad_request("INVALID_LAYOUT", "Give a grid or a layout, not both."))
        }
    }
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
    request_body = CreateHallBody,
    responses(
        (status = 201, body = HallDetailView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<404>, ErrorStatus<409>,
    ),
)]
pub async fn create_hall(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<CreateHallBody>,
) -> Result<(StatusCode, Json<HallDetailView>), ApiError> {
    let template = parse_template(body.grid, body.layout)?.ok_or_else(|| {
        ApiError::bad_request("INVALID_LAYOUT", "The seats are missing: give a grid or a layout.")
    })?;
    let new = NewHall {
        name: parse_line("name", &body.name, NAME_CHARS_MAX)?,
        description: parse_paragraphs("description", &body.description, DESCRIPTION_CHARS_MAX)?,
        template,
    };
    let hall = catalog.create_hall(VenueId(id), new, actor(&admin, context)).await?;
    Ok((StatusCode::CREATED, Json(HallDetailView { hall: hall.into() })))
}

/// Returns a hall with its seats.
///
/// For administrators. Errors: 404 `HALL_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/halls/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = HallDetailView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<404>,
    ),
)]
pub async fn get_hall(
    State(catalog): State<CatalogService>,
    _admin: Admin,
    Path(id): Path<Uuid>,
) -> Result<Json<HallDetailView>, ApiError> {
    let hall = catalog.get_hall(HallId(id)).await?.ok_or_else(hall_not_found)?;
    Ok(Json(HallDetailView { hall: hall.into() }))
}

/// Fields that are left out keep their value. The seats can change only while no event uses them.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditHallBody {
    #[schema(max_length = 100)]
    name: Option<String>,
    #[schema(max_length = 2_000)]
    description: Option<String>,
    grid: Option<Grid>,
    layout: Option<Layout>,
}

impl EditHallBody {
    fn parse(self) -> Result<HallChange, ApiError> {
        let name = self.name.map(|text| parse_line("name", &text, NAME_CHARS_MAX));
        let description = self
            .description
            .map(|text| parse_paragraphs("description", &text, DESCRIPTION_CHARS_MAX));
        Ok(HallChange {
            name: name.transpose()?,
            description: description.transpose()?,
            template: parse_template(self.grid, self.layout)?,
        })
    }
}

/// Changes a hall.
///
/// For administrators. Fields that are not sent stay as they are. Seats can change only while no
/// event uses the hall. Errors: 400 `INVALID_LAYOUT`; 404 `HALL_NOT_FOUND`; 409 `HALL_IN_USE`,
/// `NAME_TAKEN`.
#[utoipa::path(
    put, path = "/api/admin/halls/{id}", tag = "venues", params(("id" = Uuid, Path)),
    request_body = EditHallBody,
    responses(
        (status = 200, body = HallDetailView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<404>, ErrorStatus<409>,
    ),
)]
pub async fn edit_hall(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<EditHallBody>,
) -> Result<Json<HallDetailView>, ApiError> {
    let hall = catalog.edit_hall(HallId(id), body.parse()?, actor(&admin, context)).await?;
    Ok(Json(HallDetailView { hall: hall.into() }))
}

/// Deletes a hall that no event uses.
///
/// For administrators. Errors: 404 `HALL_NOT_FOUND`; 409 `HALL_IN_USE`.
#[utoipa::path(
    delete, path = "/api/admin/halls/{id}", tag = "venues", params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "The hall is deleted."),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>, ErrorStatus<404>, ErrorStatus<409>,
    ),
)]
pub async fn delete_hall(
    State(catalog): State<CatalogService>,
    Admin(admin): Admin,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    catalog.delete_hall(HallId(id), actor(&admin, context)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, ToSchema)]
pub struct SeatLayoutListView {
    layouts: Vec<HallView>,
    pagination: Pagination,
}

/// Lists all halls with their seats, by name.
///
/// For administrators, in pages.
#[utoipa::path(
    get, path = "/api/admin/seat-layouts", tag = "venues", params(Page),
    responses(
        (status = 200, body = SeatLayoutListView),
        ErrorStatus<400>, ErrorStatus<401>, ErrorStatus<403>,
    ),
)]
pub async fn list_seat_layouts(
    State(catalog): State<CatalogService>,
    _admin: Admin,
    page: Page,
) -> Result<Json<SeatLayoutListView>, ApiError> {
    let (halls, total) = catalog.list_halls(page).await?;
    let halls = halls.into_iter().map(HallView::from).collect();
    let Paged { items: layouts, pagination } = Paged::new(halls, total, page);
    Ok(Json(SeatLayoutListView { layouts, pagination }))
}
