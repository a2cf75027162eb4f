//! Events for administrators over HTTP. Nothing here is cached.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::admin_log::{self, AdminLogView};
use urr_service::idempotency::{KeyedRequest, fingerprint, header_key};
use urr_service::{
    ApiError, Errors, EventReader, EventScope, Json, Page, Paged, Pagination, Path, Query,
    parse_search,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::bodies::{CancelEventBody, CreateEventBody};
use super::views::EventView;
use crate::{
    CatalogService, EditEventError, EventActor, EventChange, EventId, EventListFilter,
    EventListOrder, EventRecord, EventStatus, TicketType,
};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new()
        .routes(routes!(list_admin_events, create_event))
        .routes(routes!(get_admin_event, edit_event, delete_event))
        .routes(routes!(list_event_actions))
        .routes(routes!(cancel_event))
}

/// An event with the fields for administrators only.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminEventView {
    #[serde(flatten)]
    event: EventView,
    /// An edit must send this back.
    revision: i64,
    /// Why the count of the ticket service was rejected.
    inventory_problem: Option<String>,
    /// Whose event it is.
    organiser_id: Uuid,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
}

impl AdminEventView {
    fn new(event: EventRecord, ticket_types: Vec<TicketType>, now: Timestamp) -> AdminEventView {
        let problem = event.inventory_problem.clone();
        AdminEventView {
            revision: event.revision,
            inventory_problem: Some(problem).filter(|problem| !problem.is_empty()),
            organiser_id: event.organiser_id,
            created_by: event.created_by,
            created_at: event.created_at,
            updated_at: event.updated_at,
            deleted_at: event.deleted_at,
            event: EventView::new(event, ticket_types, now),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AdminEventListView {
    events: Vec<AdminEventView>,
    pagination: Pagination,
}

#[derive(Serialize, ToSchema)]
pub struct AdminEventDetailView {
    event: AdminEventView,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct AdminEventQuery {
    #[param(inline)]
    status: Option<EventStatus>,
    /// Deleted events too.
    include_deleted: Option<bool>,
    #[param(max_length = 100)]
    q: Option<String>,
}

/// Lists events, newest first, without ticket types.
///
/// For organisers (their own), support and administrators (all). `includeDeleted` adds deleted events. Errors: 400 `INVALID_QUERY`.
#[utoipa::path(
    get, path = "/api/admin/events", tag = "events", params(AdminEventQuery, Page),
    responses((status = 200, body = AdminEventListView), Errors<401, 403>),
)]
pub async fn list_admin_events(
    State(catalog): State<CatalogService>,
    EventReader(reader): EventReader,
    Query(query): Query<AdminEventQuery>,
    page: Page,
) -> Result<Json<AdminEventListView>, ApiError> {
    let filter = EventListFilter {
        status: query.status,
        search: parse_search(query.q.as_deref())?,
        sort: EventListOrder::Newest,
        with_deleted: query.include_deleted.unwrap_or(false),
        organiser_id: reader.event_scope().organiser_id(),
        ..EventListFilter::default()
    };
    let found = catalog.list_events(filter, page).await?;
    let view = |event| AdminEventView::new(event, Vec::new(), found.now);
    let views = found.events.into_iter().map(view).collect();
    let Paged { items: events, pagination } = Paged::new(views, found.total, page);
    Ok(Json(AdminEventListView { events, pagination }))
}

/// Returns one event, also a deleted one.
///
/// For its organiser, support and administrators. `revision` is needed to change it. Errors: 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{id}", tag = "events", params(("id" = Uuid, Path)),
    responses((status = 200, body = AdminEventDetailView), Errors<401, 403, 404>),
)]
pub async fn get_admin_event(
    State(catalog): State<CatalogService>,
    EventReader(reader): EventReader,
    Path(id): Path<EventId>,
) -> Result<Json<AdminEventDetailView>, ApiError> {
    detail(&catalog, id, reader.event_scope()).await
}

/// Lists what was done to an event in the catalogue, newest first.
///
/// For its organiser, support and administrators. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{id}/log", tag = "events", params(("id" = Uuid, Path), Page),
    responses((status = 200, body = AdminLogView), Errors<401, 403, 404>),
)]
pub async fn list_event_actions(
    State(catalog): State<CatalogService>,
    EventReader(reader): EventReader,
    Path(id): Path<EventId>,
    page: Page,
) -> Result<Json<AdminLogView>, ApiError> {
    let found = catalog.get_event(id).await?.ok_or(EditEventError::NotFound)?;
    reader.event_scope().check(Some(found.event.organiser_id))?;
    admin_log::list_of_resource(&catalog.0.db, id.to_string(), page).await
}

pub(super) async fn detail(
    catalog: &CatalogService,
    id: EventId,
    scope: EventScope,
) -> Result<Json<AdminEventDetailView>, ApiError> {
    let found = catalog.get_event(id).await?.ok_or(EditEventError::NotFound)?;
    scope.check(Some(found.event.organiser_id))?;
    let event = AdminEventView::new(found.event, found.ticket_types, found.now);
    Ok(Json(AdminEventDetailView { event }))
}

