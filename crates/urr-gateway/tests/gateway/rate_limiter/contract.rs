//! What holds in every form.

macro_rules! on_all_forms {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::cases::$case(crate::rate_limiter::memory()).await;
            })*
        }

        mod redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(limiter) = crate::rate_limiter::single().await {
                    super::cases::$case(limiter.clone()).await;
                    assert_eq!(limiter.stats().fallback, 0, "Redis decided");
                }
            })*
        }

        mod cluster {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(limiter) = crate::rate_limiter::cluster().await {
                    super::cases::$case(limiter.clone()).await;
                    assert_eq!(limiter.stats().fallback, 0, "Redis decided");
                }
            })*
        }
    };
}

on_all_forms!(
    a_burst_is_exact_and_a_refusal_takes_nothing,
    buckets_of_any_name_are_independent,
    sixty_four_tasks_get_exactly_what_each_bucket_has,
    all_buckets_are_taken_from_or_none,
    refused_pairs_do_not_empty_the_first_bucket,
    a_quota_of_nothing_allows_nothing,
    a_rate_goes_on_after_the_burst,
);

mod cases {
    use std::collections::HashMap;
    use std::time::Duration;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use urr_gateway::{Quota, RateLimiter};
    use urr_test::eventually;

    use crate::rate_limiter::{let_through, only};

    pub async fn a_burst_is_exact_and_a_refusal_takes_nothing(limiter: RateLimiter) {
        let quota = only(5);
        for remaining in (0..5).rev() {
            let decision = limiter.check("burst", quota).await;
            assert!(decision.allowed);
            assert_eq!((decision.limit, decision.remaining), (5, remaining));
            assert_eq!(decision.retry_after, Duration::ZERO);
        }
        let minute = Duration::from_secs(60);
        let mut last = minute;
        for _ in 0..100 {
            let decision = limiter.check("burst", quota).await;
            assert!(!decision.allowed);
            assert_eq!((decision.limit, decision.remaining), (5, 0));
            assert!(decision.retry_after <= last, "refusals do not prolong the wait");
            last = decision.retry_after;
            assert_eq!(decision.reset_after, decision.retry_after + 4 * minute);
        }
        assert!(last > minute / 2);
        let stats = limiter.stats();
        assert_eq!((stats.allowed, stats.denied), (5, 100));
    }

    pub async fn buckets_of_any_name_are_independent(limiter: RateLimiter) {
        let (long, longer) = ("x".repeat(3000), "x".repeat(3001));
        let names = ["", "a", "A", "}", "{}", "a}b", "%", "%7D", "a b\r\n", "김", &long, &longer];
        for name in names {
            assert_eq!(let_through(&limiter, name, only(2), 5).await, 2, "{name}");
        }
    }

    pub async fn sixty_four_tasks_get_exactly_what_each_bucket_has(limiter: RateLimiter) {
        const BURST: u32 = 50;
        let tasks: Vec<_> = (0..64)
            .map(|seed| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    let mut random = StdRng::seed_from_u64(seed);
                    let mut counts = Vec::new();
                    for _ in 0..50 {
                        // Few names, the first more often: some buckets are emptied, some not.
                        let name = random.random_range(0..40) * random.random_range(0..40) / 20;
                        let bucket = format!("crowd {name}");
                        counts.push((name, limiter.check(&bucket, only(BURST)).await.allowed));
                    }
                    counts
                })
            })
            .collect();
        let mut buckets: HashMap<i32, (u32, u32)> = HashMap::new();
        for task in tasks {
            for (name, allowed) in task.await.unwrap() {
                let (asked, got) = buckets.entry(name).or_default();
                *asked += 1;
                *got += u32::from(allowed);
            }
        }
        for (name, (asked, got)) in &buckets {
            assert_eq!(*got, BURST.min(*asked), "bucket {name}, asked {asked} times");
        }
        assert!(
            buckets.values().any(|(asked, _)| *asked > BURST),
            "the control: some were emptied"
        );
        assert!(buckets.values().any(|(asked, _)| *asked < BURST), "and some were not");
    }

    /// Login: the address and the account.
    pub async fn all_buckets_are_taken_from_or_none(limiter: RateLimiter) {
        let (address, account) = (("pair address", only(2)), ("pair account", only(5)));
        for left in [1, 0] {
            let decision = limiter.check_all(&[address, account]).await;
            assert!(decision.allowed);
            assert_eq!((decision.limit, decision.remaining), (2, left), "the tighter one");
        }
        for order in [[address, account], [account, address]] {
            for _ in 0..20 {
                let decision = limiter.check_all(&order).await;
                assert_eq!((decision.allowed, decision.limit), (false, 2), "the address refuses");
            }
        }
        assert_eq!(let_through(&limiter, account.0, account.1, 9).await, 3, "two were taken");
        let stats = limiter.stats();
        assert_eq!((stats.allowed, stats.denied), (5, 46), "one count for all buckets together");
    }

    pub async fn refused_pairs_do_not_empty_the_first_bucket(limiter: RateLimiter) {
        let (empty, full) = (("behind empty", only(1)), ("behind full", only(10)));
        assert!(limiter.check(empty.0, empty.1).await.allowed);
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    for _ in 0..5 {
                        assert!(!limiter.check_all(&[full, empty]).await.allowed);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        // Without giving back, one of 320 would have emptied it. What is lost is the time between
        // taking and giving back, far less than the minute that one takes.
        let left = let_through(&limiter, full.0, full.1, 15).await;
        assert!((9..=10).contains(&left), "{left}");
    }

    pub async fn a_quota_of_nothing_allows_nothing(limiter: RateLimiter) {
        for quota in [Quota { per_minute: 0, burst: 5 }, Quota { per_minute: 5, burst: 0 }] {
            assert_eq!(let_through(&limiter, "nothing", quota, 5).await, 0);
            let pair = [("something", only(1)), ("nothing", quota)];
            assert!(!limiter.check_all(&pair).await.allowed);
        }
        assert!(limiter.check("something", only(1)).await.allowed);
    }

    pub async fn a_rate_goes_on_after_the_burst(limiter: RateLimiter) {
        let quota = Quota { per_minute: 6000, burst: 3 };
        let started = std::time::Instant::now();
        for _ in 0..20 {
            eventually("the next is allowed", async || {
                limiter.check("rate", quota).await.allowed.then_some(())
            })
            .await;
        }
        let interval = Duration::from_millis(10);
        assert!(started.elapsed() >= 16 * interval, "{:?} for 20", started.elapsed());
    }
}
