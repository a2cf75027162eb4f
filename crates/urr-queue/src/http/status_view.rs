//! What someone is told about their place, as JSON.
//!
//! Polls are most of what a waiting room answers, so little is done for each: what was told before
//! is not told again (304), and then no token is signed either (P-7).

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use utoipa::ToSchema;

use crate::domain::poll;
use crate::status::{QueueStatus, has_ended};
use crate::{RoomPhase, QueueService};
use urr_room::{LinePosition, Slot, UserStatus};

/// Enough for most answers.
const BODY_BYTES: usize = 640;
/// Part of every entity tag: to be changed with the format of the answers.
const FORMAT: u8 = 1;

/// Where someone stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatusView<'a> {
    /// `queued`, `active`, `not_in_queue`, or `ended`: the sale is over or the event cancelled.
    #[schema(example = "queued")]
    status: &'a str,
    queued: bool,
    /// `gathering` (people come and wait for the opening), `drawing`, `open`, `paused`; `over`,
    /// `cancelled` when it has ended.
    #[schema(example = "open")]
    phase: &'a str,
    /// Your number: it never changes, except by a draw. With it your position can be found in what
    /// everybody may read of the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i64>,
    /// The first in line has 1. Null before a draw: there is no order yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    people_ahead: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    people_behind: Option<Option<u32>>,
    /// In seconds. Null if it cannot be told: before a draw, while paused, when all is sold.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_wait: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_wait_range: Option<WaitRangeView>,
    /// How many wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_size: Option<u32>,
    /// How many are in.
    current_users: u32,
    /// How many may be in at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<u32>,
    /// Ask again after so many seconds.
    #[schema(example = 1.07)]
    next_poll: f64,
    /// When people are let in, while they gather.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    opens_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sold_out: Option<bool>,
    /// The organiser's message to those who wait; otherwise what the status means.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// What there is to know about the line: that it is drawn later, paused, or all is sold.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_info: Option<QueueEventView<'a>>,
    /// For the header `x-queue-entry-token` of bookings. Repeated for a minute, then renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_token: Option<String>,
    /// When your turn ends unless you are seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    slot_ends_at: Option<Timestamp>,
    /// When your turn ends whatever you do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    slot_last_end: Option<Timestamp>,
}

/// About nine in ten wait between so many seconds.
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

/// What is part of an answer beside the place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ViewDetail {
    /// With the event, for who comes.
    Full,
    /// For who polls.
    Small,
}

/// The answer to who asks for a place.
pub fn full(queue: &QueueService, user_id: Uuid, told: &QueueStatus) -> Response {
    json(render(queue, user_id, told, ViewDetail::Full), None)
}

/// The answer to a poll: nothing new, or what is new.
pub fn polled(queue: &QueueService, user_id: Uuid, told: &QueueStatus, headers: &HeaderMap) -> Response {
    let tag = format!("W/\"{:016x}\"", fingerprint(queue, told));
    match has_tag(headers, &tag) {
        true => not_modified(tag),
        false => json(render(queue, user_id, told, ViewDetail::Small), Some(tag)),
    }
}

/// The same for all answers in which nothing of importance is new: how many others come and go, and
/// the spread of the polls, is not.
pub fn fingerprint(queue: &QueueService, told: &QueueStatus) -> u64 {
    let mut hasher = DefaultHasher::new();
    (FORMAT, phase_name(told.phase), told.is_sold_out).hash(&mut hasher);
    match told.seen.status {
        UserStatus::Waiting(place) => {
            let position = (!told.is_before_draw()).then_some(place.position);
            (1_u8, place.number, position).hash(&mut hasher);
            told.event.room_settings.message.hash(&mut hasher);
            match opening(told) {
                // The wait until then changes with every second, but not for who has a clock.
                Some(opens_at) => opens_at.as_microsecond().hash(&mut hasher),
                None => told.wait.map(|wait| (wait.seconds, wait.from, wait.to)).hash(&mut hasher),
            }
        }
        UserStatus::Active(slot) => {
            let issued = queue.0.entry.issued_second(&slot, told.at);
            (2_u8, slot.id, issued).hash(&mut hasher);
        }
        UserStatus::Absent => (3_u8, told.event.is_for_members(told.at)).hash(&mut hasher),
    }
    hasher.finish()
}

/// The JSON of an answer.
pub fn render(queue: &QueueService, user_id: Uuid, told: &QueueStatus, extent: ViewDetail) -> Vec<u8> {
    let view = match told.seen.status {
        _ if has_ended(told.phase) => ended(told, user_id),
        UserStatus::Waiting(place) => waiting(told, place, user_id),
        UserStatus::Active(slot) => active(queue, told, &slot, user_id),
        UserStatus::Absent => absent(told, user_id),
    };
    let event_info =
        || QueueEventView { title: &told.event.title, artist: told.event.artist_name.as_deref() };
    let view = match extent {
        ViewDetail::Small => view,
        ViewDetail::Full => QueueStatusView {
            threshold: Some(told.rules.threshold),
            event_info: Some(event_info()),
            ..view
        },
    };
    let mut bytes = Vec::with_capacity(BODY_BYTES);
    serde_json::to_writer(&mut bytes, &view).expect("a view is JSON, and a vector takes it");
    bytes
}