/// Creates an event.
///
/// For organisers and administrators. It belongs to its creator, unless an administrator names
/// another `organiserId`. With `requiresIdentity` only checked persons may buy, each up to
/// `seatsPerUserMax` with all their accounts. A seated event has `hallId` and `prices` for every grade of the hall, a
/// standing event `venueId` and 1 to 20 `ticketTypes`. The times must be sale start < sale end ≤
/// start. A pre-sale needs an artist and a sale longer than 48 hours. `inventoryReady` becomes true
/// a moment later; then the event can be booked. Takes the header `Idempotency-Key`.
///
/// Errors: 400 `INVALID_PLACE`, `UNKNOWN_HALL`, `UNKNOWN_VENUE`, `UNKNOWN_ARTIST`,
/// `INVALID_SCHEDULE`, `EVENT_IN_PAST`, `INVALID_PRICES`, `INVALID_TICKET_TYPES`,
/// `INVALID_PRESALE`, `INVALID_CANCEL_POLICY`, `INVALID_RUNNING_TIME`, `INVALID_CASTING`,
/// `INVALID_SEATS_PER_USER`, `INVALID_IMAGE_URL`, `INVALID_IDEMPOTENCY_KEY`; 403 `ORGANISER_FIXED`; 422
/// `IDEMPOTENCY_KEY_REUSED`.
#[utoipa::path(
    post, path = "/api/admin/events", tag = "events", request_body = CreateEventBody,
    params(("Idempotency-Key" = Option<String>, Header, max_length = 64,
        description = "A second request with the same key gets the same event.")),
    responses((status = 201, body = AdminEventDetailView), Errors<401, 403, 422>),
)]
pub async fn create_event(
    State(catalog): State<CatalogService>,
    EventActor(actor): EventActor,
    headers: HeaderMap,
    Json(body): Json<CreateEventBody>,
) -> Result<(StatusCode, Json<AdminEventDetailView>), ApiError> {
    let request = header_key(&headers)?.map(|key| KeyedRequest {
        user_id: actor.admin_id,
        operation: "create_event",
        key,
        fingerprint: fingerprint(&body),
    });
    let new = body.parse(request, &catalog.0.settings)?;
    let event = catalog.create_event(new, actor).await?;
    Ok((StatusCode::CREATED, detail(&catalog, event.id, actor.scope).await?))
}

/// Changes an event.
///
/// For its organiser and administrators. Fields that are not sent stay as they are; `revision` is
/// the one that was read. Venue, hall and prices are fixed once the inventory exists; sale start, pre-sale and
/// artist from a minute before the sale opens. If the start changes, everybody with a ticket is told
/// by mail, and who booked another day can cancel for free until the event begins.
///
/// Errors: 400 as for creating; 403 `NOT_YOUR_EVENT`, `ORGANISER_FIXED`; 404 `EVENT_NOT_FOUND`; 409
/// `STALE_REVISION` (with `revision`), `EVENT_CANCELLED`, `INVENTORY_FIXED`, `SALE_STARTED`,
/// `EVENT_BEGUN`.
#[utoipa::path(
    put, path = "/api/admin/events/{id}", tag = "events", params(("id" = Uuid, Path)),
    request_body = EventChange,
    responses((status = 200, body = AdminEventDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn edit_event(
    State(catalog): State<CatalogService>,
    EventActor(actor): EventActor,
    Path(id): Path<EventId>,
    Json(change): Json<EventChange>,
) -> Result<Json<AdminEventDetailView>, ApiError> {
    catalog.edit_event(id, change.parse()?, actor).await?;
    detail(&catalog, id, actor.scope).await
}

/// Cancels an event that has not started.
///
/// For its organiser and administrators. All reservations are cancelled and refunded in full.
/// Repeating it changes nothing. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 409 `EVENT_OVER`.
#[utoipa::path(
    post, path = "/api/admin/events/{id}/cancel", tag = "events", params(("id" = Uuid, Path)),
    request_body = CancelEventBody,
    responses((status = 200, body = AdminEventDetailView), Errors<401, 403, 404, 409>),
)]
pub async fn cancel_event(
    State(catalog): State<CatalogService>,
    EventActor(actor): EventActor,
    Path(id): Path<EventId>,
    Json(body): Json<CancelEventBody>,
) -> Result<Json<AdminEventDetailView>, ApiError> {
    catalog.cancel_event(id, body.parse()?, actor).await?;
    detail(&catalog, id, actor.scope).await
}

/// Deletes an event.
///
/// For its organiser and administrators. Allowed until a minute before the sale opens, after a cancellation, and once
/// the event has started; then nothing is refunded and tickets stay valid. Repeating it changes
/// nothing. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 409 `EVENT_NOT_DELETABLE`.
#[utoipa::path(
    delete, path = "/api/admin/events/{id}", tag = "events", params(("id" = Uuid, Path)),
    responses((status = 204, description = "The event is deleted."), Errors<401, 403, 404, 409>),
)]
pub async fn delete_event(
    State(catalog): State<CatalogService>,
    EventActor(actor): EventActor,
    Path(id): Path<EventId>,
) -> Result<StatusCode, ApiError> {
    catalog.delete_event(id, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}
