//! A user's status as server-sent events, for the front of the line, where polls would come every
//! second.
//!
//! A stream polls the room once a second and sends what has changed. It keeps the position, as a
//! poll does.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Deserialize;
use tokio::time::Instant;
use urr_kernel::Uuid;
use urr_room::UserStatus;
use urr_service::{ApiError, Errors, Query};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::status_view::{fingerprint, render};
use super::{OwnQueue, QueueErrors};
use crate::domain::poll;
use crate::status::{QueueError, QueueStatus};
use crate::{JoinRejection, QueueService, RoomPhase};

/// Users at these positions may open a stream without asking for it.
const FRONT_POSITIONS: u32 = 1_000;
pub const PER_USER_MAX: usize = 3;
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Then the client reconnects, perhaps to another process.
const LIFETIME: Duration = Duration::from_secs(300);
/// How long a client waits before it reconnects.
const RECONNECT_AFTER: Duration = Duration::from_secs(2);
/// How long a client waits when there are too many streams.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The interval of comments on an idle stream: shorter than any time-out of a proxy.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(follow_queue_place))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct QueueStreamQuery {
    /// `true`: also from far behind, as long as such streams are fewer than half of all that may be.
    anyway: Option<bool>,
}

/// Streams the user's position as server-sent events.
///
/// Events named `place` have the data of the status, at most once a second, with a heartbeat every
/// 5 s. For admitted users and the first 1,000 in line; others poll, or send `anyway=true`. Ends
/// after five minutes; clients reconnect.
///
/// Errors: 404 `EVENT_NOT_FOUND`; 409 `NOT_IN_QUEUE`, `STREAM_NOT_YET` (with `nextPoll`),
/// `SALE_ENDED`, `EVENT_CANCELLED`, `ROOM_NOT_READY`; 429 `STREAM_LIMIT` (three per user and
/// process); 503 `TOO_MANY_STREAMS` (poll instead), `QUEUE_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/queue/stream/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path), QueueStreamQuery),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        QueueErrors,
        Errors<429>,
    ),
)]
async fn follow_queue_place(
    own: OwnQueue,
    Query(query): Query<QueueStreamQuery>,
) -> Result<Response, ApiError> {
    let OwnQueue { queue, user_id, event_id } = own;
    let first = queue.poll(event_id, user_id).await?;
    let start = stream_start(&first, query.anyway == Some(true))?;
    let stream = StatusStream::open(queue, user_id, first, start)?;
    let events = unfold(stream, async |mut stream| {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

/// From where a user follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// Admitted, or at the front.
    Front,
    /// Asked for from farther behind. At most half of all streams.
    Behind,
}

fn stream_start(status: &QueueStatus, anyway: bool) -> Result<StreamStart, ApiError> {
    match status.context.phase {
        RoomPhase::Cancelled => return Err(JoinRejection::Cancelled.into()),
        RoomPhase::Deleted => return Err(JoinRejection::UnknownEvent.into()),
        RoomPhase::Over => return Err(JoinRejection::SaleEnded.into()),
        _ => {}
    }
    let position = match status.snapshot.status {
        UserStatus::Active(_) => return Ok(StreamStart::Front),
        UserStatus::Absent => {
            let sentence = "You have no position in this line. Please join it first.";
            return Err(ApiError::conflict("NOT_IN_QUEUE", sentence));
        }
        // Before a draw nobody is at the front.
        UserStatus::Waiting(_) if status.context.is_before_draw() => {
            status.snapshot.waiting.max(FRONT_POSITIONS + 1)
        }
        UserStatus::Waiting(line) => line.position,
    };
    if position <= FRONT_POSITIONS {
        return Ok(StreamStart::Front);
    }
    if anyway {
        return Ok(StreamStart::Behind);
    }
    let sentence = "A stream is for the front of the line. Please poll until you are near.";
    let next_poll = poll::pause_at(position).as_secs();
    Err(ApiError::conflict("STREAM_NOT_YET", sentence).with("nextPoll", next_poll))
}

/// The open streams of this process.
pub struct Streams {
    max: usize,
    per_user_max: usize,
    counts: Mutex<OpenStreamCounts>,
}

#[derive(Default)]
struct OpenStreamCounts {
    all: usize,
    behind: usize,
    by_user: HashMap<Uuid, usize>,
}

impl Streams {
    pub fn new(max: usize, per_user_max: usize) -> Streams {
        Streams { max, per_user_max, counts: Mutex::default() }
    }

    pub fn acquire(&self, user_id: Uuid, start: StreamStart) -> Result<(), ApiError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = counts.by_user.get(&user_id).copied().unwrap_or(0);
        if of_user >= self.per_user_max {
            let sentence = "You have too many streams. Please close one of them.";
            return Err(ApiError::too_many("STREAM_LIMIT", sentence, RETRY_AFTER));
        }
        let is_behind = start == StreamStart::Behind;
        if counts.all >= self.max || (is_behind && counts.behind >= self.max / 2) {
            let sentence = "There are too many streams already. Please poll instead.";
            return Err(ApiError::unavailable("TOO_MANY_STREAMS", sentence, RETRY_AFTER));
        }
        counts.all += 1;
        counts.behind += usize::from(is_behind);
        counts.by_user.insert(user_id, of_user + 1);
        Ok(())
    }

    pub fn release(&self, user_id: Uuid, start: StreamStart) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        counts.behind -= usize::from(start == StreamStart::Behind);
        let of_user = counts.by_user.get_mut(&user_id).expect("its stream is counted");
        *of_user -= 1;
        if *of_user == 0 {
            counts.by_user.remove(&user_id);
        }
    }
}

