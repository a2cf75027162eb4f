//! Waiting for something that happens in the background.

use std::time::{Duration, Instant};

/// Longer than anything should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Looks again and again until `look` finds what it wants; panics with `what` if it never does.
pub async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
