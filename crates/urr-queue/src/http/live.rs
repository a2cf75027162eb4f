//! The live board of a sale as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::time::Instant;
use urr_contracts::internal::stats::{RoomFigures, SaleHistory, SaleTotals};
use urr_contracts::internal::ticket::{BookingHealth, EventAvailability, GradeSeats};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Errors, EventReader, Path};
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::AdminErrors;
use super::stream::StreamStart;
use crate::live::{LiveMessage, LiveSecond, LiveSnapshot, SecondRing};
use crate::{DrawState, QueueService};

/// Then the page asks again, perhaps another process.
const LIFETIME: Duration = Duration::from_mins(15);
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The description of a stream is a text, so what its messages hold is named here.
#[derive(OpenApi)]
#[openapi(components(schemas(LiveBoardView)))]
struct LiveSchemas;

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::with_openapi(LiveSchemas::openapi()).routes(routes!(follow_sale))
}

/// Streams everything of one sale as server-sent events, second by second.
///
/// For the event's organiser, support and administrators. Every message is named `board`; its id is
/// the last second that it has. The first one has the last 15 minutes by seconds and the last day by
/// minutes, or, after `Last-Event-ID`, the seconds since that one. Then one comes every second, with
/// `minutes` null. A page that does not read fast enough is disconnected; it asks again and misses
/// nothing. A sale is computed once a second for all who watch.
///
/// Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`; 429 `STREAM_LIMIT` (ten per user and
/// process); 503 `TOO_MANY_STREAMS`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/live", tag = "admin",
    params(
        ("eventId" = Uuid, Path),
        ("Last-Event-ID" = Option<String>, Header, description = "The last message that was read"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        AdminErrors,
        Errors<429>,
    ),
)]
async fn follow_sale(
    State(queue): State<QueueService>,
    EventReader(reader): EventReader,
    Path(event_id): Path<Uuid>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let event = queue.known_event(event_id, reader.event_scope())?;
    let permit = BoardPermit::acquire(queue.clone(), reader.user_id)?;
    let (snapshot, messages) = queue.open_board(&event).await;
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.trim().parse().ok());
    let first = first_message(&queue, &snapshot, seen);
    let board = LiveStream {
        sent: first.second,
        first: Some(first),
        messages,
        ends_at: Instant::now() + LIFETIME,
        permit,
    };
    let events = unfold(board, async |mut board| {
        let message = board.next().await?;
        let event = Event::default().event("board").id(message.second.to_string());
        let event = event.retry(RECONNECT_AFTER).data(&*message.text);
        Some((Ok::<_, Infallible>(event), board))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

/// A place among the boards, until it is dropped.
struct BoardPermit {
    queue: QueueService,
    user_id: Uuid,
}

impl BoardPermit {
    fn acquire(queue: QueueService, user_id: Uuid) -> Result<BoardPermit, ApiError> {
        queue.0.boards.acquire(user_id, StreamStart::Front)?;
        queue.0.metrics.boards.inc();
        Ok(BoardPermit { queue, user_id })
    }
}

impl Drop for BoardPermit {
    fn drop(&mut self) {
        self.queue.0.boards.release(self.user_id, StreamStart::Front);
        self.queue.0.metrics.boards.dec();
    }
}

struct LiveStream {
    first: Option<LiveMessage>,
    /// The last second that was sent.
    sent: i64,
    messages: broadcast::Receiver<LiveMessage>,
    ends_at: Instant,
    permit: BoardPermit,
}

impl LiveStream {
    /// None ends the stream: it is over, the process stops, or its reader is too slow.
    async fn next(&mut self) -> Option<LiveMessage> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let closing = self.permit.queue.0.closing.clone();
        loop {
            let message = tokio::select! {
                biased;
                () = closing.cancelled() => return None,
                () = tokio::time::sleep_until(self.ends_at) => return None,
                message = self.messages.recv() => message.ok()?,
            };
            // The first message may have had it already.
            if message.second > self.sent {
                self.sent = message.second;
                return Some(message);
            }
        }
    }
}

/// A sale: its state now, and what happened.
#[derive(Serialize, ToSchema)]
struct LiveBoardView<'a> {
    now: LiveNowView<'a>,
    seconds: LiveSecondsView,
    /// Only in the first message; null after `Last-Event-ID` too.
    minutes: Option<LiveMinutesView>,
}

