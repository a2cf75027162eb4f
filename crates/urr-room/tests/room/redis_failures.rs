//! What only Redis does: it is down, it has lost a part, calls break between two steps; and polls
//! that write nothing.

use std::time::Duration;

use urr_kernel::{Clock, IdSource, Secret, Uuid};
use urr_redis::{NO_ARGUMENTS, Redis, RedisOptions, RedisTopology, Script};
use urr_room::redis::{RedisRooms, RoomTime};
use urr_room::{AdmissionRules, AdmissionState, RoomError, RoomRequest, Rooms, UserStatus};
use urr_test::engines::block_on;
use urr_test::eventually;
use urr_test::servers::{self, Server};

use crate::fixture::ROOMY;

pub const NO_ROOMS: [Uuid; 0] = [];
pub const SHUT: AdmissionRules =
    AdmissionRules { admission: AdmissionState::Closed, queues_per_user_max: 2, ..ROOMY };

/// A Redis of its own, by its clock.
pub struct World {
    pub server: servers::RedisServer,
    pub redis: Redis,
    pub rooms: Rooms,
    pub ids: IdSource,
}

impl World {
    async fn start() -> Option<World> {
        if !servers::available(Server::Redis).unwrap() {
            return None;
        }
        let server = servers::RedisServer::start().unwrap();
        let options = RedisOptions {
            open_for: Duration::from_millis(50),
            response_timeout: Duration::from_secs(10),
            ..RedisOptions::default()
        };
        let place = RedisTopology::Single(Secret::new(server.url()));
        let redis = Redis::connect_with(&place, options).await.unwrap();
        let ids = IdSource::from_system_randomness(Clock::System);
        let rooms = RedisRooms::new(redis.clone(), ids.clone(), RoomTime::Server);
        Some(World { server, redis, rooms: Rooms::Redis(rooms), ids })
    }

    pub fn request(&self, event_id: Uuid, user_id: Uuid) -> RoomRequest {
        RoomRequest { event_id, user_id, now: Clock::System.now() }
    }

    pub async fn try_line_up(
        &self,
        event_id: Uuid,
        user_id: Uuid,
    ) -> Result<UserStatus, RoomError> {
        self.rooms
            .check(self.request(event_id, user_id), &SHUT)
            .await
            .map(|snapshot| snapshot.status)
    }

    pub async fn waits(&self, event_id: Uuid, user_id: Uuid) -> bool {
        let snapshot = self.rooms.poll(self.request(event_id, user_id), &SHUT).await.unwrap();
        matches!(snapshot.status, UserStatus::Waiting(_))
    }

    /// Runs a line of Lua as another client would.
    pub async fn lua(&self, text: &str, key: &str) -> i64 {
        self.redis.run(&Script::new(text), &[key], NO_ARGUMENTS).await.unwrap()
    }

    /// How many bytes Redis has written down since it started.
    async fn bytes_written(&self) -> i64 {
        let text = "return tonumber(string.match(redis.call('INFO', 'persistence'), \
                    'aof_current_size:(%d+)'))";
        self.lua(text, "any").await
    }
}

pub fn run<F: Future<Output = ()>>(case: impl FnOnce(World) -> F) {
    block_on(async {
        if let Some(world) = World::start().await {
            case(world).await;
        }
    });
}

#[test]
fn without_redis_nothing_is_answered_and_afterwards_all_is_as_it_was() {
    run(async |mut world| {
        let (event_id, ann) = (world.ids.next_id(), world.ids.next_id());
        let place = world.try_line_up(event_id, ann).await.unwrap();
        world.server.kill().unwrap();
        let (request, now) = (world.request(event_id, ann), Clock::System.now());
        let down = RoomError::Unavailable;
        assert_eq!(world.rooms.check(request, &SHUT).await, Err(down.clone()));
        assert_eq!(world.rooms.poll(request, &SHUT).await, Err(down.clone()));
        assert_eq!(world.rooms.leave(request).await, Err(down.clone()));
        assert_eq!(world.rooms.finish(request, now).await, Err(down.clone()));
        assert_eq!(world.rooms.holds_slot(request, ann, &SHUT).await, Err(down.clone()));
        assert_eq!(world.rooms.admit(event_id, &ROOMY, now).await, Err(down.clone()));
        assert_eq!(world.rooms.sweep(event_id, now, 9, now).await, Err(down.clone()));
        assert_eq!(world.rooms.clear(event_id, now).await, Err(down.clone()));
        assert_eq!(world.rooms.crowd(event_id, now).await, Err(down.clone()));
        assert_eq!(world.rooms.occupied_events().await, Err(down.clone()));
        assert_eq!(world.rooms.entrants(event_id, 9).await, Err(down.clone()));
        assert_eq!(world.rooms.renumber(event_id, 9, &[(ann, -1)]).await, Err(down));
        world.server.start_again().unwrap();
        // It knows none of the scripts now.
        let found =
            eventually("Redis answers", async || world.try_line_up(event_id, ann).await.ok());
        assert_eq!(found.await, place);
    });
}

#[test]
fn most_polls_of_those_who_wait_write_nothing() {
    run(async |world| {
        let (event_id, ann) = (world.ids.next_id(), world.ids.next_id());
        let before = world.bytes_written().await;
        world.try_line_up(event_id, ann).await.unwrap();
        let written = world.bytes_written().await;
        assert!(written > before, "the control: coming is written down");
        for _ in 0..100 {
            assert!(world.waits(event_id, ann).await);
        }
        assert_eq!(world.bytes_written().await, written);
    });
}

