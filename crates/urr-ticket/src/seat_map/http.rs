//! The routes of seat maps.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use urr_kernel::Uuid;
use urr_service::{ApiError, DoorStaff, ETag, Errors, EventReader, Path, Query, User};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::event_not_found;
use crate::seat_map::{InventorySnapshot, SeatMapStreamLimit, SeatMapView, changes};
use crate::{InventoryKind, TicketService};

/// The heartbeat of a stream: shorter than any timeout between client and server.
const HEARTBEAT: Duration = Duration::from_secs(15);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Part of every entity tag: to be changed with the format of the views.
const FORMAT: u32 = 1;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(get_seat_map))
        .routes(routes!(get_event_seat_map))
        .routes(routes!(get_box_office_seat_map))
        .routes(routes!(follow_seat_map))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SeatMapQuery {
    /// The version that you have: only what changed after it is answered (`changes`), or all
    /// `statuses` if that is shorter or the version is too old.
    since: Option<u64>,
    /// `false` leaves the layout and the prices out. They never change.
    layout: Option<bool>,
}

/// Returns the seat map of an event.
///
/// Needs an entry token. `statuses` has two bits per seat in base64: 0 available, 1 held, 2 sold,
/// 3 blocked; seat `n` is bits `2 * (n % 4)` of byte `n / 4`. Read it once, then send `since` with the last
/// `version`: the response has `changes` (pairs of seat and status), or all `statuses` if that is
/// shorter. Ignore a `version` below yours. `layout=false` omits layout and prices, which never
/// change.
///
/// Errors: 403 `ENTRY_TOKEN_REQUIRED`, `ENTRY_TOKEN_INVALID`, `ENTRY_TOKEN_OTHER_EVENT`; 404
/// `EVENT_NOT_FOUND`, `NO_SEAT_SELECTION` (a standing event).
#[utoipa::path(
    get, path = "/api/seats/events/{eventId}", tag = "seats",
    params(
        ("eventId" = Uuid, Path),
        SeatMapQuery,
        ("If-None-Match" = Option<String>, Header, description = "The entity tag that you have."),
    ),
    responses(
        (status = 200, body = SeatMapView<'static>, headers(("etag" = String))),
        (status = 304, description = "Nothing changed."),
        Errors<401, 403, 404>,
    ),
)]
async fn get_seat_map(
    State(ticket): State<TicketService>,
    Path(event_id): Path<Uuid>,
    Query(query): Query<SeatMapQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    seat_map(&ticket, event_id, &query, &headers).await
}

/// Returns the seat map of an event to those who run it.
///
/// For the event's organiser, support and administrators. As for users, without an entry token.
/// Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`, `NO_SEAT_SELECTION` (a standing event).
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/seat-map", tag = "admin",
    params(
        ("eventId" = Uuid, Path),
        SeatMapQuery,
        ("If-None-Match" = Option<String>, Header, description = "The entity tag that you have."),
    ),
    responses(
        (status = 200, body = SeatMapView<'static>, headers(("etag" = String))),
        (status = 304, description = "Nothing changed."),
        Errors<401, 403, 404>,
    ),
)]
async fn get_event_seat_map(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Path(event_id): Path<Uuid>,
    Query(query): Query<SeatMapQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    ticket.check_event(event_id, reader.event_scope()).await?;
    seat_map(&ticket, event_id, &query, &headers).await
}

/// Returns the seat map of an event to those who sell at its box office.
///
/// For the event's organiser, administrators, and door staff who may sell there. Errors: 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`, `NO_SEAT_SELECTION` (a standing event).
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/box-office/seat-map", tag = "tickets",
    params(
        ("eventId" = Uuid, Path),
        SeatMapQuery,
        ("If-None-Match" = Option<String>, Header, description = "The entity tag that you have."),
    ),
    responses(
        (status = 200, body = SeatMapView<'static>, headers(("etag" = String))),
        (status = 304, description = "Nothing changed."),
        Errors<401, 403, 404>,
    ),
)]
async fn get_box_office_seat_map(
    State(ticket): State<TicketService>,
    DoorStaff(seller): DoorStaff,
    Path(event_id): Path<Uuid>,
    Query(query): Query<SeatMapQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    ticket.check_seller(event_id, seller.event_scope()).await?;
    seat_map(&ticket, event_id, &query, &headers).await
}

