//! Someone's place as it changes, as server-sent events: for the first in line, whose polls would
//! come every second.
//!
//! A stream looks at the room once a second and tells what is new. It keeps the place, as a poll
//! does.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::stream::{Stream, unfold};
use tokio::time::Instant;
use urr_kernel::Uuid;

use crate::Queue;
use crate::http::{ViewDetail, fingerprint, render};
use crate::status::{QueueError, QueueStatus, has_ended};
use urr_room::UserStatus;

/// Those so near to the front may follow without asking for it.
pub const FIRST_IN_LINE: u32 = 1_000;
const PER_USER_MAX: usize = 3;
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Then the client comes back by itself, perhaps to another process.
const LIFETIME: Duration = Duration::from_secs(300);
/// How long a client waits before it comes back.
const RETRY: Duration = Duration::from_secs(2);

/// As many follow as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamLimit {
    #[error("too many follow their places")]
    OfAll,
    #[error("the user follows as many places as they may")]
    OfUser,
}

/// From where someone follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// They are in, or among the first.
    Front,
    /// They asked for it: such streams take at most half of those that may be.
    Behind,
}

/// Those who follow their place in this process.
pub struct Streams {
    max: usize,
    taken: Mutex<StreamCounts>,
}

#[derive(Default)]
struct StreamCounts {
    count: usize,
    /// Of those who began far behind.
    far_count: usize,
    by_user: HashMap<Uuid, usize>,
}

/// Someone who follows. Counted until it is dropped.
struct StreamPermit {
    queue: QueueService,
    user_id: Uuid,
    from: StreamStart,
}

impl Streams {
    pub fn new(max: usize) -> Streams {
        Streams { max, taken: Mutex::default() }
    }

    fn take(&self, user_id: Uuid, from: StreamStart) -> Result<(), StreamLimit> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = taken.by_user.get(&user_id).copied().unwrap_or(0);
        if of_user >= PER_USER_MAX {
            return Err(StreamLimit::OfUser);
        }
        let is_far = from == StreamStart::Behind;
        if taken.count >= self.max || (is_far && taken.far_count >= self.max / 2) {
            return Err(StreamLimit::OfAll);
        }
        taken.count += 1;
        taken.far_count += usize::from(is_far);
        taken.by_user.insert(user_id, of_user + 1);
        Ok(())
    }

    fn give_back(&self, user_id: Uuid, from: StreamStart) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.count -= 1;
        taken.far_count -= usize::from(from == StreamStart::Behind);
        let of_user = taken.by_user.get_mut(&user_id).expect("its stream is counted");
        *of_user -= 1;
        if *of_user == 0 {
            taken.by_user.remove(&user_id);
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.queue.0.streams.give_back(self.user_id, self.from);
        self.queue.0.metrics.stream_ended();
    }
}

struct StatusStream {
    follower: StreamPermit,
    event_id: Uuid,
    /// The first answer, until it is told.
    first: Option<QueueStatus>,
    /// What was told last.
    known: Option<u64>,
    next_look_at: Instant,
    ends_at: Instant,
    /// They have no place any more: there is nothing to follow.
    is_over: bool,
}

/// What someone was told now, then everything that is new until the stream's time is over.
pub fn places(
    queue: &QueueService,
    user_id: Uuid,
    told: QueueStatus,
    from: StreamStart,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + Send + use<>, StreamLimit> {
    queue.0.streams.take(user_id, from)?;
    queue.0.metrics.stream_begun();
    let now = Instant::now();
    let following = StatusStream {
        follower: StreamPermit { queue: queue.clone(), user_id, from },
        event_id: told.event.event_id,
        first: Some(told),
        known: None,
        next_look_at: now + LOOK_EVERY,
        ends_at: now + LIFETIME,
        is_over: false,
    };
    Ok(unfold(following, async |mut following| {
        let event = following.next().await?;
        Some((Ok(event), following))
    }))
}

impl StatusStream {
    /// None: the stream ends. Its client comes back by itself.
    async fn next(&mut self) -> Option<Event> {
        let closing = self.follower.queue.0.closing.clone();
        let ends_at = self.ends_at;
        tokio::select! {
            biased;
            () = closing.cancelled() => None,
            () = tokio::time::sleep_until(ends_at) => None,
            event = self.change() => event,
        }
    }

    async fn change(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        loop {
            let told = match self.first.take() {
                Some(told) => told,
                None => self.look().await?,
            };
            let fingerprint = fingerprint(&self.follower.queue, &told);
            if self.known == Some(fingerprint) {
                continue;
            }
            self.known = Some(fingerprint);
            self.is_over = has_ended(told.phase) || told.seen.status == UserStatus::Absent;
            let StreamPermit { queue, user_id, .. } = &self.follower;
            let bytes = render(queue, *user_id, &told, ViewDetail::Small);
            let text = String::from_utf8(bytes).expect("JSON is UTF-8");
            return Some(Event::default().event("place").retry(RETRY).data(text));
        }
    }

    /// What there is to be told in a second. A room that does not answer is asked again.
    async fn look(&mut self) -> Option<QueueStatus> {
        let StreamPermit { queue, user_id, .. } = &self.follower;
        loop {
            tokio::time::sleep_until(self.next_look_at).await;
            self.next_look_at = Instant::now() + LOOK_EVERY;
            match queue.look(self.event_id, *user_id).await {
                Ok(told) => return Some(told),
                Err(QueueError::Room(_)) => {}
                Err(_) => return None,
            }
        }
    }
}
