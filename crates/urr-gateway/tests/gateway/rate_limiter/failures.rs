//! Redis dies, hangs or forgets in the middle: still limited, never open (G4), and it recovers.

use std::time::{Duration, Instant};

use urr_gateway::RateLimiter;
use urr_test::eventually;

use crate::rate_limiter::{connect, let_through, on, only, own_server};

/// Waits until Redis decides again, with a bucket that nobody else uses.
async fn until_redis_decides(limiter: &RateLimiter) {
    eventually("Redis decides again", async || {
        let before = limiter.stats().fallback;
        limiter.check("is it back", only(1)).await;
        (limiter.stats().fallback == before).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_redis_dies_this_process_goes_on_where_it_was() {
    let Some(mut server) = own_server() else { return };
    let limiter = on(server.url()).await;
    assert_eq!(let_through(&limiter, "a", only(10), 6).await, 6);
    assert_eq!(limiter.stats().fallback, 0);
    assert!(!limiter.is_redis_down());
    server.kill().unwrap();
    assert_eq!(let_through(&limiter, "a", only(10), 200).await, 4, "no second burst");
    assert_eq!(limiter.stats().fallback, 200);
    assert!(limiter.is_redis_down());
    // A name that this process has not seen gets its burst and no more.
    assert_eq!(let_through(&limiter, "b", only(10), 200).await, 10);

    server.start_again().unwrap();
    until_redis_decides(&limiter).await;
    assert!(!limiter.is_redis_down());
    let fallback = limiter.stats().fallback;
    assert_eq!(let_through(&limiter, "a", only(10), 200).await, 4, "it knows of the first six");
    assert_eq!(limiter.stats().fallback, fallback);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_redis_hangs_requests_wait_a_few_times_and_then_no_more() {
    let Some(mut server) = own_server() else { return };
    let limiter = on(server.url()).await;
    assert_eq!(let_through(&limiter, "a", only(10), 6).await, 6);
    server.pause().unwrap();
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { let_through(&limiter, "a", only(10), 20).await })
        })
        .collect();
    let begun = Instant::now();
    let mut allowed = 0;
    for caller in callers {
        allowed += caller.await.unwrap();
    }
    assert_eq!(allowed, 4, "no second burst");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let begun = Instant::now();
    assert_eq!(let_through(&limiter, "a", only(10), 1000).await, 0);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());

    server.resume().unwrap();
    until_redis_decides(&limiter).await;
    // The checks that timed out have reached it after all, and have taken the rest.
    assert_eq!(let_through(&limiter, "a", only(10), 50).await, 0);
    assert_eq!(let_through(&limiter, "c", only(10), 50).await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_redis_forgets_everything_limits_begin_anew_but_are_not_open() {
    let Some(server) = own_server() else { return };
    let limiter = on(server.url()).await;
    assert_eq!(let_through(&limiter, "a", only(10), 50).await, 10);
    let client = redis::Client::open(server.url()).unwrap();
    let mut bare = client.get_multiplexed_async_connection().await.unwrap();
    redis::cmd("FLUSHALL").query_async::<()>(&mut bare).await.unwrap();
    redis::cmd("SCRIPT").arg("FLUSH").query_async::<()>(&mut bare).await.unwrap();
    assert_eq!(let_through(&limiter, "a", only(10), 50).await, 10);
    assert_eq!(limiter.stats().fallback, 0, "it works without its scripts and keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_from_the_start_memory_limits_alone() {
    let Some(mut server) = own_server() else { return };
    server.stop().unwrap();
    let limiter = on(server.url()).await;
    assert_eq!(let_through(&limiter, "a", only(10), 50).await, 10);
    let pair = [("b", only(3)), ("a", only(10))];
    assert!(!limiter.check_all(&pair).await.allowed);
    assert_eq!(let_through(&limiter, "b", only(3), 5).await, 3, "given back in memory");
    server.start_again().unwrap();
    until_redis_decides(&limiter).await;
    assert_eq!(let_through(&limiter, "c", only(10), 50).await, 10);
    assert!(connect(server.url()).await.ping().await.is_ok());
}
