//! Buckets in Redis: `rate:{<bucket>}`, a time in microseconds, gone when it has drained.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use urr_redis::{Redis, RedisError, Script, hash_tag};

use crate::pace::{Pace, Taken};

/// Longer names are replaced by their hash.
const NAME_BYTES_MAX: usize = 200;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));
static GIVE_BACK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("give_back.lua")));

pub(crate) async fn take(redis: &Redis, bucket: &str, pace: &Pace) -> Result<Taken, RedisError> {
    let arguments = (pace.interval_us, pace.tolerance_us);
    let (allowed, empty_at_us, now_us): (i64, i64, i64) =
        redis.run(&TAKE, &[&key(bucket)], arguments).await?;
    Ok(Taken { allowed: allowed == 1, empty_at_us, now_us })
}

/// How far ahead of now the bucket is after it.
pub(crate) async fn give_back(
    redis: &Redis,
    bucket: &str,
    pace: &Pace,
    taken: &Taken,
) -> Result<i64, RedisError> {
    let arguments = (pace.interval_us, taken.now_us);
    let (empty_at_us, now_us): (i64, i64) =
        redis.run(&GIVE_BACK, &[&key(bucket)], arguments).await?;
    Ok(empty_at_us - now_us)
}

fn key(bucket: &str) -> String {
    if bucket.len() <= NAME_BYTES_MAX {
        return format!("rate:{}", hash_tag(bucket));
    }
    let hash = Sha256::digest(bucket.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("rate:{}", hash_tag(&format!("sha256:{hash}")))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use redis::AsyncCommands;
    use urr_kernel::Secret;
    use urr_redis::{NO_ARGUMENTS, RedisPlace};
    use urr_test::servers::{self, Server};

    use super::*;
    use crate::pace::Quota;
    use crate::pace::tests::{RequestLog, random_quota};

    async fn connect() -> Option<(Redis, redis::aio::MultiplexedConnection)> {
        if !servers::available(Server::Redis).unwrap() {
            return None;
        }
        let url = servers::shared_redis().unwrap().url();
        let redis = Redis::connect(&RedisPlace::Single(Secret::new(url))).await.unwrap();
        let client = redis::Client::open(url).unwrap();
        Some((redis, client.get_multiplexed_async_connection().await.unwrap()))
    }

    /// The server's clock cannot be set, but it tells the time it used.
    #[tokio::test]
    async fn the_script_decides_as_the_rule_and_the_log_of_requests_do() {
        let Some((redis, _)) = connect().await else { return };
        let (mut allowed, mut refused) = (0, 0);
        for seed in 0..60 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut quota = random_quota(&mut random);
            // About as fast as Redis answers, so that buckets fill and drain.
            quota.per_minute *= 200;
            let pace = quota.pace().unwrap();
            let (bucket, mut log, mut last) =
                (format!("model {seed}"), RequestLog::default(), None::<Taken>);
            for step in 0..100 {
                let taken = take(&redis, &bucket, &pace).await.unwrap();
                let now_us = taken.now_us;
                let rule = pace.take(last.map(|last| last.empty_at_us), now_us);
                assert_eq!(taken, rule, "seed {seed} step {step} {quota:?}");
                assert_eq!(taken.allowed, log.take(&pace, now_us), "seed {seed} step {step}");
                if taken.allowed {
                    allowed += 1
                } else {
                    refused += 1
                }
                last = Some(taken);
                if step % 7 == 0 && taken.allowed {
                    give_back_as_the_rule_does(&redis, &bucket, &pace, &taken).await;
                    (log, last) = (RequestLog::default(), None);
                    redis_forget(&redis, &bucket).await;
                }
            }
        }
        assert!(allowed > 500 && refused > 500, "{allowed} and {refused}: both were tried");
    }

    async fn give_back_as_the_rule_does(redis: &Redis, bucket: &str, pace: &Pace, taken: &Taken) {
        let peek = Script::new("local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
        let before_us: i64 = redis.run(&peek, &[&key(bucket)], NO_ARGUMENTS).await.unwrap();
        let ahead_us = give_back(redis, bucket, pace, taken).await.unwrap();
        let ahead_max_us = pace.give_back(taken.empty_at_us, taken, before_us) - before_us;
        assert!(ahead_us <= ahead_max_us.max(0), "{ahead_us} {ahead_max_us}");
    }

    async fn redis_forget(redis: &Redis, bucket: &str) {
        let forget = Script::new("return redis.call('DEL', KEYS[1])");
        redis.run::<i64>(&forget, &[&key(bucket)], NO_ARGUMENTS).await.unwrap();
    }

    #[tokio::test]
    async fn a_bucket_is_one_number_that_vanishes_when_it_has_drained() {
        let Some((redis, mut bare)) = connect().await else { return };
        let pace = Quota { per_minute: 60, burst: 100 }.pace().unwrap();
        for _ in 0..50 {
            take(&redis, "p-8", &pace).await.unwrap();
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
        let pace = Quota { per_minute: 60_000, burst: 3 }.pace().unwrap();
        let first = take(&redis, "back", &pace).await.unwrap();
        let tomorrow_us = first.now_us + 86_400_000_000;
        bare.set::<_, _, ()>("rate:{back}", tomorrow_us).await.unwrap();
        let taken = take(&redis, "back", &pace).await.unwrap();
        assert!(!taken.allowed, "not open");
        assert_eq!(taken.empty_at_us - taken.now_us, pace.tolerance_us, "nor shut for long");
        urr_test::eventually("it drains", async || {
            take(&redis, "back", &pace).await.unwrap().allowed.then_some(())
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
