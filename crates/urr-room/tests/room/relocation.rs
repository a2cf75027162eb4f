//! Rooms that move from a journal to Redis: everybody keeps their number, position and slot.

use urr_kernel::{Secret, Uuid};
use urr_redis::{Redis, RedisTopology};
use urr_room::redis::{RedisRooms, RoomTime};
use urr_room::relocation::{RoomRelocationError, SlotTimes, StoredRooms};
use urr_room::slot_log::audit_redis;
use urr_room::{AdmissionRules, RoomRequest, Rooms, UserStatus};
use urr_test::engines::block_on;
use urr_test::servers::{self, RedisServer, Server};

use crate::fixture::{Form, ROOMY, SLOT_MAX, SLOT_TTL, World};

const RULES: AdmissionRules = AdmissionRules { threshold: 2, ..ROOMY };
const TIMES: SlotTimes = SlotTimes { slot_ttl: SLOT_TTL, slot_max: SLOT_MAX };

async fn statuses(rooms: &Rooms, world: &World, users: &[Uuid]) -> Vec<(UserStatus, Option<Uuid>)> {
    let mut all = Vec::new();
    for user_id in users {
        let request =
            RoomRequest { event_id: world.event_id, user_id: *user_id, now: world.clock.now() };
        let status = rooms.poll(request, &RULES).await.unwrap().status;
        // Ends of slots follow the clock of their engine.
        all.push(match status {
            UserStatus::Active(slot) => (UserStatus::Absent, Some(slot.id)),
            other => (other, None),
        });
    }
    all
}

#[test]
fn everybody_keeps_number_position_and_slot() {
    if !servers::available(Server::Redis).unwrap() {
        return;
    }
    block_on(async {
        // Which rooms are in use is known for the whole server, so it must be our own.
        let server = RedisServer::start().unwrap();
        let place = RedisTopology::Single(Secret::new(server.url()));
        let redis = Redis::connect(&place).await.unwrap();
        let world = World::open(Form::Memory).await.unwrap();
        let users: Vec<Uuid> = (0..12).map(|_| world.ids.next_id()).collect();
        let request = |user_id: Uuid| RoomRequest {
            event_id: world.event_id,
            user_id,
            now: world.clock.now(),
        };
        for user_id in &users {
            world.rooms.check(request(*user_id), &RULES).await.unwrap();
        }
        assert!(world.rooms.leave(request(users[0])).await.unwrap(), "a slot is free");
        assert!(world.rooms.leave(request(users[5])).await.unwrap());
        assert_eq!(
            world.rooms.admit(world.event_id, &RULES, world.clock.now()).await.unwrap().len(),
            1
        );
        let before = statuses(&world.rooms, &world, &users).await;
        let stored = world.stored_rooms().await;
        assert_eq!(stored.counts(), [1, 8, 2]);

        stored.write(&redis, TIMES).await.unwrap();
        // As after a crash before the end of the move.
        stored.write(&redis, TIMES).await.unwrap();
        StoredRooms::finish(&redis).await.unwrap();
        let again = stored.write(&redis, TIMES).await;
        assert!(matches!(again, Err(RoomRelocationError::RoomsInUse)), "{again:?}");

        let rooms =
            Rooms::Redis(RedisRooms::new(redis.clone(), world.ids.clone(), RoomTime::Server));
        assert_eq!(statuses(&rooms, &world, &users).await, before);
        let crowds = [
            world.rooms.crowd(world.event_id, world.clock.now()).await.unwrap(),
            rooms.crowd(world.event_id, world.clock.now()).await.unwrap(),
        ];
        let figures = crowds.map(|crowd| {
            (crowd.waiting, crowd.active, crowd.last_number, crowd.admitted_total, crowd.left_total)
        });
        assert_eq!(figures[0], figures[1]);
        assert_eq!(rooms.occupied_events().await.unwrap(), [world.event_id]);
        // The next one comes behind all others.
        let late = world.ids.next_id();
        let UserStatus::Waiting(last) = rooms.check(request(late), &RULES).await.unwrap().status
        else {
            panic!("others wait")
        };
        assert_eq!((last.number, last.position), (11, 9));
        let audit = audit_redis(&redis, &[world.event_id]).await.unwrap();
        assert_eq!((audit.differences.as_slice(), audit.admissions), (&[][..], 3));
    });
}
