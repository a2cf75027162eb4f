//! Locks in each form, with a way to let time pass.

use std::time::Duration;

use urr_kernel::{Clock, IdSource, Secret, Uuid};
use urr_layout::SeatId;
use urr_redis::{NO_ARGUMENTS, Redis, RedisOptions, RedisTopology, Script};
use urr_test::servers::{self, Server};
use urr_ticket::{LockResult, SeatLocks};

pub const SECOND: Duration = Duration::from_secs(1);
pub const DECIDING_TTL: Duration = Duration::from_secs(10);
pub const HOLD_TTL: Duration = Duration::from_secs(420);
/// Time between a case's calls and its looks, on a machine that does other things too.
pub const SLACK: Duration = Duration::from_secs(5);

/// Locks of an event of its own.
#[derive(Clone)]
pub struct World {
    pub locks: SeatLocks,
    pub event_id: Uuid,
    ids: IdSource,
    form: Form,
}

#[derive(Clone)]
enum Form {
    Memory(Clock),
    Redis(Redis),
}

/// Someone who wants seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fan(pub Uuid);

impl World {
    pub fn memory() -> World {
        let clock = Clock::manual("2026-12-01T12:00:00Z".parse().unwrap());
        World::new(SeatLocks::memory(clock.clone()), Form::Memory(clock))
    }

    /// None where Redis cannot be started; with `CI=true` that is a failure.
    pub async fn single() -> Option<World> {
        if !servers::available(Server::Redis).unwrap() {
            return None;
        }
        let url = servers::shared_redis().unwrap().url();
        Some(World::redis(connect(url, patient()).await))
    }

    pub async fn cluster() -> Option<World> {
        if !servers::available(Server::RedisCluster).unwrap() {
            return None;
        }
        let nodes = servers::shared_redis_cluster().unwrap().urls().iter().map(Secret::new);
        let place = RedisTopology::Cluster(nodes.collect());
        Some(World::redis(Redis::connect_with(&place, patient()).await.unwrap()))
    }

    pub fn redis(redis: Redis) -> World {
        World::new(SeatLocks::redis(redis.clone()), Form::Redis(redis))
    }

    fn new(locks: SeatLocks, form: Form) -> World {
        let ids = IdSource::from_system_randomness(Clock::System);
        World { locks, event_id: ids.next_id(), ids, form }
    }

    /// The same locks, another event.
    pub fn another_event(&self) -> World {
        World { event_id: self.id(), ..self.clone() }
    }

    pub fn fan(&self) -> Fan {
        Fan(self.id())
    }

    pub fn id(&self) -> Uuid {
        self.ids.next_id()
    }

    /// Takes seats with a fresh attempt.
    pub async fn take(&self, fan: Fan, seat_ids: &[SeatId]) -> (LockResult, Uuid) {
        let attempt = self.id();
        (self.locks.acquire(self.event_id, seat_ids, fan.0, attempt).await, attempt)
    }

    pub async fn keep(&self, fan: Fan, seat_ids: &[SeatId], token: i64) {
        self.locks.confirm(self.event_id, seat_ids, fan.0, token, HOLD_TTL).await;
    }

    pub async fn give_up(&self, seat_ids: &[SeatId], attempt: Uuid) {
        self.locks.abandon(self.event_id, seat_ids, attempt).await;
    }

    pub async fn release(&self, seat_ids: &[SeatId], token: i64) {
        self.locks.release(self.event_id, seat_ids, token).await;
    }

    /// What a stranger learns who wants this seat; he takes nothing.
    pub async fn look(&self, seat_id: SeatId) -> LockResult {
        let (taken, attempt) = self.take(self.fan(), &[seat_id]).await;
        self.give_up(&[seat_id], attempt).await;
        taken
    }

    /// Lets time pass for the first seats of the event: by the clock in memory, and in Redis by
    /// making the remaining life of the keys shorter.
    pub async fn pass(&self, time: Duration) {
        match &self.form {
            Form::Memory(clock) => clock.advance(time),
            Form::Redis(redis) => {
                let age = Script::new(
                    "for _, key in ipairs(KEYS) do \
                         local left = redis.call('PTTL', key) - ARGV[1] \
                         if left > 0 then redis.call('PEXPIRE', key, left) \
                         else redis.call('DEL', key) end \
                     end \
                     return 1",
                );
                let keys: Vec<String> = (0..10).map(|seat_id| self.key(seat_id)).collect();
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                let time_ms = u64::try_from(time.as_millis()).unwrap();
                redis.run::<i64>(&age, &keys, time_ms).await.unwrap();
            }
        }
    }

    /// The remaining life of a seat's key in Redis; none in memory.
    pub async fn life(&self, seat_id: SeatId) -> Option<Duration> {
        let Form::Redis(redis) = &self.form else { return None };
        let look = Script::new("return redis.call('PTTL', KEYS[1])");
        let left_ms: i64 = redis.run(&look, &[&self.key(seat_id)], NO_ARGUMENTS).await.unwrap();
        Some(Duration::from_millis(u64::try_from(left_ms).expect("it is there, with a life")))
    }

    fn key(&self, seat_id: SeatId) -> String {
        format!("seat:{{{}}}:{seat_id}", self.event_id)
    }
}

pub async fn connect(url: &str, options: RedisOptions) -> Redis {
    Redis::connect_with(&RedisTopology::Single(Secret::new(url)), options).await.unwrap()
}

/// For a machine that does many other things: these cases are not about speed.
pub fn patient() -> RedisOptions {
    let long = Duration::from_secs(20);
    RedisOptions { connection_timeout: long, response_timeout: long, ..RedisOptions::default() }
}

pub fn deciding(seat_id: SeatId) -> LockResult {
    LockResult::Refused { seat_id, token: None }
}

pub fn kept(seat_id: SeatId, token: i64) -> LockResult {
    LockResult::Refused { seat_id, token: Some(token) }
}
