//! Time: a clock that a test moves, clocks that disagree.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use urr_gateway::{Quota, RateLimiter};
use urr_kernel::Clock;
use urr_test::servers::{self, Server};

use crate::rate_limiter::{connect, let_through, only};

#[tokio::test]
async fn in_memory_a_minute_gives_back_what_a_minute_allows() {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let limiter = RateLimiter::local(clock.clone());
    let quota = Quota { per_minute: 30, burst: 10 };
    assert_eq!(let_through(&limiter, "a", quota, 100).await, 10);
    let refused = limiter.check("a", quota).await;
    assert_eq!(refused.retry_after, Duration::from_secs(2));
    assert_eq!(refused.reset_after, Duration::from_secs(20));
    clock.advance(refused.retry_after - Duration::from_micros(1));
    assert_eq!(let_through(&limiter, "a", quota, 5).await, 0);
    clock.advance(Duration::from_micros(1));
    assert_eq!(let_through(&limiter, "a", quota, 5).await, 1);
    clock.advance(Duration::from_secs(7));
    assert_eq!(let_through(&limiter, "a", quota, 100).await, 3);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(let_through(&limiter, "a", quota, 100).await, 10, "never more than the burst");
}

#[tokio::test]
async fn a_clock_that_jumps_back_neither_opens_nor_locks_out() {
    let micros = Arc::new(AtomicI64::new(1_800_000_000_000_000));
    let clock = Clock::Manual(Arc::clone(&micros));
    let limiter = RateLimiter::local(clock.clone());
    let quota = Quota { per_minute: 60, burst: 5 };
    assert_eq!(let_through(&limiter, "a", quota, 5).await, 5);
    micros.fetch_sub(86_400_000_000, Ordering::SeqCst);
    assert_eq!(let_through(&limiter, "a", quota, 20).await, 0, "not open");
    clock.advance(Duration::from_secs(1));
    assert_eq!(let_through(&limiter, "a", quota, 20).await, 1, "as if it had not jumped");
    clock.advance(Duration::from_secs(5));
    assert_eq!(let_through(&limiter, "a", quota, 20).await, 5);
}

#[tokio::test]
async fn replicas_with_different_clocks_agree() {
    if !servers::available(Server::Redis).unwrap() {
        return;
    }
    let url = servers::shared_redis().unwrap().url();
    let behind = RateLimiter::shared(connect(url).await, Clock::manual(Timestamp::UNIX_EPOCH));
    let ahead = Clock::manual(Timestamp::from_second(4_000_000_000).unwrap());
    let ahead = RateLimiter::shared(connect(url).await, ahead);
    assert_eq!(let_through(&behind, "clocks", only(7), 3).await, 3);
    assert_eq!(let_through(&ahead, "clocks", only(7), 10).await, 4);
    assert_eq!(let_through(&behind, "clocks", only(7), 10).await, 0);
}
