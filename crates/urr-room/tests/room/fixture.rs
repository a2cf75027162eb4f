//! A waiting room of its own for each case, in each form, with a clock that stands still.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use urr_kernel::{Clock, IdSource, Secret, Timestamp, Uuid};
use urr_redis::{Redis, RedisOptions, RedisTopology};
use urr_room::JOURNAL;
use urr_room::memory::MemoryRooms;
use urr_room::redis::{RedisRooms, RoomTime};
use urr_room::relocation::StoredRooms;
use urr_room::slot_log::{audit_journal, audit_redis};
use urr_room::{
    AdmissionRules, AdmissionState, Crowd, LinePosition, RoomError, RoomRequest, Rooms, Slot,
    StatusSnapshot, UserLocation, UserStatus,
};
use urr_storage::{RowDifference, StorageError};
use urr_test::engines::{self, Database, Engine};
use urr_test::servers::{self, Server};

pub const MILLISECOND: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const SLOT_TTL: Duration = Duration::from_secs(600);
pub const SLOT_MAX: Duration = Duration::from_secs(1_800);

/// Whom a turn lets in that lets nobody in.
pub const NOBODY: [Uuid; 0] = [];

/// Everything a case does not speak of is out of its way.
pub const ROOMY: AdmissionRules = AdmissionRules {
    admission: AdmissionState::Open,
    threshold: 1_000_000,
    admitted_per_second_max: 1_000_000,
    slot_ttl: SLOT_TTL,
    slot_max: SLOT_MAX,
    waiting_max: 1_000_000,
    queues_per_user_max: 1_000,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Memory,
    Redis,
    Cluster,
}

/// The room of an event of its own, and the rules of the moment. Clones share the room and the
/// clock.
#[derive(Clone)]
pub struct World {
    pub rooms: Rooms,
    pub event_id: Uuid,
    pub rules: AdmissionRules,
    pub clock: Clock,
    pub ids: IdSource,
    /// Of the rooms in memory; removed when dropped.
    journal: Option<Arc<Database>>,
    redis: Option<Redis>,
}

impl World {
    /// `None` where Redis cannot be started; with `CI=true` that is a failure.
    pub async fn open(form: Form) -> Option<World> {
        let clock = Clock::manual("2026-12-01T12:00:00Z".parse().unwrap());
        // Not seeded: the servers are shared by all cases.
        let ids = IdSource::from_system_randomness(Clock::System);
        let (rooms, journal, redis) = match form {
            Form::Memory => {
                let database = Database::open(Engine::Sqlite, &JOURNAL, clock.now())?;
                let opened = MemoryRooms::open(database.db.clone(), ids.clone(), clock.now()).await;
                let (rooms, _) = opened.unwrap();
                (Rooms::Memory(rooms), Some(Arc::new(database)), None)
            }
            Form::Redis | Form::Cluster => {
                let redis = Redis::connect_with(&place(form)?, patient()).await.unwrap();
                let rooms = RedisRooms::new(redis.clone(), ids.clone(), RoomTime::Caller);
                (Rooms::Redis(rooms), None, Some(redis))
            }
        };
        let event_id = ids.next_id();
        Some(World { rooms, event_id, rules: ROOMY, clock, ids, journal, redis })
    }

    /// What the journal holds. Only of rooms in memory.
    pub async fn stored_rooms(&self) -> StoredRooms {
        let journal = self.journal.as_ref().expect("there is a journal");
        let read: Result<StoredRooms, StorageError> = journal.db.read(StoredRooms::read).await;
        read.unwrap()
    }

    /// What the log of slots proves not to be right.
    pub async fn audit(&self) -> Vec<RowDifference> {
        let audit = match (&self.journal, &self.redis) {
            (Some(journal), _) => audit_journal(&journal.db, Some(self.event_id)).await.unwrap(),
            (_, Some(redis)) => audit_redis(redis, &[self.event_id]).await.unwrap(),
            (None, None) => panic!("a world has one of them"),
        };
        audit.differences
    }