/// A stream. It is counted until it is dropped.
struct StatusStream {
    queue: QueueService,
    user_id: Uuid,
    start: StreamStart,
    event_id: Uuid,
    /// The first status, until it is sent.
    first: Option<QueueStatus>,
    /// The fingerprint of what was sent last.
    sent: Option<u64>,
    next_poll_at: Instant,
    ends_at: Instant,
    /// The user has no position any more.
    is_over: bool,
}

impl Drop for StatusStream {
    fn drop(&mut self) {
        self.queue.0.streams.release(self.user_id, self.start);
        self.queue.0.metrics.streams.dec();
    }
}

impl StatusStream {
    fn open(
        queue: QueueService,
        user_id: Uuid,
        first: QueueStatus,
        start: StreamStart,
    ) -> Result<StatusStream, ApiError> {
        queue.0.streams.acquire(user_id, start)?;
        queue.0.metrics.streams.inc();
        let now = Instant::now();
        Ok(StatusStream {
            queue,
            user_id,
            start,
            event_id: first.context.event.event_id,
            first: Some(first),
            sent: None,
            next_poll_at: now + POLL_EVERY,
            ends_at: now + LIFETIME,
            is_over: false,
        })
    }

    /// None ends the stream; its client reconnects.
    async fn next(&mut self) -> Option<Event> {
        let closing = self.queue.0.closing.clone();
        let ends_at = self.ends_at;
        tokio::select! {
            biased;
            () = closing.cancelled() => None,
            () = tokio::time::sleep_until(ends_at) => None,
            event = self.next_change() => event,
        }
    }

    async fn next_change(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        loop {
            let status = match self.first.take() {
                Some(status) => status,
                None => self.next_status().await?,
            };
            let fingerprint = fingerprint(&self.queue, &status);
            if self.sent == Some(fingerprint) {
                continue;
            }
            self.sent = Some(fingerprint);
            let is_absent = status.snapshot.status == UserStatus::Absent;
            self.is_over = is_absent || status.context.phase.has_ended();
            let bytes = render(&self.queue, self.user_id, &status);
            let text = String::from_utf8(bytes).expect("JSON is UTF-8");
            return Some(Event::default().event("place").retry(RECONNECT_AFTER).data(text));
        }
    }

    /// The status of the next second. A room that does not answer is polled again.
    async fn next_status(&mut self) -> Option<QueueStatus> {
        loop {
            tokio::time::sleep_until(self.next_poll_at).await;
            self.next_poll_at = Instant::now() + POLL_EVERY;
            match self.queue.poll(self.event_id, self.user_id).await {
                Ok(status) => return Some(status),
                Err(QueueError::Room(_)) => {}
                Err(_) => return None,
            }
        }
    }
}
