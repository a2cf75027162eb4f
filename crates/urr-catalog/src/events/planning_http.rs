//! What organisers do before an event changes: look at what a move means, and copy an event.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use urr_contracts::internal::ticket::MovePreviewAnswer;
use urr_kernel::{Timestamp, Uuid, Won, truncate_to_micros};
use urr_service::idempotency::{KeyedRequest, fingerprint, header_key};
use urr_service::{ApiError, Context, Errors, EventReader, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::admin_http::{AdminEventDetailView, detail};
use super::copy::{CopyEventError, EventCopy};
use super::move_preview::{ConflictReason, EventMove, MovePreview};
use super::rules::TITLE_CHARS_MAX;
use crate::text::parse_line;
use crate::{CatalogService, EventActor, EventId, EventRecord};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(preview_event_move)).routes(routes!(copy_event))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct MovePreviewQuery {
    /// The new start.
    starts_at: Timestamp,
    /// A new end of the sale, if it has to end earlier.
    sale_ends_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MovePreviewView {
    event_id: Uuid,
    previous_starts_at: Timestamp,
    starts_at: Timestamp,
    /// What it means to the owners of tickets; null while the ticket service is away.
    tickets: Option<MovedTicketsView>,
    /// Other events that begin within twelve hours of the new start: 20 at most.
    conflicts: Vec<EventConflictView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MovedTicketsView {
    /// Paid reservations. Their owners are told by mail.
    reservations: u64,
    tickets: u64,
    buyers: u64,
    /// Reservations that could be cancelled for free until the event begins, because it takes place
    /// on another day.
    free_reservations: u64,
    /// What would be paid back if all of them were cancelled.
    #[schema(value_type = i64)]
    refund_max: Won,
}

impl From<MovePreviewAnswer> for MovedTicketsView {
    fn from(answer: MovePreviewAnswer) -> MovedTicketsView {
        let MovePreviewAnswer { reservations, tickets, buyers, free_reservations, refund_max } =
            answer;
        MovedTicketsView { reservations, tickets, buyers, free_reservations, refund_max }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventConflictView {
    event_id: Uuid,
    title: String,
    starts_at: Timestamp,
    /// `place`: the same hall, or standing in the same venue; or `artist`.
    #[schema(example = "place")]
    reason: &'static str,
}

impl EventConflictView {
    fn new((reason, event): (ConflictReason, EventRecord)) -> EventConflictView {
        EventConflictView {
            event_id: event.id.0,
            starts_at: event.schedule.starts_at(),
            title: event.title,
            reason: match reason {
                ConflictReason::Place => "place",
                ConflictReason::Artist => "artist",
            },
        }
    }
}

/// Returns what it means if an event begins at another time.
///
/// For its organiser, support and administrators. Nothing is changed. What an edit would refuse is
/// refused here, too. Errors: 400 `INVALID_SCHEDULE`, `EVENT_IN_PAST`; 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`; 409 `EVENT_CANCELLED`, `EVENT_BEGUN`.
#[utoipa::path(
    get, path = "/api/admin/events/{id}/move-preview", tag = "events",
    params(("id" = Uuid, Path), MovePreviewQuery),
    responses((status = 200, body = MovePreviewView), Errors<401, 403, 404, 409>),
)]
pub async fn preview_event_move(
    State(catalog): State<CatalogService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    Path(id): Path<EventId>,
    Query(query): Query<MovePreviewQuery>,
) -> Result<Json<MovePreviewView>, ApiError> {
    let starts_at = truncate_to_micros(query.starts_at);
    let new = EventMove { starts_at, sale_ends_at: query.sale_ends_at.map(truncate_to_micros) };
    let scope = reader.event_scope();
    let MovePreview { event, tickets, conflicts } =
        catalog.preview_move(id, new, scope, &context).await?;
    Ok(Json(MovePreviewView {
        event_id: id.0,
        previous_starts_at: event.schedule.starts_at(),
        starts_at,
        tickets: tickets.map(MovedTicketsView::from),
        conflicts: conflicts.into_iter().map(EventConflictView::new).collect(),
    }))
}

#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CopyEventBody {
    starts_at: Timestamp,
    /// As long before the start as that of the original, if it is not given.
    sale_starts_at: Option<Timestamp>,
    sale_ends_at: Option<Timestamp>,
    /// That of the original, if it is not given.
    #[schema(max_length = 200)]
    title: Option<String>,
}

/// Creates a copy of an event at another time.
///
/// For its organiser and administrators. Texts, poster, artist, hall, prices, ticket types, pre-sale,
/// limits and fees are the same; the sale is moved with the start. Settings of the waiting room and
/// door staff are not copied. The sale must not have begun. Takes the header `Idempotency-Key`.
///
/// Errors: 400 `INVALID_SCHEDULE`, `EVENT_IN_PAST`, `SALE_IN_PAST`, `INVALID_TEXT`,
/// `INVALID_PRESALE`, `INVALID_IDEMPOTENCY_KEY`; 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 422
/// `IDEMPOTENCY_KEY_REUSED`.
#[utoipa::path(
    post, path = "/api/admin/events/{id}/copy", tag = "events",
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, max_length = 64,
        description = "A second request with the same key gets the same event.")),
    request_body = CopyEventBody,
    responses((status = 201, body = AdminEventDetailView), Errors<401, 403, 404, 422>),
)]
pub async fn copy_event(
    State(catalog): State<CatalogService>,
    EventActor(actor): EventActor,
    headers: HeaderMap,
    Path(id): Path<EventId>,
    Json(body): Json<CopyEventBody>,
) -> Result<(StatusCode, Json<AdminEventDetailView>), ApiError> {
    let request = header_key(&headers)?.map(|key| KeyedRequest {
        user_id: actor.admin_id,
        operation: "copy_event",
        key,
        fingerprint: fingerprint(&(id.0, &body)),
    });
    let title = body.title.map(|title| parse_line("title", &title, TITLE_CHARS_MAX)).transpose()?;
    let copy = EventCopy {
        starts_at: body.starts_at,
        sale_starts_at: body.sale_starts_at,
        sale_ends_at: body.sale_ends_at,
        title,
        request,
    };
    let event = catalog.copy_event(id, copy, actor).await?;
    Ok((StatusCode::CREATED, detail(&catalog, event.id, actor.scope).await?))
}

impl From<CopyEventError> for ApiError {
    fn from(error: CopyEventError) -> ApiError {
        match error {
            CopyEventError::Original(error) => error.into(),
            CopyEventError::Schedule(invalid) => invalid.into(),
            CopyEventError::SaleInPast => ApiError::bad_request("SALE_IN_PAST", error.to_string()),
            CopyEventError::Create(error) => error.into(),
        }
    }
}
