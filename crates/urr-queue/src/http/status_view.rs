//! A user's queue status as JSON.
//!
//! Polls are most of what the service answers, so each is cheap: an unchanged status is answered by
//! 304, and then no token is signed either (P-7).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_room::{LinePosition, Slot, UserStatus};
use urr_service::ETag;
use utoipa::ToSchema;

use crate::domain::poll;
use crate::status::QueueStatus;
use crate::{QueueService, RoomPhase};

/// Enough for most answers.
const BODY_BYTES: usize = 768;
/// Part of every entity tag. It changes with the format of the view.
const FORMAT: u8 = 2;

/// Your status in the line of an event.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatusView<'a> {
    /// `queued`, `active`, `not_in_queue`, or `ended`: the sale has ended or the event was cancelled.
    #[schema(example = "queued")]
    status: &'a str,
    queued: bool,
    /// `gathering` (users join and wait for the opening), `drawing`, `open` or `paused`; `over` or
    /// `cancelled` when it has ended.
    #[schema(example = "open")]
    phase: &'a str,
    /// Your number in the line. It never changes, except by a draw. With it you find your position
    /// in the crowd document.
    number: Option<i64>,
    /// The first in line has 1. Null before a draw: there is no order yet.
    position: Option<u32>,
    people_ahead: Option<u32>,
    people_behind: Option<u32>,
    /// In seconds. Null if it is not known: before a draw, while paused, when all is sold, and as
    /// long as nobody has left the full room.
    estimated_wait: Option<u64>,
    estimated_wait_range: Option<WaitRangeView>,
    /// How many users wait.
    queue_size: Option<u32>,
    /// How many users have a slot.
    current_users: u32,
    /// How many users may have a slot at once.
    threshold: u32,
    /// Poll again after so many seconds.
    #[schema(example = 1.07)]
    next_poll: f64,
    /// When users are admitted, while they gather.
    opens_at: Option<Timestamp>,
    sold_out: bool,
    /// The organiser's message to users who wait; otherwise what the status means.
    message: Option<&'a str>,
    /// The state of the line: that it will be drawn, is paused, or all is sold.
    text: Option<&'static str>,
    /// Only in the answer to a check.
    event_info: Option<QueueEventView<'a>>,
    /// For the header `x-queue-entry-token` of bookings. Repeated for a minute, then renewed.
    entry_token: Option<String>,
    /// The entry token expires after so many seconds.
    expires_in: Option<u64>,
    /// When your slot ends unless you poll.
    slot_ends_at: Option<Timestamp>,
    /// When your slot ends even if you poll.
    slot_last_end: Option<Timestamp>,
}

/// About nine in ten users wait between so many seconds.
#[derive(Debug, Serialize, ToSchema)]
struct WaitRangeView {
    from: u64,
    to: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct QueueEventView<'a> {
    title: &'a str,
    artist: Option<&'a str>,
}

/// The answer to a check, with the event.
pub fn checked(queue: &QueueService, user_id: Uuid, status: &QueueStatus) -> Response {
    let event = &status.context.event;
    let event_info = QueueEventView { title: &event.title, artist: event.artist_name.as_deref() };
    let view = QueueStatusView { event_info: Some(event_info), ..view(queue, user_id, status) };
    respond(StatusCode::OK, to_json(&view), None)
}

/// The answer to a poll: 304 if nothing has changed.
pub fn polled(
    queue: &QueueService,
    user_id: Uuid,
    status: &QueueStatus,
    headers: &HeaderMap,
) -> Response {
    let tag = ETag::of_version(format_args!("{:016x}", fingerprint(queue, status)));
    let mut response = match tag.matches(headers) {
        true => respond(StatusCode::NOT_MODIFIED, Vec::new(), Some(tag)),
        false => respond(StatusCode::OK, render(queue, user_id, status), Some(tag)),
    };
    // An entry token is a credential: whoever finds it in a cache could book by it.
    if matches!(status.snapshot.status, UserStatus::Active(_)) {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Equal for statuses in which nothing important differs: the number of other users, the time and
/// the jitter of polls are not part of it.
pub fn fingerprint(queue: &QueueService, status: &QueueStatus) -> u64 {
    let QueueStatus { context, snapshot, wait } = status;
    let mut hasher = DefaultHasher::new();
    (FORMAT, phase_name(context.phase), context.is_sold_out).hash(&mut hasher);
    match snapshot.status {
        UserStatus::Waiting(line) => {
            let position = (!context.is_before_draw()).then_some(line.position);
            (1_u8, line.number, position).hash(&mut hasher);
            context.event.room_settings.message.hash(&mut hasher);
            match opens_at(status) {
                // The wait until the opening shrinks every second; clients count it down themselves.
                Some(opens_at) => opens_at.as_microsecond().hash(&mut hasher),
                None => wait.map(|wait| (wait.seconds, wait.from, wait.to)).hash(&mut hasher),
            }
        }
        UserStatus::Active(slot) => {
            let issued = queue.0.entry_tokens.issued_second(&slot, context.now);
            (2_u8, slot.id, issued).hash(&mut hasher);
        }
        UserStatus::Absent => (3_u8, context.event.is_for_members(context.now)).hash(&mut hasher),
    }
    hasher.finish()
}

/// The JSON of a poll's answer.
pub fn render(queue: &QueueService, user_id: Uuid, status: &QueueStatus) -> Vec<u8> {
    to_json(&view(queue, user_id, status))
}

fn to_json(view: &QueueStatusView<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BODY_BYTES);
    serde_json::to_writer(&mut bytes, view).expect("a view is JSON, and a vector takes it");
    bytes
}

fn view<'a>(queue: &QueueService, user_id: Uuid, status: &'a QueueStatus) -> QueueStatusView<'a> {
    match status.snapshot.status {
        _ if status.context.phase.has_ended() => ended(status, user_id),
        UserStatus::Waiting(line) => waiting(status, line, user_id),
        UserStatus::Active(slot) => active(queue, status, &slot, user_id),
        UserStatus::Absent => absent(status, user_id),
    }
}

