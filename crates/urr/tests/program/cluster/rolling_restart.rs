//! Every process of every role is restarted, one after the other, while people wait and buy: nobody
//! notices.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::TestCluster;
use super::shop::{ClusterShop, ShopAnswer, ShopFan, place_number, reservation_id};
use crate::process::eventually;

const WAITING: usize = 20;
const BUYERS: usize = 2;
const READERS: usize = 2;
/// Between two questions of somebody who waits: those who ask more often are slowed down.
const POLL_PAUSE: Duration = Duration::from_millis(500);
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
    failures: Mutex<Vec<String>>,
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

    fn fail(&self, failure: String) {
        self.failures.lock().expect("nobody panics with it").push(failure);
    }

    fn failures(&self) -> Vec<String> {
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
    fn end(self, runtime: &Runtime) -> Result<(BTreeMap<&'static str, u32>, Vec<String>)> {
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
    let (asked, mut failures) = crowd.end(runtime)?;
    if was_redis_slow(cluster)? {
        failures.retain(|failure| !failure.contains(": 503 QUEUE_UNAVAILABLE instead of "));
    }
    ensure!(failures.is_empty(), "{} of {asked:?}: {failures:#?}", failures.len());
    let least = asked.values().min().copied().unwrap_or_default();
    ensure!(asked.len() == 7 + PAGES.len() && least >= 10, "nobody could have noticed: {asked:?}");
    check_control(cluster, runtime, shop, &waiting)
}

/// Whether Redis, which nobody restarts, did not answer in time. Then the machine has too much to do,
/// and the waiting rooms pause for a second.
fn was_redis_slow(cluster: &TestCluster) -> Result<bool> {
    let log = |number| cluster.folder().join(format!("members/queue-{number}/log"));
    let logs = [fs::read_to_string(log(1))?, fs::read_to_string(log(2))?];
    Ok(logs.iter().any(|log| log.contains("Redis fails; calls are refused")))
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
    ensure!(failures.iter().all(|failure| failure.contains("no answer")), "{failures:#?}");
    cluster.await_ready(Duration::from_secs(60))
}
