//! How fast limits are: in memory, and on Redis beside the same script called without the limiter,
//! in the same run.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use redis::IntoConnectionInfo;
use tokio::runtime::Runtime;
use urr_gateway::{Quota, RateLimiter};
use urr_kernel::{Clock, Secret};
use urr_redis::{Redis, RedisTopology};
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_test::servers::{self, Server};

const MEMORY_CHECKS: usize = 2_000_000;
const MEMORY_RATE_MIN: f64 = 1_000_000.0;
const BUCKETS: usize = 100_000;
const CALLERS: usize = 64;
/// Ours and the baseline take turns, so that a busy moment of the machine hits both.
const ROUNDS: u32 = 3;
const ROUND: Duration = Duration::from_secs(2);
const REDIS_RATIO_MIN: f64 = 0.8;

const QUOTA: Quota = Quota { per_minute: 3000, burst: 50 };
/// A bucket of this one stays in use for a minute.
const SLOW: Quota = Quota { per_minute: 1, burst: 5 };

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    let mut passed = bench_memory(&runtime);
    if servers::available(Server::Redis)? {
        passed &= runtime.block_on(bench_redis())?;
    }
    ensure!(passed, "a figure is below its target");
    Ok(())
}

fn bench_memory(runtime: &Runtime) -> bool {
    let names: Arc<[String]> = (0..BUCKETS).map(|user| format!("general:user:{user}")).collect();
    let limiter = RateLimiter::local(Clock::System);
    let mut passed = true;
    let mut report = |name: &str, rate: f64| {
        let figure = BenchFigure {
            name: &format!("rate limit, {name}"),
            value: rate,
            unit: "checks/s",
            baseline: "needed",
            baseline_value: MEMORY_RATE_MIN,
            target: RatioTarget::AtLeast(1.0),
        };
        passed &= figure.show();
    };
    let one = |limiter: &RateLimiter, names: &Arc<[String]>, quota: Quota| {
        runtime.block_on(run(limiter.clone(), Arc::clone(names), quota))
    };
    report("memory, 1 thread, 1 bucket", one(&limiter, &names[..1].into(), QUOTA));
    report("memory, 1 thread, 100,000 buckets", one(&limiter, &names, QUOTA));
    let both = [limiter.clone(), limiter].map(|limiter| {
        let names = Arc::clone(&names);
        runtime.spawn(run(limiter, names, QUOTA))
    });
    let rates = both.map(|task| runtime.block_on(task).expect("it does not panic"));
    report("memory, 2 threads, 100,000 buckets", rates.iter().sum());
    // An attack with new names: memory fills, then new names share buckets.
    let new_names: Arc<[String]> = (0..MEMORY_CHECKS).map(|name| format!("ip:{name}")).collect();
    let limiter = RateLimiter::local(Clock::System);
    report("memory, 1 thread, 2,000,000 new names", one(&limiter, &new_names, SLOW));
    println!("{:?}\n", limiter.stats());
    passed
}

/// Checks per second of one task.
async fn run(limiter: RateLimiter, names: Arc<[String]>, quota: Quota) -> f64 {
    let begun = Instant::now();
    for name in names.iter().cycle().take(MEMORY_CHECKS) {
        black_box(limiter.check(name, quota).await);
    }
    MEMORY_CHECKS as f64 / begun.elapsed().as_secs_f64()
}

async fn bench_redis() -> Result<bool> {
    let url = servers::shared_redis()?.url();
    let redis = Redis::connect(&RedisTopology::Single(Secret::new(url))).await?;
    let limiter = RateLimiter::shared(redis, Clock::System);
    // As redis-benchmark and we do: each call leaves at once.
    let at_once = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let client = redis::Client::open(url.into_connection_info()?.set_tcp_settings(at_once))?;
    let connection = client.get_multiplexed_async_connection().await?;
    let script = Arc::new(redis::Script::new(include_str!("../src/rate_limit/take.lua")));
    script.load_async(&mut connection.clone()).await?;

    let shared = limiter.clone();
    let check = move |bucket: String| {
        let limiter = shared.clone();
        async move {
            black_box(limiter.check(&bucket, QUOTA).await);
        }
    };
    let evalsha = move |bucket: String| {
        let (mut connection, script) = (connection.clone(), Arc::clone(&script));
        async move {
            let mut command = redis::cmd("EVALSHA");
            command.arg(script.get_hash()).arg(1).arg(format!("rate:{{{bucket}}}"));
            command.arg(20_000).arg(1_000_000);
            let answer: redis::RedisResult<(i64, i64, i64)> =
                command.query_async(&mut connection).await;
            black_box(answer.expect("Redis answers"));
        }
    };
    let (mut ours, mut bare) = (0, 0);
    for _ in 0..ROUNDS {
        ours += count_calls(check.clone()).await;
        bare += count_calls(evalsha.clone()).await;
    }
    let stats = limiter.stats();
    ensure!(stats.fallback == 0, "Redis did not decide all: {stats:?}");
    let seconds = (ROUND * ROUNDS).as_secs_f64();
    let figure = BenchFigure {
        name: "rate limit, Redis, 64 callers",
        value: ours as f64 / seconds,
        unit: "checks/s",
        baseline: "bare EVALSHA, same script",
        baseline_value: bare as f64 / seconds,
        target: RatioTarget::AtLeast(REDIS_RATIO_MIN),
    };
    Ok(figure.show())
}

/// How often callers, each waiting for its answer, get one in a round.
async fn count_calls<F: Future<Output = ()> + Send + 'static>(
    call: impl Fn(String) -> F + Clone + Send + 'static,
) -> usize {
    let started = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let call = call.clone();
            tokio::spawn(async move {
                let mut calls = 0;
                while started.elapsed() < ROUND {
                    call(format!("bench:{}", (calls * CALLERS + caller) % 10_000)).await;
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.expect("a caller does not panic");
    }
    calls
}
