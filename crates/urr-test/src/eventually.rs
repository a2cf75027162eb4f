//! Polling for something that happens in the background.

use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls until `poll` returns a value; panics with `what` if it never does.
pub async fn eventually<T>(what: &str, poll: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
