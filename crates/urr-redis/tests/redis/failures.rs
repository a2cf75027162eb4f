//! A server that dies, hangs or forgets.

use std::time::{Duration, Instant};

use urr_redis::{Redis, RedisError, RedisOptions};
use urr_test::eventually;
use urr_test::servers::{self, Server};

use crate::fixture::{ADD, connect, connect_cluster, own_server};

async fn add(redis: &Redis, key: &str) -> Result<i64, RedisError> {
    redis.run(&ADD, &[key], 1).await
}

/// Fails until the circuit is open, and tells how long each call took.
async fn fail_until_open(redis: &Redis, key: &str) -> Vec<(RedisError, Duration)> {
    let mut failures = Vec::new();
    for _ in 0..RedisOptions::default().failures_max {
        let begun = Instant::now();
        failures.push((add(redis, key).await.unwrap_err(), begun.elapsed()));
    }
    failures
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_forgets_scripts_and_is_told_again() {
    let Some(mut server) = own_server() else { return };
    let redis = connect(server.url()).await;
    assert_eq!(add(&redis, "kept").await, Ok(1));
    server.restart().unwrap();

    // The control: it did forget.
    let client = redis::Client::open(server.url()).unwrap();
    let mut bare = client.get_multiplexed_async_connection().await.unwrap();
    let hash = redis::Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    let evalsha = redis::cmd("EVALSHA").arg(hash.get_hash()).arg(1).arg("kept").arg(0).to_owned();
    let error = evalsha.query_async::<i64>(&mut bare).await.unwrap_err();
    assert_eq!(error.code(), Some("NOSCRIPT"));

    let value = eventually("the script runs again", async || add(&redis, "kept").await.ok()).await;
    assert_eq!(value, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_costs_a_few_timeouts_and_then_nothing_until_it_answers() {
    let Some(mut server) = own_server() else { return };
    let redis = connect(server.url()).await;
    assert_eq!(add(&redis, "hung").await, Ok(1));
    server.pause().unwrap();

    let response_timeout = RedisOptions::default().response_timeout;
    for (error, took) in fail_until_open(&redis, "hung").await {
        assert_eq!(error, RedisError::Timeout);
        assert!(took >= response_timeout && took < 3 * response_timeout, "{took:?}");
    }
    // For longer than the circuit waits between its attempts: no call has to serve as one.
    let open_for = RedisOptions::default().open_for;
    let (begun, mut slowest, mut refused) = (Instant::now(), Duration::ZERO, 0);
    while begun.elapsed() < 2 * open_for {
        let called = Instant::now();
        assert_eq!(add(&redis, "hung").await, Err(RedisError::Unavailable));
        slowest = slowest.max(called.elapsed());
        refused += 1;
    }
    assert!(slowest < response_timeout && refused > 10_000, "{slowest:?}, {refused} refusals");
    assert_eq!(redis.ping().await, Err(RedisError::Timeout), "a ping asks all the same");

    server.resume().unwrap();
    let value = eventually("it answers", async || add(&redis, "hung").await.ok()).await;
    // Those that timed out waited in the server's socket and have executed after all.
    assert!(value >= 2 + i64::from(RedisOptions::default().failures_max), "{value}");
    assert!(add(&redis, "hung").await.is_ok(), "the circuit is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_is_refused_at_once_and_found_again() {
    let Some(mut server) = own_server() else { return };
    let redis = connect(server.url()).await;
    assert_eq!(add(&redis, "died").await, Ok(1));
    server.kill().unwrap();

    let failures = fail_until_open(&redis, "died").await;
    assert_eq!(failures[0].0, RedisError::Timeout, "sent or not, who knows");
    for (error, took) in &failures[1..] {
        assert_eq!(*error, RedisError::Unavailable);
        assert!(*took < Duration::from_millis(200), "{took:?}");
    }
    assert_eq!(redis.ping().await, Err(RedisError::Unavailable));

    server.start_again().unwrap();
    let value = eventually("it is found", async || add(&redis, "died").await.ok()).await;
    assert_eq!(value, 2, "its file survived, and nothing was counted twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_at_the_start_is_found_later() {
    let Some(mut server) = own_server() else { return };
    server.stop().unwrap();
    let redis = connect(server.url()).await;
    assert_eq!(redis.ping().await, Err(RedisError::Unavailable));
    assert_eq!(add(&redis, "late").await, Err(RedisError::Unavailable));
    server.start_again().unwrap();
    assert_eq!(redis.ping().await, Ok(()));
    assert_eq!(add(&redis, "late").await, Ok(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hangs_does_not_stop_the_rest_of_its_cluster() {
    if !servers::available(Server::RedisCluster).unwrap() {
        return;
    }
    // Its own: the shared one has other users.
    let servers = servers::RedisCluster::start().unwrap();
    let redis = connect_cluster(servers.urls()).await;
    // The first node serves the first third of the slots, the last one the last.
    let (hung_key, other_key) = ("{bl}", "{x}");
    assert_eq!(add(&redis, hung_key).await, Ok(1));
    assert_eq!(add(&redis, other_key).await, Ok(1));

    let client = redis::Client::open(servers.urls()[0].as_str()).unwrap();
    let mut bare = client.get_multiplexed_async_connection().await.unwrap();
    // Scripts count as writes. In the mode `ALL` it would not hear that it may go on.
    let pause = redis::cmd("CLIENT").arg("PAUSE").arg(60_000).arg("WRITE").to_owned();
    pause.query_async::<()>(&mut bare).await.unwrap();

    fail_until_open(&redis, hung_key).await;
    let begun = Instant::now();
    for _ in 0..100 {
        assert_eq!(add(&redis, hung_key).await, Err(RedisError::Unavailable));
        assert!(add(&redis, other_key).await.is_ok());
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());

    let resume = redis::cmd("CLIENT").arg("UNPAUSE").to_owned();
    resume.query_async::<()>(&mut bare).await.unwrap();
    eventually("the node is back", async || add(&redis, hung_key).await.ok()).await;
}
