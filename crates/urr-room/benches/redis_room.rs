//! How fast the rooms in Redis are, beside `redis-benchmark` with the same scripts and as many
//! connections as we have callers, in the same run; and what a waiting person costs in memory.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::float_arithmetic, reason = "rates and ratios, not money")]
#![expect(clippy::cast_precision_loss, reason = "rates and ratios, not money")]

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use urr_kernel::{Clock, IdSource, Secret, Uuid};
use urr_redis::{Redis, RedisOptions, RedisTopology};
use urr_room::redis::{RedisRooms, RoomTime};
use urr_room::{AdmissionRules, AdmissionState, RoomRequest, UserStatus};
use urr_test::figures::{BenchFigure, RatioTarget};
use urr_test::servers::{self, Server};

const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];
const CALLERS: usize = 64;
/// Ours and the baseline take turns, so that a busy moment of the machine hits both.
const ROUNDS: u32 = 3;
const ROUND: Duration = Duration::from_secs(2);
const BASELINE_CALLS: &str = "60000";
const RATIO_MIN: f64 = 0.5;

/// Those who come wait.
const RULES: AdmissionRules = AdmissionRules {
    admission: AdmissionState::Closed,
    threshold: 1_000,
    admitted_per_second_max: 100,
    slot_ttl: Duration::from_mins(10),
    slot_max: Duration::from_mins(30),
    waiting_max: 2_000_000,
    queues_per_user_max: 3,
};

const POLL: &str = concat!(
    include_str!("../src/redis/room.lua"),
    include_str!("../src/redis/last_seen.lua"),
    include_str!("../src/redis/status.lua"),
    include_str!("../src/redis/poll.lua"),
);
const CHECK: &str = concat!(
    include_str!("../src/redis/room.lua"),
    include_str!("../src/redis/last_seen.lua"),
    include_str!("../src/redis/status.lua"),
    include_str!("../src/redis/expired_slots.lua"),
    include_str!("../src/redis/flow_counters.lua"),
    include_str!("../src/redis/check.lua"),
);

#[derive(Clone, Copy, PartialEq)]
enum Call {
    Check,
    Look,
}

struct Bench {
    rooms: RedisRooms,
    port: String,
    event_id: Uuid,
    ids: IdSource,
    users: Vec<Uuid>,
}

fn main() -> Result<()> {
    if !servers::available(Server::Redis)? {
        return Ok(());
    }
    let runtime = Runtime::new()?;
    let server = servers::RedisServer::start()?;
    let mut bench = runtime.block_on(Bench::new(server.url()))?;
    let memory_before = bench.memory_used()?;
    let mut rates = Vec::new();
    let mut passed = true;
    for size in SIZES {
        let joins = runtime.block_on(bench.fill(size));
        println!("{size:>9} wait: joined by                     {joins:>9.0} joins/s");
        for call in [Call::Check, Call::Look] {
            let (rate, ratio) = bench.compare(&runtime, call)?;
            rates.push(rate);
            passed &= ratio >= RATIO_MIN;
        }
    }
    let bytes = (bench.memory_used()? - memory_before) / SIZES[2] as f64;
    println!("bytes per waiting person: {bytes:.0}");
    for (name, small, large) in [("checks", rates[0], rates[4]), ("looks", rates[1], rates[5])] {
        println!("{name}, 1,000,000 to 1,000: {:.2}", large / small);
    }
    ensure!(passed, "a figure misses its target");
    Ok(())
}

impl Bench {
    async fn new(url: &str) -> Result<Bench> {
        let place = RedisTopology::Single(Secret::new(url));
        // A machine that is busy with both sides is slow at times.
        let options =
            RedisOptions { response_timeout: Duration::from_secs(10), ..RedisOptions::default() };
        let redis = Redis::connect_with(&place, options).await?;
        let ids = IdSource::from_system_randomness(Clock::System);
        let rooms = RedisRooms::new(redis, ids.clone(), RoomTime::Server);
        let (_, port) = url.rsplit_once(':').context("an address with a port")?;
        let event_id = ids.next_id();
        Ok(Bench { rooms, port: port.to_owned(), event_id, ids, users: Vec::new() })
    }