fn waiting(told: &QueueStatus, place: LinePosition, user_id: Uuid) -> QueueStatusView<'_> {
    let size = told.seen.waiting.max(place.position);
    let has_order = !told.is_before_draw();
    let position = has_order.then_some(place.position);
    let pause = match told.is_sold_out {
        true => poll::SOLD_OUT,
        false => poll::pause_at(if has_order { place.position } else { size }),
    };
    QueueStatusView {
        queued: true,
        number: Some(place.number),
        position: Some(position),
        people_ahead: Some(position.map(|position| position.saturating_sub(1))),
        people_behind: Some(position.map(|position| size - position)),
        estimated_wait: Some(told.wait.filter(|_| has_order).map(|wait| wait.seconds)),
        estimated_wait_range: told.wait.map(|wait| WaitRangeView { from: wait.from, to: wait.to }),
        queue_size: Some(size),
        threshold: Some(told.rules.threshold),
        opens_at: opening(told),
        sold_out: Some(told.is_sold_out),
        message: told.event.room_settings.message.as_deref(),
        text: text(told),
        ..plain(told, "queued", pause, user_id)
    }
}

fn active<'a>(queue: &QueueService, told: &'a QueueStatus, slot: &Slot, user_id: Uuid) -> QueueStatusView<'a> {
    let token = queue.0.entry.token(told.event.event_id, user_id, slot, told.at);
    QueueStatusView {
        message: Some("Entry allowed"),
        sold_out: Some(told.is_sold_out),
        entry_token: Some(token),
        slot_ends_at: Some(slot.ends_at),
        slot_last_end: Some(slot.last_end),
        ..plain(told, "active", poll::NOT_IN_LINE, user_id)
    }
}

fn absent(told: &QueueStatus, user_id: Uuid) -> QueueStatusView<'_> {
    let message = match told.event.is_for_members(told.at) {
        // They may have had a place until a pre-sale was put before the sale.
        true => "Not in queue. At the moment only members may come: please ask for a place again.",
        false => "Not in queue",
    };
    QueueStatusView { message: Some(message), ..plain(told, "not_in_queue", poll::NOT_IN_LINE, user_id) }
}

fn ended(told: &QueueStatus, user_id: Uuid) -> QueueStatusView<'_> {
    let message = match told.phase {
        RoomPhase::Cancelled => "This event was cancelled.",
        _ => "The sale is over.",
    };
    QueueStatusView { message: Some(message), ..plain(told, "ended", poll::SOLD_OUT, user_id) }
}

/// What every answer has.
fn plain<'a>(
    told: &QueueStatus,
    status: &'static str,
    pause: std::time::Duration,
    user_id: Uuid,
) -> QueueStatusView<'a> {
    QueueStatusView {
        status,
        queued: false,
        phase: phase_name(told.phase),
        number: None,
        position: None,
        people_ahead: None,
        people_behind: None,
        estimated_wait: None,
        estimated_wait_range: None,
        queue_size: None,
        current_users: told.seen.active,
        threshold: None,
        next_poll: in_seconds(poll::spread(pause, chance(user_id, told.at))),
        opens_at: None,
        sold_out: None,
        message: None,
        text: None,
        event_info: None,
        entry_token: None,
        slot_ends_at: None,
        slot_last_end: None,
    }
}

/// To the thousandth. Divided once, it is printed as 2.587; added up from parts it may not be.
#[expect(clippy::float_arithmetic, reason = "what a client waits, not money")]
fn in_seconds(pause: std::time::Duration) -> f64 {
    f64::from(u32::try_from(pause.as_millis()).unwrap_or(u32::MAX)) / 1_000.0
}

/// When people are let in, if that is still to come.
fn opening(told: &QueueStatus) -> Option<Timestamp> {
    let is_early = matches!(told.phase, RoomPhase::Gathering { .. } | RoomPhase::Closed { .. });
    is_early.then_some(told.event.sale_starts_at)
}

fn text(told: &QueueStatus) -> Option<&'static str> {
    match told.phase {
        _ if told.is_sold_out => {
            Some("Everything is sold at the moment. Your place is kept in case something is left.")
        }
        RoomPhase::Paused => Some("Nobody is let in at the moment. Your place is kept."),
        RoomPhase::Drawing => Some("The order of those who came before the sale is being drawn."),
        _ if told.is_before_draw() => Some(
            "There is no order yet: the places of all who come before the sale are drawn when it \
             opens.",
        ),
        _ => None,
    }
}

pub fn phase_name(phase: RoomPhase) -> &'static str {
    match phase {
        RoomPhase::Closed { .. } | RoomPhase::Gathering { .. } => "gathering",
        RoomPhase::Drawing => "drawing",
        RoomPhase::Open => "open",
        RoomPhase::Paused => "paused",
        RoomPhase::Over | RoomPhase::Deleted => "over",
        RoomPhase::Cancelled => "cancelled",
    }
}

/// Some number, another one for everybody and for every moment. Nobody gains anything by knowing it.
fn chance(user_id: Uuid, at: Timestamp) -> u32 {
    let (_, low) = user_id.as_u64_pair();
    let moment = u64::try_from(at.as_microsecond()).unwrap_or(0);
    let mixed = (low ^ moment).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u32::try_from(mixed >> 32).expect("32 bits are left")
}

fn json(bytes: Vec<u8>, tag: Option<String>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    dress(headers, tag);
    response
}

fn not_modified(tag: String) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    dress(response.headers_mut(), Some(tag));
    response
}

/// What someone is told is theirs alone, and to be asked for each time.
fn dress(headers: &mut HeaderMap, tag: Option<String>) {
    let caching = if tag.is_some() { "private, no-cache" } else { "no-store" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Some(tag) = tag {
        headers.insert(ETAG, HeaderValue::try_from(tag).expect("a tag is ASCII"));
    }
}

/// Whether the client has this answer already. The tag is a weak one.
pub fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    fn opaque(tag: &str) -> &str {
        tag.strip_prefix("W/").unwrap_or(tag)
    }
    let mut lists = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    lists.any(|list| {
        let mut known = list.split(',').map(str::trim);
        known.any(|known| known == "*" || opaque(known) == opaque(tag))
    })
}
