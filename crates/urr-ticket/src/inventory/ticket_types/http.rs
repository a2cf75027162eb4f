//! The routes for ticket types.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{InvalidTicketType, TicketTypeDraft, Uuid};
use urr_service::{ApiError, Context, Errors, Json, Organiser, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::TicketService;
use crate::inventory::ticket_types::TicketTypeError;
use crate::inventory::ticket_types::rules::{TicketTypeRejection, TicketTypeStock};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(create_ticket_type)).routes(routes!(change_ticket_type))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StockTicketTypeBody {
    #[schema(min_length = 1, max_length = 100, example = "스탠딩 A")]
    name: String,
    #[serde(default)]
    #[schema(max_length = 500)]
    description: String,
    /// In won.
    #[schema(minimum = 0, maximum = 10_000_000, example = 88_000)]
    price: i64,
    /// How many there are, sold ones included.
    #[schema(minimum = 1, maximum = 100_000, example = 500)]
    total: i64,
}

impl StockTicketTypeBody {
    fn parse(&self) -> Result<TicketTypeDraft, ApiError> {
        let draft = TicketTypeDraft::parse(&self.name, &self.description, self.price, self.total);
        draft.map_err(invalid)
    }
}

#[derive(Serialize, ToSchema)]
struct TicketTypeDetailView {
    #[serde(rename = "ticketType")]
    ticket_type: TicketTypeStock,
}

/// Adds a ticket type to a standing event.
///
/// For its organiser and administrators. Errors: 400 `INVALID_NAME`, `INVALID_DESCRIPTION`,
/// `INVALID_PRICE`, `INVALID_TOTAL`; 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 409 `EVENT_HAS_SEATS`, `EVENT_CANCELLED`,
/// `TICKET_TYPE_NAME_TAKEN`, `TOO_MANY_TICKET_TYPES` (20).
#[utoipa::path(
    post, path = "/api/admin/events/{eventId}/tickets", tag = "ticket types",
    params(("eventId" = Uuid, Path)), request_body = StockTicketTypeBody,
    responses((status = 201, body = TicketTypeDetailView), Errors<401, 403, 404, 409>),
)]
async fn create_ticket_type(
    State(ticket): State<TicketService>,
    Organiser(admin): Organiser,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    Json(body): Json<StockTicketTypeBody>,
) -> Result<(StatusCode, Json<TicketTypeDetailView>), ApiError> {
    let draft = body.parse()?;
    ticket.check_event(event_id, admin.event_scope()).await?;
    let made = ticket.create_ticket_type(admin.user_id, context, event_id, draft).await?;
    Ok((StatusCode::CREATED, Json(TicketTypeDetailView { ticket_type: made })))
}

/// Changes a ticket type.
///
/// For the event's organiser and administrators. The total cannot fall below what is sold, and the price is fixed once
/// something is sold. Errors: as for adding; 404 `TICKET_TYPE_NOT_FOUND`; 409 `TOTAL_BELOW_SOLD`,
/// `PRICE_IS_FIXED` (with `sold`).
#[utoipa::path(
    put, path = "/api/admin/tickets/{id}", tag = "ticket types",
    params(("id" = Uuid, Path)), request_body = StockTicketTypeBody,
    responses((status = 200, body = TicketTypeDetailView), Errors<401, 403, 404, 409>),
)]
async fn change_ticket_type(
    State(ticket): State<TicketService>,
    Organiser(admin): Organiser,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<StockTicketTypeBody>,
) -> Result<Json<TicketTypeDetailView>, ApiError> {
    let draft = body.parse()?;
    let event_id = ticket.event_of_ticket_type(id).await?.ok_or(TicketTypeError::NotFound)?;
    ticket.check_event(event_id, admin.event_scope()).await?;
    let changed = ticket.change_ticket_type(admin.user_id, context, id, draft).await?;
    Ok(Json(TicketTypeDetailView { ticket_type: changed }))
}

fn invalid(invalid: InvalidTicketType) -> ApiError {
    let code = match invalid {
        InvalidTicketType::Name => "INVALID_NAME",
        InvalidTicketType::Description => "INVALID_DESCRIPTION",
        InvalidTicketType::Price => "INVALID_PRICE",
        InvalidTicketType::Total => "INVALID_TOTAL",
    };
    ApiError::bad_request(code, invalid.to_string())
}

impl From<TicketTypeError> for ApiError {
    fn from(error: TicketTypeError) -> ApiError {
        let sentence = error.to_string();
        match error {
            TicketTypeError::EventNotFound => ApiError::not_found("EVENT_NOT_FOUND", sentence),
            TicketTypeError::NotFound => ApiError::not_found("TICKET_TYPE_NOT_FOUND", sentence),
            TicketTypeError::EventCancelled => ApiError::conflict("EVENT_CANCELLED", sentence),
            TicketTypeError::EventHasSeats => ApiError::conflict("EVENT_HAS_SEATS", sentence),
            TicketTypeError::NameTaken => ApiError::conflict("TICKET_TYPE_NAME_TAKEN", sentence),
            TicketTypeError::TooMany => ApiError::conflict("TOO_MANY_TICKET_TYPES", sentence),
            TicketTypeError::Rejected(TicketTypeRejection::BelowSold { sold }) => {
                ApiError::conflict("TOTAL_BELOW_SOLD", sentence).with("sold", sold)
            }
            TicketTypeError::Rejected(TicketTypeRejection::PriceIsFixed { sold }) => {
                ApiError::conflict("PRICE_IS_FIXED", sentence).with("sold", sold)
            }
            TicketTypeError::Storage(error) => error.into(),
        }
    }
}