    /// The same rooms, rules and clock, another event.
    pub fn another_event(&self) -> World {
        self.of_event(self.ids.next_id())
    }

    pub fn of_event(&self, event_id: Uuid) -> World {
        World { event_id, ..self.clone() }
    }

    /// The same event, with rules that may become others.
    pub fn with(&self, change: impl FnOnce(&mut AdmissionRules)) -> World {
        let mut world = self.clone();
        change(&mut world.rules);
        world
    }

    pub fn user(&self) -> Uuid {
        self.ids.next_id()
    }

    pub fn users(&self, count: usize) -> Vec<Uuid> {
        (0..count).map(|_| self.user()).collect()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Time passes while the room is swept as ever; nobody is unseen for long enough to be dropped.
    pub async fn pass_swept(&self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            let left = Duration::try_from(end.duration_since(self.now())).unwrap();
            self.pass(left.min(MINUTE));
            assert_eq!(self.sweep(self.now() - 1_440 * MINUTE, 100).await, 0);
        }
    }

    pub fn request(&self, user_id: Uuid) -> RoomRequest {
        RoomRequest { event_id: self.event_id, user_id, now: self.now() }
    }

    pub async fn check(&self, user_id: Uuid) -> StatusSnapshot {
        self.try_check(user_id).await.unwrap()
    }

    pub async fn try_check(&self, user_id: Uuid) -> Result<StatusSnapshot, RoomError> {
        self.rooms.check(self.request(user_id), &self.rules).await
    }

    /// A check by someone who is let in.
    pub async fn enter(&self, user_id: Uuid) -> Slot {
        slot(self.check(user_id).await)
    }

    /// A check by someone who waits.
    pub async fn line_up(&self, user_id: Uuid) -> LinePosition {
        waiting(self.check(user_id).await)
    }

    /// This many people, one after the other.
    pub async fn line(&self, count: usize) -> Vec<Uuid> {
        let users = self.users(count);
        for user in &users {
            self.line_up(*user).await;
        }
        users
    }

    /// This many people at the same time, in the order of their positions.
    pub async fn throng(&self, count: usize) -> Vec<Uuid> {
        let arrivals = self.users(count).into_iter().map(|user| async move {
            let place = self.line_up(user).await;
            (place.number, user)
        });
        let arrivals = stream::iter(arrivals).buffer_unordered(64);
        let mut line: Vec<(i64, Uuid)> = arrivals.collect().await;
        line.sort_unstable();
        line.into_iter().map(|(_, user)| user).collect()
    }

    pub async fn poll(&self, user_id: Uuid) -> StatusSnapshot {
        self.rooms.poll(self.request(user_id), &self.rules).await.unwrap()
    }

    pub async fn locate(&self, users: &[Uuid]) -> Vec<UserLocation> {
        self.rooms.locate(self.event_id, users, self.now()).await.unwrap()
    }

    pub async fn status(&self, user_id: Uuid) -> UserStatus {
        self.poll(user_id).await.status
    }

    /// Of someone who waits.
    pub async fn position(&self, user_id: Uuid) -> u32 {
        waiting(self.poll(user_id).await).position
    }

    pub async fn positions(&self, users: &[Uuid]) -> Vec<u32> {
        let mut positions = Vec::new();
        for user in users {
            positions.push(self.position(*user).await);
        }
        positions
    }

    pub async fn leave(&self, user_id: Uuid) -> bool {
        self.rooms.leave(self.request(user_id)).await.unwrap()
    }

    pub async fn finish(&self, user_id: Uuid, bought_at: Timestamp) -> bool {
        self.rooms.finish(self.request(user_id), bought_at).await.unwrap()
    }

    pub async fn holds(&self, user_id: Uuid, slot_id: Uuid) -> bool {
        self.rooms.holds_slot(self.request(user_id), slot_id, &self.rules).await.unwrap()
    }

