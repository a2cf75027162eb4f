//! The crowd document: the public state of a room, the same bytes for everybody.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, hex};
use urr_room::LinePosition;
use urr_service::{ApiError, ETag, Errors, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::crowd_cache::CrowdSnapshot;
use crate::status::EventContext;
use crate::{EventRoom, JoinRejection, QueueError, QueueService, RoomPhase};

const CACHING: HeaderValue = HeaderValue::from_static("public, max-age=1");

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(get_queue_crowd))
}

/// The public state of a room.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CrowdView<'a> {
    event_id: Uuid,
    /// `closed`, `gathering`, `drawing`, `open`, `paused`, `over` or `cancelled`.
    #[schema(example = "open")]
    phase: &'a str,
    /// When users may join; null unless the room is closed.
    gathers_at: Option<Timestamp>,
    /// When users are admitted.
    opens_at: Timestamp,
    /// When the numbers were read.
    server_time: Timestamp,
    waiting: u32,
    /// How many users have a slot, and how many may have one at once.
    active: u32,
    threshold: u32,
    /// How many users were admitted, and how many left the line by themselves, so far.
    admitted_total: u64,
    left_total: u64,
    /// How many users were admitted from the line in the last minute.
    rate_per_minute: u32,
    sold_out: bool,
    /// The organiser's message to users who wait.
    message: Option<&'a str>,
    /// Number and position of some users in the line, front first, the first and the last included.
    /// Empty before a draw: there is no order yet.
    #[schema(value_type = Vec<Vec<i64>>)]
    marks: Vec<(i64, u32)>,
    /// Only of a lottery: the hexadecimal commitment, which was published before anybody joined.
    draw_commitment: Option<String>,
}

/// Returns the crowd document of a room.
///
/// Public, and the same for everybody within a second, so caches can serve it. `marks` are numbers
/// and positions of up to 160 users in line, in ascending order: with the `number` of the user's
/// check a client finds its position between two marks without asking. It does not keep the
/// position. While the room of a new event is being prepared, there is no document: 204.
///
/// Errors: 404 `EVENT_NOT_FOUND`; 503 `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/queue/crowd/{eventId}", tag = "queue", security(()),
    params(
        ("eventId" = Uuid, Path),
        ("If-None-Match" = Option<String>, Header, description = "The entity tag of the last answer."),
    ),
    responses(
        (status = 200, body = CrowdView<'static>, headers(("etag" = String))),
        (status = 204, description = "The event is new: its room is being prepared."),
        (status = 304, description = "Nothing has changed."),
        Errors<404>,
    ),
)]
async fn get_queue_crowd(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let caching = [(CACHE_CONTROL, CACHING)];
    let (context, crowd) = match queue.crowd(event_id).await {
        // The page of an event can be opened before its room is known here: that is no error.
        Err(QueueError::RoomNotReady) => {
            return Ok((StatusCode::NO_CONTENT, caching).into_response());
        }
        found => found?,
    };
    if context.phase == RoomPhase::Deleted {
        return Err(JoinRejection::UnknownEvent.into());
    }
    let document = document(&queue, &context, &crowd);
    if document.tag.matches(&headers) {
        return Ok((caching, document.tag.not_modified()).into_response());
    }
    let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((caching, json, [(ETAG, document.tag.header())], document.bytes).into_response())
}

/// The document as it is sent to all who ask within a second.
#[derive(Clone, Debug)]
pub struct CrowdDocument {
    bytes: Bytes,
    tag: ETag,
    /// It is made again if one of these has changed.
    phase: RoomPhase,
    is_sold_out: bool,
    event: Weak<EventRoom>,
}

/// Made once for a crowd, and again only if the event itself has changed within the second.
fn document(queue: &QueueService, context: &EventContext, crowd: &CrowdSnapshot) -> CrowdDocument {
    let EventContext { event, phase, is_sold_out, .. } = context;
    let is_same = |document: &CrowdDocument| {
        (document.phase, document.is_sold_out) == (*phase, *is_sold_out)
            && std::ptr::eq(document.event.as_ptr(), Arc::as_ptr(event))
    };
    if let Some(document) = crowd.document().filter(is_same) {
        return document;
    }
    let view = view(queue, context, crowd);
    let document = CrowdDocument {
        tag: ETag::of_version(format_args!("{:016x}", fingerprint(&view))),
        bytes: serde_json::to_vec(&view).expect("a view is JSON").into(),
        phase: *phase,
        is_sold_out: *is_sold_out,
        event: Arc::downgrade(event),
    };
    crowd.set_document(document.clone());
    document
}

fn view<'a>(
    queue: &QueueService,
    context: &'a EventContext,
    CrowdSnapshot { crowd, at, .. }: &CrowdSnapshot,
) -> CrowdView<'a> {
    let EventContext { event, phase, rules, is_sold_out, .. } = context;
    let mark = |line: &LinePosition| (line.number, line.position);
    let marks = match context.is_before_draw() || phase.has_ended() {
        true => Vec::new(),
        false => crowd.marks.iter().map(mark).collect(),
    };
    CrowdView {
        event_id: event.event_id,
        phase: phase.as_str(),
        gathers_at: match *phase {
            RoomPhase::Closed { gathers_at } => Some(gathers_at),
            _ => None,
        },
        opens_at: event.sale_starts_at,
        server_time: *at,
        waiting: crowd.waiting,
        active: crowd.active,
        threshold: rules.threshold,
        admitted_total: crowd.admitted_total,
        left_total: crowd.left_total,
        rate_per_minute: crowd.pace.admitted.iter().fold(0, |sum, n| sum.saturating_add(*n)),
        sold_out: *is_sold_out,
        message: event.room_settings.message.as_deref(),
        marks,
        draw_commitment: queue.0.event_index.commitment(event.event_id).map(hex::encode),
    }
}

/// Equal for documents that differ in their time only.
fn fingerprint(view: &CrowdView<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let CrowdView { phase, waiting, active, threshold, sold_out, message, .. } = view;
    (phase, waiting, active, threshold, sold_out, message).hash(&mut hasher);
    let times = (view.gathers_at.map(Timestamp::as_microsecond), view.opens_at.as_microsecond());
    (times, view.admitted_total, view.left_total, view.rate_per_minute).hash(&mut hasher);
    (&view.marks, &view.draw_commitment).hash(&mut hasher);
    hasher.finish()
}
