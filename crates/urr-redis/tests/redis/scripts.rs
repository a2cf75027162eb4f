//! Running scripts.

use urr_kernel::Secret;
use urr_redis::{Redis, RedisError, RedisTopology};

use crate::fixture::{ADD, single};
use crate::on_both_topologies;

on_both_topologies!(
    a_script_sees_its_keys_and_arguments,
    f_5_keys_with_one_hash_tag_go_into_one_script,
    a_hundred_callers_share_one_connection,
    a_refusal_is_told_and_does_not_count_as_a_failure,
    it_answers_a_ping,
);

mod cases {
    use urr_redis::{NO_ARGUMENTS, RedisOptions, Script, hash_tag};

    use super::*;

    pub async fn a_script_sees_its_keys_and_arguments(redis: Redis) {
        let script = Script::new("return {KEYS[1], ARGV[1], ARGV[2] + 1}");
        let answer: (String, String, i64) =
            redis.run(&script, &["test:echo"], ("a b\r\n", 41)).await.unwrap();
        assert_eq!(answer, ("test:echo".to_owned(), "a b\r\n".to_owned(), 42));
    }

    /// F-5: two keys of one script without a hash tag fail on a Cluster.
    pub async fn f_5_keys_with_one_hash_tag_go_into_one_script(redis: Redis) {
        let script = Script::new(
            "redis.call('SET', KEYS[1], ARGV[1]) \
             return redis.call('GET', KEYS[1]) .. redis.call('INCR', KEYS[2])",
        );
        for event in 0..50 {
            let tag = hash_tag(&format!("tagged}}{event}"));
            let [one, two] = [format!("{tag}:queue"), format!("active:{tag}")];
            let answer: String = redis.run(&script, &[&one, &two], "at ").await.unwrap();
            assert_eq!(answer, "at 1");
        }
    }

    pub async fn a_hundred_callers_share_one_connection(redis: Redis) {
        let callers: Vec<_> = (0..100)
            .map(|caller| {
                let redis = redis.clone();
                tokio::spawn(async move {
                    for _ in 0..20 {
                        let key = format!("test:shared:{}", caller % 7);
                        redis.run::<i64>(&ADD, &[&key], 1).await.unwrap();
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        let mut sum = 0;
        for key in 0..7 {
            sum += redis.run::<i64>(&ADD, &[&format!("test:shared:{key}")], 0).await.unwrap();
        }
        assert_eq!(sum, 2000);
    }

    pub async fn a_refusal_is_told_and_does_not_count_as_a_failure(redis: Redis) {
        let broken = Script::new("return redis.call('INCRBY', KEYS[1], 'many')");
        for _ in 0..2 * RedisOptions::default().failures_max {
            let error =
                redis.run::<i64>(&broken, &["test:refused"], NO_ARGUMENTS).await.unwrap_err();
            let RedisError::Rejected(text) = error else { panic!("{error:?}") };
            assert!(text.contains("not an integer"), "{text}");
        }
        redis.run::<i64>(&ADD, &["test:refused"], 1).await.unwrap();
        let odd = redis.run::<Vec<String>>(&ADD, &["test:refused"], 1).await.unwrap_err();
        assert!(matches!(odd, RedisError::Rejected(_)), "{odd:?}: not what the caller can read");
    }

    pub async fn it_answers_a_ping(redis: Redis) {
        redis.ping().await.unwrap();
    }
}

/// F-5: it would work on a single server, so it is refused there too.
#[tokio::test]
async fn f_5_keys_of_different_slots_are_a_bug_on_a_single_server_too() {
    let Some(redis) = single().await else { return };
    let keys = ["seat:1", "seat:1:token_seq"];
    let running = tokio::spawn(async move { redis.run::<i64>(&ADD, &keys, 1).await });
    assert!(running.await.unwrap_err().is_panic());
}

#[tokio::test]
async fn an_address_without_meaning_is_refused_without_telling_it() {
    for url in ["redis://:hunter2@", "http://:hunter2@host", "hunter2", "rediss://:hunter2@"] {
        let single = RedisTopology::Single(Secret::new(url));
        let cluster = RedisTopology::Cluster(vec![Secret::new(url)]);
        for place in [single, cluster] {
            let Err(RedisError::Rejected(text)) = Redis::connect(&place).await else {
                panic!("{url} was accepted");
            };
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