async fn seat_map(
    ticket: &TicketService,
    event_id: Uuid,
    query: &SeatMapQuery,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let view = load(ticket, event_id).await?;
    let etag = ETag::of_version(format_args!("{FORMAT}-{}", view.seats.version()));
    if etag.matches(headers) {
        return Ok(etag.not_modified());
    }
    let etag = [(ETAG, etag.header())];
    let headers = [(CACHE_CONTROL, "private, no-cache"), (CONTENT_TYPE, "application/json")];
    Ok((etag, headers, body(&view, query)).into_response())
}

fn body(view: &InventorySnapshot, query: &SeatMapQuery) -> Bytes {
    let event_id = view.inventory.event_id;
    match (query.since, query.layout) {
        (Some(since), None | Some(false)) => {
            view.seats.since(event_id, i64::try_from(since).unwrap_or(i64::MAX))
        }
        (None, Some(false)) => view.seats.without_layout(event_id),
        (_, Some(true)) | (None, None) => view.seats.whole(&view.inventory),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SeatMapStreamQuery {
    /// The version that you have. A `Last-Event-ID` header says the same and goes first.
    since: Option<u64>,
}

/// Streams changes of the seat map as server-sent events.
///
/// Needs an entry token. The `id` of an event is the version, its `data` what the seat map answers
/// to `since`. Without `since` or `Last-Event-ID` the first event has all statuses. A heartbeat
/// comes every 15 s; the stream ends after ten minutes. `EventSource` cannot send the header
/// `x-queue-entry-token`: read the stream with `fetch`.
///
/// Errors: as for the seat map; 429 `STREAM_LIMIT` (three per user and process); 503
/// `TOO_MANY_STREAMS`.
#[utoipa::path(
    get, path = "/api/seats/events/{eventId}/stream", tag = "seats",
    params(
        ("eventId" = Uuid, Path),
        SeatMapStreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The version that you have."),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        Errors<401, 403, 404, 429>,
    ),
)]
async fn follow_seat_map(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(event_id): Path<Uuid>,
    Query(query): Query<SeatMapStreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    load(&ticket, event_id).await?;
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
    let known = last.or(query.since).map(|known| i64::try_from(known).unwrap_or(i64::MAX));
    let events = changes(&ticket.maps, user.user_id, event_id, known)?;
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    Ok(events.into_response())
}

/// The snapshot of an event with numbered seats.
async fn load(
    ticket: &TicketService,
    event_id: Uuid,
) -> Result<std::sync::Arc<InventorySnapshot>, ApiError> {
    let view = ticket.maps.load(event_id).await?.ok_or_else(event_not_found)?;
    match view.inventory.kind {
        InventoryKind::Seated => Ok(view),
        InventoryKind::Standing => Err(ApiError::not_found(
            "NO_SEAT_SELECTION",
            "This event has no numbered seats. Please choose tickets instead.",
        )),
    }
}

impl From<SeatMapStreamLimit> for ApiError {
    fn from(error: SeatMapStreamLimit) -> ApiError {
        let again = Duration::from_secs(30);
        match error {
            SeatMapStreamLimit::OfAll => {
                let sentence =
                    "Too many follow the map already. Please ask for it now and then instead.";
                ApiError::unavailable("TOO_MANY_STREAMS", sentence, again)
            }
            SeatMapStreamLimit::OfUser => {
                let sentence = "You follow too many maps at a time. Please close one of them.";
                ApiError::too_many("STREAM_LIMIT", sentence, again)
            }
        }
    }
}
