//! Seat map changes as server-sent events.
//!
//! Each stream reads the map once per refresh interval. All streams and readers of an event share
//! one database read, and the view for clients with the same version is rendered once.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::response::sse::Event;
use futures_util::stream::{Stream, unfold};
use tokio::time::Instant;
use urr_kernel::Uuid;

use crate::seat_map::SeatMaps;

/// How long a client waits before it connects again.
const RETRY: Duration = Duration::from_secs(2);

/// The limit of streams is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatMapStreamLimit {
    #[error("too many follow the changes of maps")]
    OfAll,
    #[error("the user follows the changes of too many maps")]
    OfUser,
}

/// The permits of streams.
#[derive(Debug)]
pub struct StreamPermits {
    max: usize,
    per_user_max: usize,
    counts: Mutex<SeatMapStreamCounts>,
}

#[derive(Debug, Default)]
struct SeatMapStreamCounts {
    count: usize,
    by_user: HashMap<Uuid, usize>,
}

/// A permit; given back when it is dropped.
struct StreamPermit {
    permits: Arc<StreamPermits>,
    user_id: Uuid,
}

impl StreamPermits {
    pub fn new(max: usize, per_user_max: usize) -> StreamPermits {
        StreamPermits { max, per_user_max, counts: Mutex::default() }
    }

    fn acquire(
        self: &Arc<StreamPermits>,
        user_id: Uuid,
    ) -> Result<StreamPermit, SeatMapStreamLimit> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = counts.by_user.get(&user_id).copied().unwrap_or(0);
        if of_user >= self.per_user_max {
            return Err(SeatMapStreamLimit::OfUser);
        }
        if counts.count >= self.max {
            return Err(SeatMapStreamLimit::OfAll);
        }
        counts.count += 1;
        counts.by_user.insert(user_id, of_user + 1);
        Ok(StreamPermit { permits: Arc::clone(self), user_id })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = self.permits.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.count -= 1;
        let of_user = counts.by_user.get_mut(&self.user_id).expect("its place is counted");
        *of_user -= 1;
        if *of_user == 0 {
            counts.by_user.remove(&self.user_id);
        }
    }
}

struct SeatMapStream {
    maps: SeatMaps,
    event_id: Uuid,
    /// The version that the client has; none if it has nothing yet.
    known: Option<i64>,
    /// None: at once.
    next_read_at: Option<Instant>,
    ends_at: Instant,
    _permit: StreamPermit,
}

/// The changes after `known`, then every change until the stream's lifetime ends. Without `known`
/// it begins with all statuses.
pub fn changes(
    maps: &SeatMaps,
    user_id: Uuid,
    event_id: Uuid,
    known: Option<i64>,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + Send + use<>, SeatMapStreamLimit> {
    let stream = SeatMapStream {
        maps: maps.clone(),
        event_id,
        known,
        next_read_at: None,
        ends_at: Instant::now() + maps.0.settings.stream_lifetime,
        _permit: maps.0.streams.acquire(user_id)?,
    };
    Ok(unfold(stream, async |mut stream| {
        let event = stream.next().await?;
        Some((Ok(event), stream))
    }))
}

impl SeatMapStream {
    /// None ends the stream. The client connects again with its version.
    async fn next(&mut self) -> Option<Event> {
        let closing = self.maps.0.closing.clone();
        let ends_at = self.ends_at;
        tokio::select! {
            biased;
            () = closing.cancelled() => None,
            () = tokio::time::sleep_until(ends_at) => None,
            event = self.change() => event,
        }
    }

    async fn change(&mut self) -> Option<Event> {
        loop {
            if let Some(at) = self.next_read_at {
                tokio::time::sleep_until(at).await;
            }
            let view = self.maps.load(self.event_id).await.ok()??;
            self.next_read_at = Some(Instant::now() + self.maps.0.settings.refresh_interval);
            let version = view.seats.version();
            let bytes = match self.known {
                None => Some(view.seats.without_layout(self.event_id)),
                Some(known) if view.seats.is_news_to(known) => {
                    Some(view.seats.since(self.event_id, known))
                }
                Some(_) => None,
            };
            if let Some(bytes) = bytes {
                self.known = Some(version);
                return Some(event(version, &bytes));
            }
        }
    }
}

fn event(version: i64, bytes: &Bytes) -> Event {
    let text = str::from_utf8(bytes).expect("JSON is UTF-8");
    Event::default().id(version.to_string()).retry(RETRY).data(text)
}
