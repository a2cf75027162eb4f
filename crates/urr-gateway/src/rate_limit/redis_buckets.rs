//! Buckets in Redis: `rate:{<bucket>}` holds a time in microseconds and expires when it drains.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use urr_kernel::hex;
use urr_redis::{Redis, RedisError, Script, hash_tag};

use super::gcra::{BucketUpdate, Gcra};

/// Longer names are hashed.
const NAME_BYTES_MAX: usize = 200;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));
static UNDO: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("undo.lua")));

pub async fn take(redis: &Redis, bucket: &str, gcra: &Gcra) -> Result<BucketUpdate, RedisError> {
    let arguments = (gcra.interval_us, gcra.tolerance_us);
    let (allowed, empty_at_us, now_us): (i64, i64, i64) =
        redis.run(&TAKE, &[&key(bucket)], arguments).await?;
    Ok(BucketUpdate { allowed: allowed == 1, empty_at_us, now_us })
}

/// Undoes a request. Returns how far the bucket is ahead of now afterwards.
pub async fn undo(
    redis: &Redis,
    bucket: &str,
    gcra: &Gcra,
    update: &BucketUpdate,
) -> Result<i64, RedisError> {
    let arguments = (gcra.interval_us, update.now_us);
    let (empty_at_us, now_us): (i64, i64) = redis.run(&UNDO, &[&key(bucket)], arguments).await?;
    Ok(empty_at_us - now_us)
}

fn key(bucket: &str) -> String {
    if bucket.len() <= NAME_BYTES_MAX {
        return format!("rate:{}", hash_tag(bucket));
    }
    let hash = Sha256::digest(bucket.as_bytes());
    format!("rate:{}", hash_tag(&format!("sha256:{}", hex::encode(hash))))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use redis::AsyncCommands;
    use urr_kernel::Secret;
    use urr_redis::{NO_ARGUMENTS, RedisTopology};
    use urr_test::servers::{self, Server};

    use super::super::gcra::Quota;
    use super::super::gcra::tests::{RequestLog, random_quota};
    use super::*;

    async fn connect() -> Option<(Redis, redis::aio::MultiplexedConnection)> {
        if !servers::available(Server::Redis).unwrap() {
            return None;
        }
        let url = servers::shared_redis().unwrap().url();
        let redis = Redis::connect(&RedisTopology::Single(Secret::new(url))).await.unwrap();
        let client = redis::Client::open(url).unwrap();
        Some((redis, client.get_multiplexed_async_connection().await.unwrap()))
    }

    /// The server's clock cannot be set, but the script returns the time it used.
    #[tokio::test]
    async fn the_script_decides_as_gcra_and_the_log_of_requests_do() {
        let Some((redis, _)) = connect().await else { return };
        let (mut allowed, mut refused) = (0, 0);
        for seed in 0..60 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut quota = random_quota(&mut random);
            // Half of the buckets drain about as fast as Redis answers. The others hardly drain
            // during the test, so that requests are refused however slow the machine is.
            quota.per_minute = match seed % 2 {
                0 => quota.per_minute * 200,
                _ => quota.per_minute.div_ceil(60),
            };
            let gcra = quota.gcra().unwrap();
            let (bucket, mut log, mut last) =
                (format!("model {seed}"), RequestLog::default(), None::<BucketUpdate>);
            for step in 0..100 {
                let update = take(&redis, &bucket, &gcra).await.unwrap();
                let now_us = update.now_us;
                let expected = gcra.take(last.map(|last| last.empty_at_us), now_us);
                assert_eq!(update, expected, "seed {seed} step {step} {quota:?}");
                assert_eq!(update.allowed, log.take(&gcra, now_us), "seed {seed} step {step}");
                if update.allowed {
                    allowed += 1
                } else {
                    refused += 1
                }
                last = Some(update);
                if step % 7 == 0 && update.allowed {
                    check_undo(&redis, &bucket, &gcra, &update).await;
                    (log, last) = (RequestLog::default(), None);
                    redis_forget(&redis, &bucket).await;
                }
            }
        }
        assert!(allowed > 500 && refused > 500, "{allowed} and {refused}: both were tried");
    }

    async fn check_undo(redis: &Redis, bucket: &str, gcra: &Gcra, update: &BucketUpdate) {
        let peek = Script::new("local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
        let before_us: i64 = redis.run(&peek, &[&key(bucket)], NO_ARGUMENTS).await.unwrap();
        let ahead_us = undo(redis, bucket, gcra, update).await.unwrap();
        let ahead_max_us = gcra.undo(update.empty_at_us, update, before_us) - before_us;
        assert!(ahead_us <= ahead_max_us.max(0), "{ahead_us} {ahead_max_us}");
    }

    async fn redis_forget(redis: &Redis, bucket: &str) {
        let forget = Script::new("return redis.call('DEL', KEYS[1])");
        redis.run::<i64>(&forget, &[&key(bucket)], NO_ARGUMENTS).await.unwrap();
    }

    #[tokio::test]
    async fn a_bucket_is_one_number_that_vanishes_when_it_has_drained() {
        let Some((redis, mut bare)) = connect().await else { return };
        let gcra = Quota { per_minute: 60, burst: 100 }.gcra().unwrap();
        for _ in 0..50 {
            take(&redis, "p-8", &gcra).await.unwrap();
        }
        let stored: String = bare.get("rate:{p-8}").await.unwrap();
        assert_eq!(stored.len(), 16, "P-8: {stored} and not a log of fifty");
        let ttl_ms: i64 = bare.pttl("rate:{p-8}").await.unwrap();
        assert!((40_000..=50_001).contains(&ttl_ms), "{ttl_ms}");
    }

    /// As if the server's clock had been set back by a day.
    #[tokio::test]
    async fn a_server_clock_set_back_leaves_a_full_bucket_that_drains_as_usual() {
        let Some((redis, mut bare)) = connect().await else { return };
        let gcra = Quota { per_minute: 60_000, burst: 3 }.gcra().unwrap();
        let first = take(&redis, "back", &gcra).await.unwrap();
        let tomorrow_us = first.now_us + 86_400_000_000;
        bare.set::<_, _, ()>("rate:{back}", tomorrow_us).await.unwrap();
        let update = take(&redis, "back", &gcra).await.unwrap();
        assert!(!update.allowed, "still limited");
        assert_eq!(
            update.empty_at_us - update.now_us,
            gcra.tolerance_us,
            "but not blocked for long"
        );
        urr_test::eventually("it drains", async || {
            take(&redis, "back", &gcra).await.unwrap().allowed.then_some(())
        })
        .await;
    }

    #[test]
    fn names_of_any_length_have_short_keys_of_their_own() {
        let long = "x".repeat(5000);
        assert_eq!(key("user:1"), "rate:{user:1}");
        assert_eq!(key(&long).len(), "rate:{sha256:}".len() + 64);
        assert_ne!(key(&long), key(&"x".repeat(5001)));
    }
}
