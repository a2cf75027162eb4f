//! A request body that fails when it arrives slower than a least pace.
//!
//! A client that begins a body and never ends it costs us a connection. It must cost nothing else:
//! whoever reads bodies of strangers reads them to their end first and takes places and permits
//! afterwards. The pace bounds how long that reading may take.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use urr_kernel::causes;

use crate::ApiError;
use crate::body_limit::is_limit;
use crate::extract::{too_large, unreadable};

/// How long a body may take: a time for all, and more for what has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyPace {
    pub grace: Duration,
    pub bytes_per_second_min: u32,
}

impl Default for BodyPace {
    /// A phone in a tunnel keeps this; whoever trickles bytes does not.
    fn default() -> BodyPace {
        BodyPace { grace: Duration::from_secs(10), bytes_per_second_min: 16 * 1024 }
    }
}

impl BodyPace {
    /// How long we wait in all for a body of which this much has arrived.
    fn wait_max(self, received_bytes: u64) -> Duration {
        let rate = u64::from(self.bytes_per_second_min).max(1);
        self.grace + Duration::from_millis(received_bytes.saturating_mul(1_000) / rate)
    }
}

/// The body did not keep its pace.
#[derive(Debug, thiserror::Error)]
#[error("the body arrived too slowly")]
struct BodyTooSlow;

/// A body with a pace. Only the time in which we wait for the client counts.
pub struct PacedBody {
    body: Body,
    pace: BodyPace,
    received_bytes: u64,
    waited: Duration,
    waiting_since: Option<Instant>,
    /// Created at the first wait: most bodies are there at once.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl PacedBody {
    pub fn new(body: Body, pace: BodyPace) -> PacedBody {
        let (waited, waiting_since, alarm) = (Duration::ZERO, None, None);
        PacedBody { body, pace, received_bytes: 0, waited, waiting_since, alarm }
    }

    fn note_arrival(&mut self, frame: Option<&Frame<Bytes>>) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
        let bytes = frame.and_then(Frame::data_ref).map_or(0, Bytes::len);
        self.received_bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.note_arrival(frame.as_ref().and_then(|frame| frame.as_ref().ok()));
            return Poll::Ready(frame);
        }
        let left = self.pace.wait_max(self.received_bytes).saturating_sub(self.waited);
        let is_new = self.waiting_since.is_none();
        let until = *self.waiting_since.get_or_insert_with(Instant::now) + left;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if is_new {
            alarm.as_mut().reset(until);
        }
        ready!(alarm.as_mut().poll(cx));
        Poll::Ready(Some(Err(axum::Error::new(BodyTooSlow))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a body to its end: 413 if it is larger, 408 if it does not keep its pace, 400 if it breaks
/// off.
pub async fn read_body(body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    let read = Limited::new(body, bytes_max).collect().await;
    read.map(http_body_util::Collected::to_bytes).map_err(|error| body_refused(&*error))
}

/// The answer to a body that could not be read.
pub fn body_refused(error: &(dyn Error + 'static)) -> ApiError {
    match () {
        () if is_limit(error) => too_large(),
        () if is_too_slow(error) => request_timeout(),
        () => unreadable(),
    }
}

/// Whether reading a body failed because the client was too slow.
pub(crate) fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<BodyTooSlow>())
}

pub(crate) fn request_timeout() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "REQUEST_TIMEOUT",
        "The body of the request did not arrive in time.",
    )
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    const PACE: BodyPace = BodyPace { grace: Duration::from_secs(10), bytes_per_second_min: 100 };

    /// Sends `bytes` every `every`, `times` times; then it ends, or never does.
    fn trickle(bytes: usize, every: Duration, times: usize, ends: bool) -> Body {
        let sent = stream::iter(0..times).then(move |_| async move {
            tokio::time::sleep(every).await;
            Ok::<_, std::io::Error>(vec![0; bytes])
        });
        let rest = if ends { stream::empty().boxed() } else { stream::pending().boxed() };
        Body::new(PacedBody::new(Body::from_stream(sent.chain(rest)), PACE))
    }

    async fn outcome(body: Body) -> (u64, String) {
        let begun = Instant::now();
        let read = read_body(body, 1_000_000).await;
        let text = read.map_or_else(|error| error.to_string(), |bytes| bytes.len().to_string());
        (begun.elapsed().as_secs(), text)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up_after_the_grace() {
        let slow = "408 REQUEST_TIMEOUT: The body of the request did not arrive in time.";
        let second = Duration::from_secs(1);
        assert_eq!(outcome(trickle(0, second, 0, false)).await, (10, slow.to_owned()));
        // One byte every second buys a hundredth of a second each.
        assert_eq!(outcome(trickle(1, second, 10_000, false)).await, (10, slow.to_owned()));
        // What arrived quickly gives time for the rest.
        let (seconds, text) = outcome(trickle(100, second, 30, false)).await;
        assert_eq!((seconds, text.as_str()), (40, slow));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_keeps_the_pace_is_read_whole() {
        let second = Duration::from_secs(1);
        assert_eq!(outcome(trickle(100, second, 60, true)).await, (60, "6000".to_owned()));
        let (_, text) = outcome(trickle(2_000_000, Duration::ZERO, 1, true)).await;
        assert!(text.starts_with("413"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_slow_itself_does_not_use_up_the_time_of_the_client() {
        let sent = stream::iter((0..3).map(|_| Ok::<_, std::io::Error>("part")));
        let mut body = PacedBody::new(Body::from_stream(sent), PACE);
        let mut parts = 0;
        while let Some(frame) = body.frame().await {
            frame.unwrap();
            parts += 1;
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert_eq!(parts, 3);
    }
}