/// The state of a sale and of its controls.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LiveNowView<'a> {
    event_id: Uuid,
    title: &'a str,
    server_time: Timestamp,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
    /// `closed`, `gathering`, `drawing`, `open`, `paused`, `over`, `cancelled` or `deleted`.
    #[schema(example = "open")]
    phase: &'static str,
    paused: bool,
    message: Option<&'a str>,
    threshold: u32,
    /// In force, with the limit of the autopilot.
    admitted_per_second_max: u32,
    autopilot: bool,
    /// `fifo` or `lottery`.
    #[schema(example = "fifo")]
    opening: &'static str,
    /// Of a lottery: `committed` or `done`.
    draw: Option<&'static str>,
    sold_out: bool,
    /// By grade or ticket type.
    grades: Vec<LiveGradeView<'a>>,
    /// What was charged less what was refunded; null if the statistics do not answer.
    #[schema(value_type = Option<i64>)]
    revenue: Option<Won>,
    /// Payments of which only the provider knows whether they were charged.
    unclear_payments: Option<u64>,
    /// How booking goes in the process that answered, for all its events.
    booking: Option<LiveBookingView>,
    /// The services that did not answer this second: what they know is older.
    missing: &'a [&'static str],
}

#[derive(Serialize, ToSchema)]
struct LiveGradeView<'a> {
    name: &'a str,
    #[schema(value_type = i64)]
    price: Won,
    total: u32,
    available: u32,
    /// Null for ticket types: their holds count as sold.
    held: Option<u32>,
    /// Kept out of the sale by the organiser. Null for ticket types, where they count as sold.
    blocked: Option<u32>,
    sold: u32,
}

/// The bookings of the last ten seconds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LiveBookingView {
    answered: u64,
    failed: u64,
    p50_micros: u64,
    p95_micros: u64,
    p99_micros: u64,
}

/// Seconds in columns of equal length. Null: not known.
#[derive(Default, Serialize, ToSchema)]
struct LiveSecondsView {
    /// Since 1970.
    at: Vec<i64>,
    waiting: Vec<u32>,
    inside: Vec<u32>,
    threshold: Vec<u32>,
    /// Since the second before in this list.
    arrivals: Vec<Option<u64>>,
    admitted: Vec<Option<u64>>,
    left: Vec<Option<u64>>,
    available: Vec<Option<u32>>,
    held: Vec<Option<u32>>,
    sold: Vec<Option<u32>>,
    payments: Vec<Option<u64>>,
    #[schema(value_type = Vec<Option<i64>>)]
    charged: Vec<Option<i64>>,
    refunds: Vec<Option<u64>>,
    declined: Vec<Option<u64>>,
    /// Bookings that failed within the last ten seconds.
    errors: Vec<Option<u64>>,
}

/// Minutes in columns of equal length. Null: not known.
#[derive(Default, Serialize, ToSchema)]
struct LiveMinutesView {
    /// When the minute begins, since 1970.
    at: Vec<i64>,
    waiting: Vec<Option<u32>>,
    inside: Vec<Option<u32>>,
    arrivals: Vec<Option<u64>>,
    admitted: Vec<Option<u64>>,
    left: Vec<Option<u64>>,
    payments: Vec<i64>,
    charged: Vec<i64>,
    refunds: Vec<i64>,
}

/// What a board gets first.
fn first_message(queue: &QueueService, snapshot: &LiveSnapshot, seen: Option<i64>) -> LiveMessage {
    // An id from the future is none of ours.
    let seen = seen.filter(|seen| snapshot.ring.last_second().is_some_and(|last| *seen <= last));
    let minutes = seen.is_none().then(|| LiveMinutesView::new(&snapshot.facts.history));
    let seconds = LiveSecondsView::new(&snapshot.ring, seen.unwrap_or(i64::MIN));
    message(queue, snapshot, seconds, minutes)
}

/// What every board gets of the last second.
pub fn live_message(queue: &QueueService, snapshot: &LiveSnapshot) -> LiveMessage {
    let last = snapshot.ring.last_second().unwrap_or(i64::MIN);
    let seconds = LiveSecondsView::new(&snapshot.ring, last.saturating_sub(1));
    message(queue, snapshot, seconds, None)
}

fn message(
    queue: &QueueService,
    snapshot: &LiveSnapshot,
    seconds: LiveSecondsView,
    minutes: Option<LiveMinutesView>,
) -> LiveMessage {
    let second = snapshot.ring.last_second().unwrap_or(0);
    let view = LiveBoardView { now: LiveNowView::new(queue, snapshot), seconds, minutes };
    let text = serde_json::to_string(&view).expect("a view is plain JSON");
    LiveMessage { second, text: text.into() }
}

