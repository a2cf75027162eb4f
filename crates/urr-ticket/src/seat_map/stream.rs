//! The changes of a map as they happen, as server-sent events.
//!
//! Each stream looks as often as a map is refreshed; the looks of all streams and viewers together
//! are one at the database, and the answer for those at the same version is made once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::sse::Event;
use futures_util::stream::{Stream, unfold};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use urr_kernel::Uuid;

use super::SeatMaps;

/// How long a client waits before it asks again.
const RETRY: Duration = Duration::from_secs(2);

/// As many follow as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many follow the changes of maps")]
pub struct TooManyStreams;

struct Following {
    maps: SeatMaps,
    event_id: Uuid,
    /// The version that the client has; none if it has nothing yet.
    known: Option<i64>,
    ends_at: Instant,
    _place: OwnedSemaphorePermit,
}

/// What changed after `known`, then every change until the stream's time is over. Without `known`
/// it begins with all statuses.
pub fn changes(
    maps: &SeatMaps,
    event_id: Uuid,
    known: Option<i64>,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + Send + use<>, TooManyStreams> {
    let place = Arc::clone(&maps.0.streams).try_acquire_owned().map_err(|_| TooManyStreams)?;
    let ends_at = Instant::now() + maps.0.settings.stream_lifetime;
    let following = Following { maps: maps.clone(), event_id, known, ends_at, _place: place };
    Ok(unfold(following, async |mut following| {
        let event = following.next().await?;
        Some((Ok(event), following))
    }))
}

impl Following {
    /// None: the stream ends. Its client comes back by itself and says what it knows.
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
            let view = self.maps.look(self.event_id).await.ok()??;
            let version = view.picture.version();
            let bytes = match self.known {
                None => Some(view.picture.without_layout(self.event_id)),
                Some(known) if known < version => Some(view.picture.since(self.event_id, known)),
                Some(_) => None,
            };
            if let Some(bytes) = bytes {
                self.known = Some(version);
                return Some(event(version, &bytes));
            }
            tokio::time::sleep(self.maps.0.settings.refresh_interval).await;
        }
    }
}

fn event(version: i64, bytes: &Bytes) -> Event {
    let text = str::from_utf8(bytes).expect("JSON is UTF-8");
    Event::default().id(version.to_string()).retry(RETRY).data(text)
}
