//! kill -9 of Redis while people come (Q10): who was told of a place has it afterwards.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::mpsc;
use urr_kernel::{Clock, IdSource, Secret, Uuid};
use urr_redis::{Redis, RedisOptions, RedisTopology};
use urr_room::redis::{RedisRooms, RoomTime};
use urr_room::{AdmissionRules, AdmissionState, LinePosition, RoomRequest, Rooms, UserStatus};
use urr_test::engines::block_on;
use urr_test::eventually;
use urr_test::servers::{self, Server};

use crate::fixture::ROOMY;

const ROUNDS: usize = 3;
const TASKS: usize = 8;
/// Redis is killed when so many more were told of their place.
const TOLD_PER_ROUND: usize = 1_000;
const SHUT: AdmissionRules = AdmissionRules { admission: AdmissionState::Closed, ..ROOMY };

struct World {
    rooms: Rooms,
    event_id: Uuid,
    ids: IdSource,
    /// What people were told.
    answer: HashMap<Uuid, i64>,
}

impl World {
    async fn connect(server: &servers::RedisServer) -> World {
        let options = RedisOptions {
            open_for: Duration::from_millis(50),
            response_timeout: Duration::from_secs(10),
            ..RedisOptions::default()
        };
        let place = RedisTopology::Single(Secret::new(server.url()));
        let redis = Redis::connect_with(&place, options).await.unwrap();
        let ids = IdSource::from_system_randomness(Clock::System);
        let rooms = Rooms::Redis(RedisRooms::new(redis, ids.clone(), RoomTime::Server));
        World { rooms, event_id: ids.next_id(), ids, answer: HashMap::new() }
    }

    fn request(&self, user_id: Uuid) -> RoomRequest {
        RoomRequest { event_id: self.event_id, user_id, now: Clock::System.now() }
    }

    /// People come until Redis is killed, which it is meanwhile.
    async fn crash(&mut self, server: &mut servers::RedisServer) {
        let (tell, mut answer) = mpsc::unbounded_channel();
        for _ in 0..TASKS {
            let (rooms, ids, event_id) = (self.rooms.clone(), self.ids.clone(), self.event_id);
            let tell = tell.clone();
            tokio::spawn(async move {
                loop {
                    let (user_id, now) = (ids.next_id(), Clock::System.now());
                    let answer = rooms.check(RoomRequest { event_id, user_id, now }, &SHUT).await;
                    let Ok(snapshot) = answer else { return };
                    let UserStatus::Waiting(place) = snapshot.status else {
                        panic!("{snapshot:?}")
                    };
                    tell.send((user_id, place.number)).unwrap();
                }
            });
        }
        drop(tell);
        for _ in 0..TOLD_PER_ROUND {
            let (user_id, number) = answer.recv().await.unwrap();
            self.answer.insert(user_id, number);
        }
        server.kill().unwrap();
        while let Some((user_id, number)) = answer.recv().await {
            self.answer.insert(user_id, number);
        }
        server.start_again().unwrap();
        eventually("the rooms answer again", async || {
            self.rooms.crowd(self.event_id, Clock::System.now()).await.ok()
        })
        .await;
    }

    /// How many of those who were told of a place do not have it.
    async fn lost(&self) -> usize {
        let mut lost = 0;
        let entrants = self.rooms.entrants(self.event_id, i64::MAX).await.unwrap();
        let positions: HashMap<Uuid, u32> = entrants.iter().copied().zip(1..).collect();
        assert_eq!(positions.len(), entrants.len(), "somebody waits twice");
        for (user_id, number) in &self.answer {
            let snapshot = self.rooms.poll(self.request(*user_id), &SHUT).await.unwrap();
            match snapshot.status {
                UserStatus::Waiting(place) => {
                    let expected = LinePosition { number: *number, position: positions[user_id] };
                    assert_eq!(place, expected);
                }
                UserStatus::Absent => lost += 1,
                UserStatus::Active(slot) => panic!("{slot:?}"),
            }
        }
        let numbers: Vec<Option<&i64>> =
            entrants.iter().map(|user| self.answer.get(user)).collect();
        assert!(numbers.iter().flatten().is_sorted_by(|a, b| a < b), "the order is another one");
        lost
    }
}

/// How many have lost their place after each crash.
async fn crash_again_and_again(settings: &[[&str; 2]]) -> Option<[usize; ROUNDS]> {
    if !servers::available(Server::Redis).unwrap() {
        return None;
    }
    let mut server = servers::RedisServer::start_with(settings).unwrap();
    let mut world = World::connect(&server).await;
    let mut lost = [0; ROUNDS];
    for lost in &mut lost {
        world.crash(&mut server).await;
        *lost = world.lost().await;
    }
    Some(lost)
}

#[test]
fn a_redis_that_is_killed_costs_nobody_a_place_they_were_told_of() {
    block_on(async {
        let lost = crash_again_and_again(&[["--appendfsync", "always"]]).await;
        assert!(lost.is_none_or(|lost| lost == [0; ROUNDS]), "{lost:?}");
    });
}

/// The control.
#[test]
fn a_redis_that_keeps_nothing_is_noticed() {
    block_on(async {
        let lost = crash_again_and_again(&[["--appendonly", "no"]]).await;
        assert!(lost.is_none_or(|lost| lost[0] >= TOLD_PER_ROUND), "{lost:?}");
    });
}