/// Otherwise a poll that was not written down would cost the place.
#[test]
fn who_was_seen_is_not_swept_although_it_was_not_written_down() {
    run(async |world| {
        let (event_id, ann) = (world.ids.next_id(), world.ids.next_id());
        world.try_line_up(event_id, ann).await.unwrap();
        let seen_key = format!("{{{event_id}}}:seen");
        let age = |seconds| {
            let user = ann.as_bytes().map(|byte| format!("\\{byte}")).concat();
            format!(
                "local set = redis.call('ZRANGE', KEYS[1], 0, 0)[1] \
                 redis.call('ZINCRBY', KEYS[1], -{seconds}e6, set) \
                 redis.call('ZINCRBY', KEYS[1] .. ':' .. set, -{seconds}e6, '{user}') \
                 local room = string.gsub(KEYS[1], 'seen$', 'room') \
                 redis.call('HINCRBY', room, 'began', -{seconds}000000) return 1"
            )
        };
        let sweep = async |seconds| {
            let now = Clock::System.now();
            let since = now - Duration::from_secs(seconds);
            world.rooms.sweep(event_id, since, 9, now).await.unwrap()
        };
        world.lua(&age(50), &seen_key).await;
        world.waits(event_id, ann).await;
        assert_eq!(sweep(10).await, 0, "she was seen just now");
        world.lua(&age(30), &seen_key).await;
        assert_eq!(sweep(10).await, 1, "the control: this long ago nobody was seen");
    });
}

#[test]
fn what_broken_calls_have_reserved_is_found_when_it_is_needed() {
    run(async |world| {
        let ids = &world.ids;
        let (occupied_events, ann) = ([(); 3].map(|()| ids.next_id()), ids.next_id());
        for event_id in &occupied_events[..2] {
            world.try_line_up(*event_id, ann).await.unwrap();
        }
        // As if she had left and the second step had been lost.
        let user = ann.as_bytes().map(|byte| format!("\\{byte}")).concat();
        let remove = format!("return redis.call('ZREM', KEYS[1], '{user}')");
        assert_eq!(world.lua(&remove, &format!("{{{}}}:queue", occupied_events[0])).await, 1);
        // For a moment it might be of someone who is about to line up.
        let refused = world.try_line_up(occupied_events[2], ann).await;
        assert_eq!(refused, Err(RoomError::TooManyQueues));
        eventually("the place is free", async || {
            world.try_line_up(occupied_events[2], ann).await.ok()
        })
        .await;
        assert_eq!(world.try_line_up(occupied_events[0], ann).await, Err(RoomError::TooManyQueues));
        assert!(
            world.waits(occupied_events[1], ann).await
                && world.waits(occupied_events[2], ann).await
        );
    });
}

/// Someone reserves, is stuck, and comes when the place was given to another event.
#[test]
fn who_comes_late_with_a_void_reservation_makes_another() {
    run(async |world| {
        let (event_id, ann) = (world.ids.next_id(), world.ids.next_id());
        let bytes = |id: Uuid| id.as_bytes().map(|byte| format!("\\{byte}")).concat();
        let (user, event) = (bytes(ann), bytes(event_id));
        let hash = format!("queue:users:{{{}}}", ann.as_u128() % 16_384);
        let reserve =
            format!("return redis.call('HSET', KEYS[1], '{user}', '{event}\\0\\0\\0\\0\\0\\0\\7')");
        assert_eq!(world.lua(&reserve, &hash).await, 1);
        // She will renew it a moment before this.
        let mark = format!("{{{event_id}}}:void:{ann}");
        let soon = Clock::System.now().as_microsecond() + 100_000;
        world.lua(&format!("return redis.call('SET', KEYS[1], '{soon}') and 1"), &mark).await;
        eventually("it is not void any more", async || world.try_line_up(event_id, ann).await.ok())
            .await;
        let reserved = format!(
            "return struct.unpack('>I7', string.sub(redis.call('HGET', KEYS[1], '{user}'), 17))"
        );
        assert!(world.lua(&reserved, &hash).await > soon, "it is another one");
        assert!(world.waits(event_id, ann).await);
    });
}

#[test]
fn a_room_that_is_not_listed_any_more_is_listed_again() {
    run(async |world| {
        let (event_id, ann) = (world.ids.next_id(), world.ids.next_id());
        world.try_line_up(event_id, ann).await.unwrap();
        assert_eq!(world.rooms.occupied_events().await.unwrap(), [event_id]);
        world.lua("return redis.call('DEL', KEYS[1])", "queue:active-events").await;
        assert_eq!(
            world.rooms.occupied_events().await.unwrap(),
            NO_ROOMS,
            "the control: it is lost"
        );
        world.rooms.crowd(event_id, Clock::System.now()).await.unwrap();
        assert_eq!(world.rooms.occupied_events().await.unwrap(), [event_id]);
    });
}

/// People come and go so that the room is empty again and again, while others look which rooms are
/// in use and take the empty ones out.
#[test]
fn who_comes_while_the_room_is_taken_out_is_in_a_listed_room() {
    run(async |world| {
        let event_id = world.ids.next_id();
        let rooms = world.rooms.clone();
        let lookers: Vec<_> = (0..3)
            .map(|_| {
                let rooms = rooms.clone();
                tokio::spawn(async move {
                    loop {
                        rooms.occupied_events().await.unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..500 {
            let ann = world.ids.next_id();
            world.try_line_up(event_id, ann).await.unwrap();
            assert_eq!(world.rooms.occupied_events().await.unwrap(), [event_id]);
            assert!(world.rooms.leave(world.request(event_id, ann)).await.unwrap());
        }
        for looker in lookers {
            looker.abort();
        }
        assert_eq!(world.rooms.occupied_events().await.unwrap(), NO_ROOMS);
    });
}