fn waiting(status: &QueueStatus, line: LinePosition, user_id: Uuid) -> QueueStatusView<'_> {
    let QueueStatus { context, snapshot, wait } = status;
    let size = snapshot.waiting.max(line.position);
    let has_order = !context.is_before_draw();
    let position = has_order.then_some(line.position);
    let pause = match context.is_sold_out {
        true => poll::SOLD_OUT,
        false => poll::pause_at(if has_order { line.position } else { size }),
    };
    QueueStatusView {
        queued: true,
        number: Some(line.number),
        position,
        people_ahead: position.map(|position| position.saturating_sub(1)),
        people_behind: position.map(|position| size - position),
        estimated_wait: wait.filter(|_| has_order).map(|wait| wait.seconds),
        estimated_wait_range: wait.map(|wait| WaitRangeView { from: wait.from, to: wait.to }),
        queue_size: Some(size),
        opens_at: opens_at(status),
        message: context.event.room_settings.message.as_deref(),
        text: line_text(status),
        ..base_view(status, "queued", pause, user_id)
    }
}

fn active<'a>(
    queue: &QueueService,
    status: &'a QueueStatus,
    slot: &Slot,
    user_id: Uuid,
) -> QueueStatusView<'a> {
    let context = &status.context;
    let tokens = &queue.0.entry_tokens;
    let (token, expires_in) = tokens.token(context.event.event_id, user_id, slot, context.now);
    QueueStatusView {
        message: Some("Entry allowed"),
        entry_token: Some(token),
        expires_in: Some(expires_in),
        slot_ends_at: Some(slot.ends_at),
        slot_last_end: Some(slot.last_end),
        ..base_view(status, "active", poll::NOT_IN_LINE, user_id)
    }
}

fn absent(status: &QueueStatus, user_id: Uuid) -> QueueStatusView<'_> {
    let message = match status.context.event.is_for_members(status.context.now) {
        // The user may have had a position until a pre-sale was added.
        true => "Not in queue. At the moment only members may join.",
        false => "Not in queue",
    };
    let view = base_view(status, "not_in_queue", poll::NOT_IN_LINE, user_id);
    QueueStatusView { message: Some(message), ..view }
}

fn ended(status: &QueueStatus, user_id: Uuid) -> QueueStatusView<'_> {
    let message = match status.context.phase {
        RoomPhase::Cancelled => "This event was cancelled.",
        _ => "The sale has ended.",
    };
    let view = base_view(status, "ended", poll::SOLD_OUT, user_id);
    QueueStatusView { message: Some(message), ..view }
}

/// What every view has.
fn base_view<'a>(
    QueueStatus { context, snapshot, .. }: &QueueStatus,
    status: &'static str,
    pause: Duration,
    user_id: Uuid,
) -> QueueStatusView<'a> {
    QueueStatusView {
        status,
        phase: phase_name(context.phase),
        current_users: snapshot.active,
        threshold: context.rules.threshold,
        next_poll: in_seconds(poll::spread(pause, jitter(user_id, context.now))),
        sold_out: context.is_sold_out,
        ..QueueStatusView::default()
    }
}

/// To the millisecond. One division prints as 2.587; a sum of parts may not.
#[expect(clippy::float_arithmetic, reason = "a pause of the client, not money")]
fn in_seconds(pause: Duration) -> f64 {
    f64::from(u32::try_from(pause.as_millis()).unwrap_or(u32::MAX)) / 1_000.0
}

/// When users are admitted, if that is still to come.
fn opens_at(status: &QueueStatus) -> Option<Timestamp> {
    let phase = status.context.phase;
    let is_early = matches!(phase, RoomPhase::Gathering { .. } | RoomPhase::Closed { .. });
    is_early.then_some(status.context.event.sale_starts_at)
}

fn line_text(QueueStatus { context, .. }: &QueueStatus) -> Option<&'static str> {
    match context.phase {
        _ if context.is_sold_out => {
            Some("Everything is sold at the moment. Your position is kept in case of returns.")
        }
        RoomPhase::Paused => Some("Nobody is admitted at the moment. Your position is kept."),
        RoomPhase::Drawing => Some("The order of the users who joined before the sale is drawn."),
        _ if context.is_before_draw() => Some(
            "There is no order yet: the positions of all users who join before the sale are drawn \
             when it opens.",
        ),
        _ => None,
    }
}

/// A user who polls while the room is closed has joined before: to them it is gathering.
fn phase_name(phase: RoomPhase) -> &'static str {
    match phase {
        RoomPhase::Closed { .. } => "gathering",
        RoomPhase::Deleted => "over",
        phase => phase.as_str(),
    }
}

/// Differs between users and moments. It need not be secret.
fn jitter(user_id: Uuid, at: Timestamp) -> u32 {
    let (_, low) = user_id.as_u64_pair();
    let moment = u64::try_from(at.as_microsecond()).unwrap_or(0);
    let mixed = (low ^ moment).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u32::try_from(mixed >> 32).expect("32 bits are left")
}

/// A status is private to its user, and a cache has to revalidate it each time.
fn respond(status: StatusCode, bytes: Vec<u8>, tag: Option<ETag>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if status == StatusCode::OK {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let caching = if tag.is_some() { "private, no-cache" } else { "no-store" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Some(tag) = tag {
        headers.insert(ETAG, tag.header());
    }
    response
}
