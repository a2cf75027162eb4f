//! Seat maps over HTTP.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use urr_kernel::Uuid;
use urr_service::{ApiError, ErrorBody, Path, Query, User, has_etag};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::event_not_found;
use crate::seat_map::{InventorySnapshot, SeatMapStreamLimit, SeatMapView, changes};
use crate::{InventoryKind, TicketService};

/// A sign of life on a stream without changes: shorter than any time-out on the way.
const HEARTBEAT: Duration = Duration::from_secs(15);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Part of every entity tag: to be changed with the format of the answers.
const FORMAT: u32 = 1;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(get_seat_map)).routes(routes!(follow_seat_map))
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

/// The seats of an event and whether they are free.
///
/// Ask once for everything, then with `since`. The entity tag changes with every change of a seat.
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
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "There is no such event, or it has no \
            numbered seats."),
    ),
)]
async fn get_seat_map(
    State(ticket): State<TicketService>,
    Path(event_id): Path<Uuid>,
    Query(query): Query<SeatMapQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let view = load(&ticket, event_id).await?;
    let tag = format!("\"{FORMAT}-{}\"", view.seats.version());
    if has_etag(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    let headers = [(ETAG, tag.as_str()), (CACHE_CONTROL, "private, no-cache")];
    Ok((headers, json(body(&view, &query))).into_response())
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

/// The changes of an event's seats as they happen.
///
/// Server-sent events: the `id` of each is the version, its `data` what the seat map answers to
/// `since`. Without a known version the first one has all `statuses`. The stream ends after some
/// minutes; come back with the last `id` and nothing is missed.
///
/// Read it with `fetch`: it needs the entry token in the header `x-queue-entry-token`, which a
/// browser's own `EventSource` cannot send. Each user may follow three streams at a time.
#[utoipa::path(
    get, path = "/api/seats/events/{eventId}/stream", tag = "seats",
    params(
        ("eventId" = Uuid, Path),
        SeatMapStreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The version that you have."),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "There is no such event, or it has no \
            numbered seats."),
        (status = 429, body = ErrorBody, description = "`STREAM_LIMIT`: you follow as many \
            streams as you may."),
        (status = 503, body = ErrorBody, description = "`TOO_MANY_STREAMS`: too many follow \
            already. Ask for the map with `since` now and then."),
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

/// An event with numbered seats.
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

fn json(bytes: Bytes) -> Response {
    ([(CONTENT_TYPE, "application/json")], bytes).into_response()
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