    /// Lets people come until so many wait. Returns how many came per second.
    async fn fill(&mut self, size: usize) -> f64 {
        let more: Arc<[Uuid]> = (self.users.len()..size).map(|_| self.ids.next_id()).collect();
        let (begun, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
        let callers = (0..CALLERS).map(|_| {
            let (rooms, event_id) = (self.rooms.clone(), self.event_id);
            let (more, next) = (Arc::clone(&more), Arc::clone(&next));
            tokio::spawn(async move {
                while let Some(user_id) = more.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let request =
                        RoomRequest { event_id, user_id: *user_id, now: Clock::System.now() };
                    let snapshot = rooms.check(request, &RULES).await.expect("Redis answers");
                    assert!(matches!(snapshot.status, UserStatus::Waiting(_)));
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("a caller does not panic");
        }
        self.users.extend(more.iter());
        more.len() as f64 / begun.elapsed().as_secs_f64()
    }

    /// Our rate, and its ratio to that of the baseline.
    fn compare(&self, runtime: &Runtime, call: Call) -> Result<(f64, f64)> {
        let (mut ours, mut baseline) = (0.0, 0.0);
        for _ in 0..ROUNDS {
            ours += runtime.block_on(self.call(call)) / f64::from(ROUNDS);
            baseline += self.redis_benchmark(call)? / f64::from(ROUNDS);
        }
        let (name, ratio) = (if call == Call::Check { "checks" } else { "looks" }, ours / baseline);
        let figure = BenchFigure {
            name: &format!("room in Redis, {name}, {} waiting", self.users.len()),
            value: ours,
            unit: "calls/s",
            baseline: "redis-benchmark",
            baseline_value: baseline,
            target: RatioTarget::AtLeast(RATIO_MIN),
        };
        figure.show();
        Ok((ours, ratio))
    }

    /// Answers per second to callers who each wait for theirs, about people from all over the line.
    async fn call(&self, call: Call) -> f64 {
        let begun = Instant::now();
        let stride = (self.users.len() / 10_000).max(1);
        let sample: Arc<[Uuid]> = self.users.iter().step_by(stride).copied().collect();
        let callers = (0..CALLERS).map(|caller| {
            let (rooms, event_id, sample) =
                (self.rooms.clone(), self.event_id, Arc::clone(&sample));
            tokio::spawn(async move {
                let mut calls = 0_u32;
                let from_here = sample.iter().cycle().skip(caller * sample.len() / CALLERS);
                for user_id in from_here {
                    if begun.elapsed() >= ROUND {
                        break;
                    }
                    let request =
                        RoomRequest { event_id, user_id: *user_id, now: Clock::System.now() };
                    let snapshot = match call {
                        Call::Check => rooms.check(request, &RULES).await,
                        Call::Look => rooms.poll(request, &RULES).await,
                    };
                    let snapshot = snapshot.expect("Redis answers");
                    assert!(matches!(snapshot.status, UserStatus::Waiting(_)));
                    calls += 1;
                }
                calls
            })
        });
        let mut calls = 0;
        for caller in callers.collect::<Vec<_>>() {
            calls += caller.await.expect("a caller does not panic");
        }
        f64::from(calls) / begun.elapsed().as_secs_f64()
    }

    /// The same script about one person in the middle of the line.
    fn redis_benchmark(&self, call: Call) -> Result<f64> {
        let script = if call == Call::Check { CHECK } else { POLL };
        let hash = self.redis_cli(&["-x", "SCRIPT", "LOAD"], script)?;
        let names = ["queue", "active", "seen", "slots", "room", "pace"];
        let keys = names.map(|name| format!("{{{}}}:{name}", self.event_id));
        // An argument of a program cannot hold a zero.
        let middle = self.users[self.users.len() / 2..]
            .iter()
            .find(|user| user.as_bytes().iter().all(|byte| *byte != 0));
        let user = middle.context("someone without a zero")?.as_bytes();
        let mut benchmark = Command::new("redis-benchmark");
        benchmark
            .args(["-p", &self.port, "-c", &CALLERS.to_string(), "-n", BASELINE_CALLS, "--csv"])
            .args(["EVALSHA", hash.trim(), "6"])
            .args(keys)
            .arg("-1")
            .arg(OsStr::from_bytes(user))
            .args(["600000000", "1800000000", "60000000"]);
        if call == Call::Check {
            benchmark.args(["1000", "100", "0", "2000000", "0123456789abcdef", "0", "0"]);
        }
        let output = benchmark.output().context("redis-benchmark")?;
        // The name, which is the command, then the calls per second and six figures more.
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let rate = printed.trim_end().rsplit(',').nth(6).context("a line of figures")?;
        rate.trim_matches('"').parse().with_context(|| format!("no rate in {printed}"))
    }

    fn memory_used(&self) -> Result<f64> {
        let info = self.redis_cli(&["INFO", "memory"], "")?;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        Ok(used.context("the memory used")?.trim().parse()?)
    }

    fn redis_cli(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut client = Command::new("redis-cli")
            .args(["-p", &self.port])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("redis-cli")?;
        client.stdin.take().context("its input")?.write_all(input.as_bytes())?;
        let output = client.wait_with_output()?;
        Ok(String::from_utf8(output.stdout)?)
    }
}