    /// The admitted users, in order.
    pub async fn admit(&self) -> Vec<Uuid> {
        let admitted = self.rooms.admit(self.event_id, &self.rules, self.now()).await.unwrap();
        admitted.into_iter().map(|admitted| admitted.user_id).collect()
    }

    pub async fn sweep(&self, unseen_since: Timestamp, count_max: u32) -> u32 {
        self.rooms.sweep(self.event_id, unseen_since, count_max, self.now()).await.unwrap()
    }

    pub async fn clear(&self) -> (u32, u32) {
        let cleared = self.rooms.clear(self.event_id, self.now()).await.unwrap();
        (cleared.waiting, cleared.active)
    }

    pub async fn crowd(&self) -> Crowd {
        self.rooms.crowd(self.event_id, self.now()).await.unwrap()
    }

    /// How many wait and how many are in.
    pub async fn counts(&self) -> (u32, u32) {
        let crowd = self.crowd().await;
        (crowd.waiting, crowd.active)
    }

    pub async fn entrants(&self, last_number: i64) -> Vec<Uuid> {
        self.rooms.entrants(self.event_id, last_number).await.unwrap()
    }

    pub async fn renumber(&self, drawn: &[(Uuid, i64)]) {
        self.renumber_until(i64::MAX, drawn).await;
    }

    pub async fn renumber_until(&self, last_number: i64, drawn: &[(Uuid, i64)]) {
        self.rooms.renumber(self.event_id, last_number, drawn).await.unwrap();
    }

    /// Whether the room is among those that have anybody in them.
    pub async fn is_listed(&self) -> bool {
        self.rooms.occupied_events().await.unwrap().contains(&self.event_id)
    }
}

pub fn waiting(snapshot: StatusSnapshot) -> LinePosition {
    match snapshot.status {
        UserStatus::Waiting(place) => place,
        other => panic!("they should wait: {other:?}"),
    }
}

pub fn slot(snapshot: StatusSnapshot) -> Slot {
    match snapshot.status {
        UserStatus::Active(slot) => slot,
        other => panic!("they should be in: {other:?}"),
    }
}

fn place(form: Form) -> Option<RedisTopology> {
    if form == Form::Redis {
        let is_here = servers::available(Server::Redis).unwrap();
        let url = || Secret::new(servers::shared_redis().unwrap().url());
        return is_here.then(|| RedisTopology::Single(url()));
    }
    let is_here = servers::available(Server::RedisCluster).unwrap();
    let nodes = || servers::shared_redis_cluster().unwrap().urls().iter().map(Secret::new);
    is_here.then(|| RedisTopology::Cluster(nodes().collect()))
}

/// For a machine that does many other things: these cases are not about speed.
fn patient() -> RedisOptions {
    let long = Duration::from_secs(20);
    RedisOptions { connection_timeout: long, response_timeout: long, ..RedisOptions::default() }
}

/// Runs a case on a runtime of its own, where its form can be had.
pub fn run<F: Future<Output = ()>>(form: Form, case: impl FnOnce(World) -> F) {
    engines::block_on(async {
        if let Some(world) = World::open(form).await {
            case(world).await;
        }
    });
}

/// Declares cases that run once on each form, as tests in three modules.
macro_rules! on_all_forms {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        $($(#[$meta])* async fn $name($world: crate::fixture::World) $body)*
        mod memory {
            $(#[test]
            fn $name() {
                crate::fixture::run(crate::fixture::Form::Memory, super::$name);
            })*
        }
        mod redis {
            $(#[test]
            fn $name() {
                crate::fixture::run(crate::fixture::Form::Redis, super::$name);
            })*
        }
        mod cluster {
            $(#[test]
            fn $name() {
                crate::fixture::run(crate::fixture::Form::Cluster, super::$name);
            })*
        }
    };
}
