//! A room as a whole: one small document for everybody, which caches may hand on.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, ErrorBody, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{has_tag, phase_name};
use crate::crowd_cache::CrowdSnapshot;
use crate::status::{RoomOverview, has_ended};
use crate::{JoinRejection, RoomPhase, QueueService};
use urr_room::{LinePace, LinePosition};

const CACHING: &str = "public, max-age=1";

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(get_queue_crowd))
}

/// The room of an event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CrowdView<'a> {
    event_id: Uuid,
    /// `closed`, `gathering`, `drawing`, `open`, `paused`, `over` or `cancelled`.
    #[schema(example = "open")]
    phase: &'a str,
    /// When people may come, while it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    gathers_at: Option<Timestamp>,
    /// When people are let in.
    #[schema(value_type = String, format = DateTime)]
    opens_at: Timestamp,
    /// The moment that all of this is about.
    #[schema(value_type = String, format = DateTime)]
    server_time: Timestamp,
    waiting: u32,
    /// How many are in, and how many may be at once.
    active: u32,
    threshold: u32,
    /// How many were let in, and how many left the line by themselves, so far.
    admitted_total: u64,
    left_total: u64,
    /// How many were let in from the line in the last minute.
    rate_per_minute: u32,
    sold_out: bool,
    /// The organiser's message to those who wait.
    message: Option<&'a str>,
    /// Number and position of some in the line, front first, the first and the last among them.
    /// Empty before a draw: there is no order yet.
    #[schema(value_type = Vec<Vec<i64>>)]
    marks: Vec<(i64, u32)>,
    /// Of a lottery: what was committed to before anybody came, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    draw_commitment: Option<String>,
}

/// The room of an event, for everybody.
///
/// It is the same for all who ask within a second, so caches may answer. With the `number` that a
/// check told you, you find your place in it without asking again:
///
/// - Look for the last mark `[n, p]` with `n` not above your number, and for the mark `[N, P]` after
///   it. If there is no such first mark, the line has passed you: ask for your status.
/// - If `n` is your number, your position is `p`.
/// - Otherwise you stand at `p + 1` or behind it and at `P - 1` or before it; also not farther than
///   `p + (number - n)`, and not nearer than `P - (N - number)`. Where nobody left between the two
///   marks (`P - p` equals `N - n`) that is one position: exactly yours.
/// - Behind the last mark are those who came after this document was made.
///
/// It does not keep your place: ask for your status at least every few minutes.
#[utoipa::path(
    get, path = "/api/queue/crowd/{eventId}", tag = "queue", security(()),
    params(
        ("eventId" = Uuid, Path),
        ("If-None-Match" = Option<String>, Header, description = "The entity tag that you have."),
    ),
    responses(
        (status = 200, body = CrowdView<'static>, headers(("etag" = String))),
        (status = 304, description = "Nothing is new."),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`"),
        (status = 503, body = ErrorBody, description = "`QUEUE_UNAVAILABLE`, with `Retry-After`."),
    ),
)]
async fn get_queue_crowd(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let overview = queue.overview(event_id).await?;
    if overview.phase == RoomPhase::Deleted {
        return Err(JoinRejection::UnknownEvent.into());
    }
    let document = document(&queue, &overview);
    let tag = format!("W/\"{:016x}\"", document.fingerprint);
    let caching = [(ETAG, tag.as_str()), (CACHE_CONTROL, CACHING)];
    if has_tag(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    Ok((caching, [(CONTENT_TYPE, "application/json")], document.bytes).into_response())
}

/// The document as it is sent to all who ask within a second.
#[derive(Clone, Debug)]
pub struct Document {
    bytes: Bytes,
    fingerprint: u64,
    /// What it was made for: if that has changed, it is made again.
    phase: RoomPhase,
    is_sold_out: bool,
    event: std::sync::Weak<crate::EventRoom>,
}

/// Made once for a crowd, and again only if the event itself has changed within the second.
fn document(queue: &QueueService, overview: &RoomOverview) -> Document {
    let is_same = |document: &Document| {
        (document.phase, document.is_sold_out) == (overview.phase, overview.is_sold_out)
            && std::ptr::eq(document.event.as_ptr(), std::sync::Arc::as_ptr(&overview.event))
    };
    let made = overview.crowd.document();
    if let Some(document) = made.filter(is_same) {
        return document;
    }
    let view = view(queue, overview);
    let document = Document {
        fingerprint: fingerprint(&view),
        bytes: serde_json::to_vec(&view).expect("a view is JSON").into(),
        phase: overview.phase,
        is_sold_out: overview.is_sold_out,
        event: std::sync::Arc::downgrade(&overview.event),
    };
    overview.crowd.keep_document(document.clone());
    document
}

fn view<'a>(queue: &QueueService, overview: &'a RoomOverview) -> CrowdView<'a> {
    let RoomOverview { event, phase, rules, is_sold_out, crowd } = overview;
    let CrowdSnapshot { crowd, at, .. } = &**crowd;
    let (phase_name, gathers_at) = match *phase {
        RoomPhase::Closed { gathers_at } => ("closed", Some(gathers_at)),
        phase => (phase_name(phase), None),
    };
    let mark = |place: &LinePosition| (place.number, place.position);
    let has_order = !overview.is_before_draw();
    let marks = match has_order && !has_ended(*phase) {
        true => crowd.marks.iter().map(mark).collect(),
        false => Vec::new(),
    };
    CrowdView {
        event_id: event.event_id,
        phase: phase_name,
        gathers_at,
        opens_at: event.sale_starts_at,
        server_time: *at,
        waiting: crowd.waiting,
        active: crowd.active,
        threshold: rules.threshold,
        admitted_total: crowd.admitted_total,
        left_total: crowd.left_total,
        rate_per_minute: rate_per_minute(&crowd.pace),
        sold_out: *is_sold_out,
        message: event.room_settings.message.as_deref(),
        marks,
        draw_commitment: queue.0.event_index.commitment(event.event_id).map(|bytes| hex(&bytes)),
    }
}

/// The same for documents that differ in their time only.
fn fingerprint(view: &CrowdView<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let CrowdView { phase, waiting, active, threshold, sold_out, message, .. } = view;
    (phase, waiting, active, threshold, sold_out, message).hash(&mut hasher);
    let times = (view.gathers_at.map(Timestamp::as_microsecond), view.opens_at.as_microsecond());
    (times, view.admitted_total, view.left_total, view.rate_per_minute).hash(&mut hasher);
    (&view.marks, &view.draw_commitment).hash(&mut hasher);
    hasher.finish()
}

fn rate_per_minute(pace: &LinePace) -> u32 {
    pace.admitted.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