impl<'a> LiveNowView<'a> {
    fn new(queue: &QueueService, snapshot: &'a LiveSnapshot) -> LiveNowView<'a> {
        let LiveSnapshot { context, facts, ring } = snapshot;
        let event = &*context.event;
        let last = ring.last().copied().unwrap_or_default();
        let revenue = last.money.map(|money| money.charged.amount() - money.refunded.amount());
        let booking = last.booking.or_else(|| queue.0.sales_health.booking(context.now));
        LiveNowView {
            event_id: event.event_id,
            title: &event.title,
            server_time: context.now,
            sale_starts_at: event.sale_starts_at,
            sale_ends_at: event.sale_ends_at,
            phase: context.phase.as_str(),
            paused: event.room_settings.is_paused,
            message: event.room_settings.message.as_deref(),
            threshold: context.rules.threshold,
            admitted_per_second_max: context.rules.admitted_per_second_max,
            autopilot: event.room_settings.has_autopilot,
            opening: event.room_settings.opening.as_str(),
            draw: event.draw.map(|draw| match draw {
                DrawState::Committed => "committed",
                DrawState::Done => "done",
            }),
            sold_out: context.is_sold_out,
            grades: facts.grades.iter().map(LiveGradeView::new).collect(),
            revenue: revenue.map(Won::new),
            unclear_payments: facts.payments.map(|payments| payments.unclear),
            booking: booking.map(LiveBookingView::new),
            missing: &facts.missing,
        }
    }
}

impl<'a> LiveGradeView<'a> {
    fn new(grade: &'a GradeSeats) -> LiveGradeView<'a> {
        let taken = grade.total.saturating_sub(grade.available);
        LiveGradeView {
            name: &grade.name,
            price: grade.price,
            total: grade.total,
            available: grade.available,
            held: grade.held,
            blocked: grade.blocked,
            sold: taken.saturating_sub(grade.held.unwrap_or(0) + grade.blocked.unwrap_or(0)),
        }
    }
}

impl LiveBookingView {
    fn new(booking: BookingHealth) -> LiveBookingView {
        let BookingHealth { answered, failed, p50_micros, p95_micros, p99_micros } = booking;
        LiveBookingView { answered, failed, p50_micros, p95_micros, p99_micros }
    }
}

impl LiveSecondsView {
    /// The seconds of a ring after one.
    fn new(ring: &SecondRing, after: i64) -> LiveSecondsView {
        let mut view = LiveSecondsView::default();
        for (before, sample) in ring.after(after) {
            view.push(before, sample);
        }
        view
    }

    fn push(&mut self, before: Option<&LiveSecond>, sample: &LiveSecond) {
        let people = |total: fn(&LiveSecond) -> u64| {
            before.map(|before| total(sample).saturating_sub(total(before)))
        };
        let money = before.and_then(|before| before.money).zip(sample.money);
        let since = |count: fn(&SaleTotals) -> i64| {
            money.map(|(before, now)| u64::try_from(count(&now) - count(&before)).unwrap_or(0))
        };
        self.at.push(sample.second);
        self.waiting.push(sample.waiting);
        self.inside.push(sample.inside);
        self.threshold.push(sample.threshold);
        self.arrivals.push(people(|second| second.joined_total));
        self.admitted.push(people(|second| second.admitted_total));
        self.left.push(people(|second| second.left_total));
        self.available.push(sample.stock.map(|stock| stock.available));
        self.held.push(sample.stock.map(|stock| stock.held));
        let sold = |stock: EventAvailability| {
            stock.total.saturating_sub(stock.available).saturating_sub(stock.held)
        };
        self.sold.push(sample.stock.map(sold));
        self.payments.push(since(|money| money.charges));
        let charged = money.map(|(before, now)| now.charged.amount() - before.charged.amount());
        self.charged.push(charged.map(|charged| charged.max(0)));
        self.refunds.push(since(|money| money.refunds));
        let declined = before.and_then(|before| before.declined_total).zip(sample.declined_total);
        self.declined.push(declined.map(|(before, now)| now.saturating_sub(before)));
        self.errors.push(sample.booking.map(|booking| booking.failed));
    }
}

impl LiveMinutesView {
    fn new(history: &SaleHistory) -> LiveMinutesView {
        let (mut view, mut before) = (LiveMinutesView::default(), None);
        for minute in &history.minutes {
            let (span, room) = (minute.span, minute.room);
            let both = before.zip(room);
            let since = |total: fn(&RoomFigures) -> u64| {
                both.map(|(before, room)| total(&room).saturating_sub(total(&before)))
            };
            view.at.push(span.at);
            view.waiting.push(room.map(|room| room.waiting));
            view.inside.push(room.map(|room| room.inside));
            view.arrivals.push(since(|room| room.joined_total));
            view.admitted.push(since(|room| room.admitted_total));
            view.left.push(since(|room| room.left_total));
            view.payments.push(span.moved.charges);
            view.charged.push(span.moved.charged.amount());
            view.refunds.push(span.moved.refunds);
            before = room.or(before);
        }
        view
    }
}
