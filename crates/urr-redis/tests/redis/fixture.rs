//! What the tests have in common.

use std::sync::LazyLock;

use urr_kernel::Secret;
use urr_redis::{Redis, RedisTopology, Script};
use urr_test::servers::{self, Server};

/// Adds to a counter and tells its value. Not harmless when repeated: that is what tests look at.
pub static ADD: LazyLock<Script> =
    LazyLock::new(|| Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])"));

pub async fn single() -> Option<Redis> {
    if !servers::available(Server::Redis).unwrap() {
        return None;
    }
    Some(connect(servers::shared_redis().unwrap().url()).await)
}

pub async fn cluster() -> Option<Redis> {
    if !servers::available(Server::RedisCluster).unwrap() {
        return None;
    }
    Some(connect_cluster(servers::shared_redis_cluster().unwrap().urls()).await)
}

pub async fn connect(url: &str) -> Redis {
    Redis::connect(&RedisTopology::Single(Secret::new(url))).await.unwrap()
}

pub async fn connect_cluster(urls: &[String]) -> Redis {
    let nodes = urls.iter().map(Secret::new).collect();
    Redis::connect(&RedisTopology::Cluster(nodes)).await.unwrap()
}

/// A server that the test may stop, crash and pause.
pub fn own_server() -> Option<servers::RedisServer> {
    servers::available(Server::Redis).unwrap().then(|| servers::RedisServer::start().unwrap())
}
