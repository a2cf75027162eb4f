//! Three processes on one Redis: together they let in no more than one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinSet;
use urr_kernel::{Clock, IdSource, Secret, Timestamp, Uuid};
use urr_redis::{Redis, RedisOptions, RedisTopology};
use urr_room::redis::{RedisRooms, RoomTime};
use urr_room::{AdmissionRules, RoomRequest, Rooms, UserStatus};
use urr_test::engines::block_on;
use urr_test::eventually;
use urr_test::servers::{self, Server};

use crate::fixture::ROOMY;

const REPLICAS: usize = 3;
const PEOPLE: usize = 5_000;
const THRESHOLD: u32 = 100;
/// Half of the threshold: whenever the burst begins, the first whole second is used up.
const RATE: usize = 50;
const RULES: AdmissionRules =
    AdmissionRules { threshold: THRESHOLD, admitted_per_second_max: 50, ..ROOMY };
/// Takes three seconds of the clock at least.
const GUESTS: usize = 3 * RATE;

/// One process: a connection and ids of its own.
#[derive(Clone)]
struct Replica {
    rooms: Rooms,
    event_id: Uuid,
}

impl Replica {
    async fn start_all() -> Option<Vec<Replica>> {
        if !servers::available(Server::Redis).unwrap() {
            return None;
        }
        let url = Secret::new(servers::shared_redis().unwrap().url());
        let ids = || IdSource::from_system_randomness(Clock::System);
        let event_id = ids().next_id();
        let mut replicas = Vec::new();
        for _ in 0..REPLICAS {
            let long = Duration::from_secs(20);
            let options = RedisOptions { response_timeout: long, ..RedisOptions::default() };
            let redis = Redis::connect_with(&RedisTopology::Single(url.clone()), options).await;
            let rooms = RedisRooms::new(redis.unwrap(), ids(), RoomTime::Server);
            replicas.push(Replica { rooms: Rooms::Redis(rooms), event_id });
        }
        Some(replicas)
    }

    fn request(&self, user_id: Uuid) -> RoomRequest {
        RoomRequest { event_id: self.event_id, user_id, now: Clock::System.now() }
    }

    /// When someone was let in who is in.
    async fn admitted_at(&self, user_id: Uuid) -> Timestamp {
        let snapshot = self.rooms.poll(self.request(user_id), &RULES).await.unwrap();
        match snapshot.status {
            UserStatus::Active(slot) => slot.admitted_at,
            other => panic!("{user_id} should be in: {other:?}"),
        }
    }

    async fn active(&self) -> u32 {
        self.rooms.crowd(self.event_id, Clock::System.now()).await.unwrap().active
    }
}

/// Runs on every replica until told to stop.
fn on_each<F: Future<Output = ()> + Send + 'static>(
    replicas: &[Replica],
    is_over: &Arc<AtomicBool>,
    turn: impl Fn(Replica) -> F + Clone + Send + Sync + 'static,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for replica in replicas {
        let (replica, is_over, turn) = (replica.clone(), Arc::clone(is_over), turn.clone());
        tasks.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                turn(replica.clone()).await;
                tokio::task::yield_now().await;
            }
        });
    }
    tasks
}

#[test]
fn r_1_r_8_three_replicas_together_keep_the_threshold_and_the_rate() {
    block_on(async {
        let Some(replicas) = Replica::start_all().await else { return };
        let is_over = Arc::new(AtomicBool::new(false));
        let (observe, mut observed) = mpsc::unbounded_channel();
        let observers = on_each(&replicas, &is_over, move |replica| {
            let observe = observe.clone();
            async move { observe.send(replica.active().await).unwrap() }
        });
        let (tell, mut admitted) = mpsc::unbounded_channel();
        let answer = tell.clone();
        let workers = on_each(&replicas, &is_over, move |replica| {
            let tell = answer.clone();
            async move {
                let now = Clock::System.now();
                let turn = replica.rooms.admit(replica.event_id, &RULES, now).await.unwrap();
                turn.into_iter().for_each(|admitted| tell.send(admitted.user_id).unwrap());
            }
        });

        let (start, mut checks) = (Arc::new(Barrier::new(PEOPLE)), JoinSet::new());
        let ids = IdSource::from_system_randomness(Clock::System);
        for replica in replicas.iter().cycle().take(PEOPLE) {
            let (replica, start, tell) = (replica.clone(), Arc::clone(&start), tell.clone());
            let request = replica.request(ids.next_id());
            checks.spawn(async move {
                start.wait().await;
                if replica.rooms.check(request, &RULES).await.unwrap().is_just_admitted {
                    tell.send(request.user_id).unwrap();
                }
            });
        }
        checks.join_all().await;
        // Nobody has gone yet.
        eventually("it is as full as it may be", async || {
            (replicas[0].active().await == THRESHOLD).then_some(())
        })
        .await;

        let (mut guests, mut per_second) = (BTreeSet::new(), BTreeMap::<i64, usize>::new());
        while guests.len() < GUESTS {
            let user_id = admitted.recv().await.unwrap();
            assert!(guests.insert(user_id), "{user_id} was let in twice");
            let replica = &replicas[guests.len() % REPLICAS];
            let second = replica.admitted_at(user_id).await.as_second();
            *per_second.entry(second).or_default() += 1;
            assert!(replica.rooms.leave(replica.request(user_id)).await.unwrap());
        }
        is_over.store(true, Ordering::SeqCst);
        workers.join_all().await;
        observers.join_all().await;
        let mut active_max = 0;
        while let Ok(active) = observed.try_recv() {
            active_max = active_max.max(active);
        }
        assert_eq!(active_max, THRESHOLD, "no more, and the observers saw it full");
        let rate_max = per_second.values().copied().max().unwrap();
        assert_eq!(rate_max, RATE, "no more, and no less: {per_second:?}");
    });
}
