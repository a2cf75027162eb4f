//! The contract of the rate limiter: the same cases in memory, on Redis and on a Redis Cluster, and
//! what happens when Redis dies, hangs or forgets.

mod clocks;
mod contract;
mod failures;

use urr_gateway::{Quota, RateLimiter};
use urr_kernel::{Clock, Secret};
use urr_redis::{Redis, RedisTopology};
use urr_test::servers::{self, Server};

/// Nothing drains while a test runs: a bucket lets its burst through and no more.
pub fn only(burst: u32) -> Quota {
    Quota { per_minute: 1, burst }
}

pub fn memory() -> RateLimiter {
    RateLimiter::local(Clock::System)
}

pub async fn single() -> Option<RateLimiter> {
    if !servers::available(Server::Redis).unwrap() {
        return None;
    }
    Some(on(servers::shared_redis().unwrap().url()).await)
}

pub async fn cluster() -> Option<RateLimiter> {
    if !servers::available(Server::RedisCluster).unwrap() {
        return None;
    }
    let nodes = servers::shared_redis_cluster().unwrap().urls().iter().map(Secret::new).collect();
    let redis = Redis::connect(&RedisTopology::Cluster(nodes)).await.unwrap();
    Some(RateLimiter::shared(redis, Clock::System))
}

pub async fn on(url: &str) -> RateLimiter {
    RateLimiter::shared(connect(url).await, Clock::System)
}

pub async fn connect(url: &str) -> Redis {
    Redis::connect(&RedisTopology::Single(Secret::new(url))).await.unwrap()
}

/// A server that the test may stop, crash and pause.
pub fn own_server() -> Option<servers::RedisServer> {
    servers::available(Server::Redis).unwrap().then(|| servers::RedisServer::start().unwrap())
}

/// How many of so many requests are let through.
pub async fn let_through(limiter: &RateLimiter, bucket: &str, quota: Quota, requests: u32) -> u32 {
    let mut allowed = 0;
    for _ in 0..requests {
        allowed += u32::from(limiter.check(bucket, quota).await.allowed);
    }
    allowed
}
