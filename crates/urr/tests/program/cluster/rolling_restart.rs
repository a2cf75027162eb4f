//! Every process of every role is restarted, one after the other, while people wait and buy: nobody
//! notices.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use urr_kernel::{Clock, Timestamp};

use super::TestCluster;
use super::failures::tell;
use super::shop::{ClusterShop, ShopAnswer, ShopFan, place_number, reservation_id};
use crate::process::eventually;

const WAITING: usize = 20;
const BUYERS: usize = 2;
const READERS: usize = 2;
/// Between two questions of somebody who waits: those who ask more often are slowed down.
const POLL_PAUSE: Duration = Duration::from_millis(500);
/// `redis.timeout_ms` of the cluster.
const REDIS_TIMEOUT: Duration = Duration::from_secs(1);
/// So long the waiting rooms pause before they try Redis again.
const OPEN_FOR: Duration = Duration::from_secs(1);
/// From the refusal to the fan.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// Consumers before publishers, as an upgrade does it.
const ROLES: [&str; 9] =
    ["stats", "mail", "community", "queue", "payment", "ticket", "catalog", "auth", "gateway"];
/// What readers ask for: something of every role that answers the public.
const PAGES: [&str; 6] = [
    "/api/artists",
    "/api/events?status=on_sale&limit=5",
    "/api/auth/me",
    "/api/notifications",
    "/api/payments/user/me",
    "/api/reservations/my",
];

/// People who use the shop until they are told to stop.
struct Crowd {
    tasks: JoinSet<()>,
    seen: Arc<CrowdRecord>,
}

#[derive(Default)]
struct CrowdRecord {
    is_over: AtomicBool,
    /// How often something was asked for.
    asked: Mutex<BTreeMap<&'static str, u32>>,
    failures: Mutex<Vec<CrowdFailure>>,
}

#[derive(Clone, Debug)]
struct CrowdFailure {
    at: Timestamp,
    what: String,
}

impl CrowdRecord {
    /// Counts an answer, and whether it is what it should be.
    fn judge(&self, what: &'static str, answer: &ShopAnswer, expected: u16) -> Option<Value> {
        *self.asked.lock().expect("nobody panics with it").entry(what).or_default() += 1;
        if answer.status == expected {
            return Some(answer.body.clone());
        }
        self.fail(format!("{what}: {} instead of {expected}", answer.text()));
        None
    }

    fn fail(&self, what: String) {
        let failure = CrowdFailure { at: Clock::System.now(), what };
        self.failures.lock().expect("nobody panics with it").push(failure);
    }

    fn failures(&self) -> Vec<CrowdFailure> {
        self.failures.lock().expect("nobody panics with it").clone()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Crowd {
    fn start(runtime: &Runtime, shop: &Arc<ClusterShop>, waiting: &[(ShopFan, i64)]) -> Crowd {
        let seen = Arc::new(CrowdRecord::default());
        let mut tasks = JoinSet::new();
        let _context = runtime.enter();
        tasks.spawn(wait(Arc::clone(shop), Arc::clone(&seen), waiting.to_vec()));
        for _ in 0..BUYERS {
            tasks.spawn(buy(Arc::clone(shop), Arc::clone(&seen)));
        }
        for _ in 0..READERS {
            tasks.spawn(read(Arc::clone(shop), Arc::clone(&seen)));
        }
        Crowd { tasks, seen }
    }

    /// Everybody finishes what they are at.
    fn end(self, runtime: &Runtime) -> Result<(BTreeMap<&'static str, u32>, Vec<CrowdFailure>)> {
        self.seen.is_over.store(true, Ordering::Relaxed);
        let mut tasks = self.tasks;
        runtime.block_on(async {
            while let Some(ended) = tasks.join_next().await {
                ended.context("somebody in the crowd has a bug")?;
            }
            anyhow::Ok(())
        })?;
        let asked = self.seen.asked.lock().expect("nobody panics with it").clone();
        Ok((asked, self.seen.failures()))
    }
}

/// Those who wait ask for their places, which stay.
async fn wait(shop: Arc<ClusterShop>, seen: Arc<CrowdRecord>, waiting: Vec<(ShopFan, i64)>) {
    while !seen.is_over() {
        for (fan, number) in &waiting {
            let told = shop.place(fan).await;
            let Some(body) = seen.judge("place", &told, 200) else { continue };
            if place_number(&body).ok() != Some(*number) {
                seen.fail(format!("number {number} in the line became {body}"));
            }
        }
        tokio::time::sleep(POLL_PAUSE).await;
    }
}

async fn buy(shop: Arc<ClusterShop>, seen: Arc<CrowdRecord>) {
    while !seen.is_over() {
        buy_one(&shop, &seen).await;
    }
}

/// None: a step failed, which is recorded.
async fn buy_one(shop: &ClusterShop, seen: &CrowdRecord) -> Option<()> {
    let fan = shop.fan();
    let entry_token = loop {
        let told = seen.judge("join", &shop.join(&fan, shop.event_id).await, 200)?;
        if let Some(token) = told["entryToken"].as_str() {
            break token.to_owned();
        }
    };
    let held = seen.judge("hold", &shop.hold(&fan, &entry_token).await, 201)?;
    let id = reservation_id(&held);
    seen.judge("pay", &shop.pay(&fan, &id, "approve").await, 200)?;
    let path = format!("/api/reservations/{id}");
    let mine = seen.judge("ticket", &shop.get(&fan, &path).await, 200)?;
    if mine["reservation"]["status"] != "confirmed" {
        seen.fail(format!("paid, and not confirmed: {mine}"));
    }
    Some(())
}

async fn read(shop: Arc<ClusterShop>, seen: Arc<CrowdRecord>) {
    while !seen.is_over() {
        // An account has so many sessions, and each reader logs in again and again.
        let session = shop.log_in().await;
        let Some(session) = seen.judge("login", &session, 200) else { continue };
        let account = shop.fan_with_session(&session);
        for path in PAGES {
            seen.judge(path, &shop.get(&account, path).await, 200);
        }
        seen.judge("page", &shop.page().await, 200);
    }
}

/// Restarts everything under load, then proves that the load would have seen a failure.
pub fn check(cluster: &TestCluster, runtime: &Runtime, shop: &Arc<ClusterShop>) -> Result<()> {
    let waiting = runtime.block_on(async {
        let mut waiting = Vec::new();
        for _ in 0..WAITING {
            let fan = shop.fan();
            let told = shop.join(&fan, shop.later_event_id).await.is(200)?;
            let number = place_number(&told)?;
            waiting.push((fan, number));
        }
        anyhow::Ok(waiting)
    })?;
    let crowd = Crowd::start(runtime, shop, &waiting);
    for role in ROLES {
        for number in [1, 2] {
            cluster.run(&["restart", &format!("{role}-{number}")])?.succeeded()?;
        }
    }
    let (asked, failures) = crowd.end(runtime)?;
    let (excused, failures) = excuse(failures, &slow_periods(cluster)?);
    if !excused.is_empty() {
        tell(&format!("excused, because Redis was slow just then: {excused:#?}"));
    }
    ensure!(failures.is_empty(), "{} of {asked:?}: {failures:#?}", failures.len());
    let least = asked.values().min().copied().unwrap_or_default();
    ensure!(asked.len() == 7 + PAGES.len() && least >= 10, "nobody could have noticed: {asked:?}");
    check_control(cluster, runtime, shop, &waiting)
}

/// When a process of the queue refused calls because Redis, which nobody restarts, did not answer
/// in time: the machine has too much to do.
type SlowPeriod = RangeInclusive<Timestamp>;

fn slow_periods(cluster: &TestCluster) -> Result<Vec<SlowPeriod>> {
    let mut periods = Vec::new();
    for number in [1, 2] {
        let log = cluster.folder().join(format!("members/queue-{number}/log"));
        periods.extend(slow_periods_of(&fs::read_to_string(log)?));
    }
    Ok(periods)
}

fn slow_periods_of(log: &str) -> Vec<SlowPeriod> {
    let timed = |line| Some((str::split_whitespace(line).next()?.parse::<Timestamp>().ok()?, line));
    let lines: Vec<(Timestamp, &str)> = log.lines().filter_map(timed).collect();
    let refuses = |(_, line): &(Timestamp, &str)| line.contains("Redis fails; calls are refused");
    let answers = |(_, line): &&(Timestamp, &str)| line.contains("Redis answers again");
    let begins = (0..lines.len()).filter(|number| refuses(&lines[*number]));
    let period = |number: usize| {
        let from = lines[number].0;
        let until = lines[number..].iter().find(answers).map_or(from + OPEN_FOR, |(at, _)| *at);
        // The calls that made it refuse had waited for Redis.
        from - REDIS_TIMEOUT..=until + ANSWER_TIME
    };
    begins.map(period).collect()
}

/// Those that only a slow Redis can have caused, and the others.
fn excuse(
    failures: Vec<CrowdFailure>,
    periods: &[SlowPeriod],
) -> (Vec<CrowdFailure>, Vec<CrowdFailure>) {
    failures.into_iter().partition(|failure| {
        let is_then = periods.iter().any(|period| period.contains(&failure.at));
        is_then && failure.what.contains(": 503 QUEUE_UNAVAILABLE instead of ")
    })
}

#[test]
fn only_what_fails_while_redis_is_slow_is_excused() -> Result<()> {
    let log = "2026-01-01T00:00:10.5Z  WARN Redis fails; calls are refused until it answers again\n\
               2026-01-01T00:00:12.5Z  INFO Redis answers again\n";
    let failures = [
        ("08", "join: 503 QUEUE_UNAVAILABLE instead of 200"),
        ("11", "join: 503 QUEUE_UNAVAILABLE instead of 200"),
        ("11", "join: 503 SERVICE_UNAVAILABLE instead of 200"),
        ("14", "join: 503 QUEUE_UNAVAILABLE instead of 200"),
    ];
    let failure = |(second, what): (&str, &str)| {
        let at = format!("2026-01-01T00:00:{second}Z").parse()?;
        anyhow::Ok(CrowdFailure { at, what: what.to_owned() })
    };
    let failures: Vec<CrowdFailure> = failures.into_iter().map(failure).collect::<Result<_>>()?;
    let (excused, others) = excuse(failures, &slow_periods_of(log));
    assert_eq!((excused.len(), others.len()), (1, 3), "{excused:?}");
    Ok(())
}

/// The control: a process that dies with requests in it is noticed.
fn check_control(
    cluster: &TestCluster,
    runtime: &Runtime,
    shop: &Arc<ClusterShop>,
    waiting: &[(ShopFan, i64)],
) -> Result<()> {
    let crowd = Crowd::start(runtime, shop, waiting);
    cluster.run(&["pause", "gateway-1"])?.succeeded()?;
    // By then requests of the crowd wait in it.
    eventually("the balancer passes it over", || {
        let status = cluster.members()?;
        Ok(status.iter().any(|it| it["name"] == "gateway-1" && it["isReady"] == false))
    })?;
    cluster.run(&["kill", "gateway-1"])?.succeeded()?;
    let seen = Arc::clone(&crowd.seen);
    eventually("somebody notices", || Ok(!seen.failures().is_empty()))?;
    cluster.run(&["start", "gateway-1"])?.succeeded()?;
    let (_, failures) = crowd.end(runtime)?;
    let is_of_gateway = |failure: &CrowdFailure| failure.what.contains("no answer");
    ensure!(failures.iter().all(is_of_gateway), "{failures:#?}");
    cluster.await_ready(Duration::from_secs(60))
}
