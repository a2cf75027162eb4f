//! What Redis keeps: a command that is sent twice, rooms that do not answer, places that were
//! reserved, and what is left when everybody has gone.

use urr_kernel::{Clock, Uuid};
use urr_room::redis::{RedisRooms, RoomTime};
use urr_room::{ClearedCounts, LinePosition, RoomError, UserStatus};

use crate::redis_failures::{NO_ROOMS, World, run};

/// As Lua writes it.
fn bytes(id: Uuid) -> String {
    id.as_bytes().map(|byte| format!("\\{byte}")).concat()
}

fn user_hash(user_id: Uuid) -> String {
    format!("queue:users:{{{}}}", user_id.as_u128() % 16_384)
}

/// When someone has reserved the only event they wait for.
async fn reserved_at(world: &World, user_id: Uuid) -> i64 {
    let user = bytes(user_id);
    let text = format!(
        "return struct.unpack('>I7', string.sub(redis.call('HGET', KEYS[1], '{user}'), 17))"
    );
    world.lua(&text, &user_hash(user_id)).await
}

/// The client of a Cluster sends again what was not answered in time.
#[test]
fn a_clearing_that_is_sent_twice_clears_once_and_takes_no_newer_place_away() {
    run(async |world| {
        let rooms = RedisRooms::new(world.redis.clone(), world.ids.clone(), RoomTime::Server);
        let (occupied_events, ann) = ([(); 3].map(|()| world.ids.next_id()), world.ids.next_id());
        for event_id in &occupied_events[..2] {
            world.try_line_up(*event_id, ann).await.unwrap();
        }
        let (clear, now) = (world.ids.next_id(), Clock::System.now());
        let cleared = ClearedCounts { waiting: 1, active: 0 };
        assert_eq!(rooms.clear_once(occupied_events[0], clear, now).await, Ok(cleared));
        world.try_line_up(occupied_events[0], ann).await.unwrap();
        // As if she had not been taken out of her queues yet.
        let add = format!("return redis.call('ZADD', KEYS[1], 1, '{}')", bytes(ann));
        world.lua(&add, &format!("{{{}}}:cleared:{clear}", occupied_events[0])).await;
        assert_eq!(
            rooms.clear_once(occupied_events[0], clear, now).await,
            Ok(cleared),
            "as before"
        );
        assert!(world.waits(occupied_events[0], ann).await, "she has come after it");
        assert_eq!(
            world.try_line_up(occupied_events[2], ann).await,
            Err(RoomError::TooManyQueues),
            "the place she has reserved since is hers"
        );
        let another = world.ids.next_id();
        assert_eq!(
            rooms.clear_once(occupied_events[0], another, now).await,
            Ok(cleared),
            "the control"
        );
        assert!(!world.waits(occupied_events[0], ann).await);
        world.try_line_up(occupied_events[2], ann).await.unwrap();
    });
}

/// Otherwise whoever took them out of the line before takes the new place away.
#[test]
fn a_reservation_that_is_used_again_is_renewed() {
    run(async |world| {
        let (event_id, ann) = (world.ids.next_id(), world.ids.next_id());
        world.try_line_up(event_id, ann).await.unwrap();
        let before = reserved_at(&world, ann).await;
        let remove = format!("return redis.call('ZREM', KEYS[1], '{}')", bytes(ann));
        assert_eq!(world.lua(&remove, &format!("{{{event_id}}}:queue")).await, 1);
        world.try_line_up(event_id, ann).await.unwrap();
        assert!(reserved_at(&world, ann).await > before);
    });
}

/// A node of a Cluster that is down has some of the rooms.
#[test]
fn a_room_that_does_not_answer_does_not_hide_the_others() {
    run(async |world| {
        let mut occupied_events = [world.ids.next_id(), world.ids.next_id()];
        for event_id in occupied_events {
            world.try_line_up(event_id, world.ids.next_id()).await.unwrap();
        }
        let spoil = "return redis.call('SET', KEYS[1], 'spoilt') and 1";
        world.lua(spoil, &format!("{{{}}}:room", occupied_events[0])).await;
        let now = Clock::System.now();
        let crowd = world.rooms.crowd(occupied_events[0], now).await;
        assert_eq!(crowd, Err(RoomError::Unavailable), "the control");
        occupied_events.sort_unstable();
        assert_eq!(world.rooms.occupied_events().await.unwrap(), occupied_events);
    });
}

#[test]
fn an_empty_room_leaves_its_numbers_behind_and_these_not_for_ever() {
    run(async |world| {
        let (event_id, ann) = (world.ids.next_id(), world.ids.next_id());
        let key = |name: &str| format!("{{{event_id}}}:{name}");
        let ttl = "return redis.call('TTL', KEYS[1])";
        let line_up = async || world.try_line_up(event_id, ann).await.unwrap();
        let first = UserStatus::Waiting(LinePosition { number: 1, position: 1 });
        assert_eq!(line_up().await, first);
        // What a broken script might leave.
        let slots = "return redis.call('HSET', KEYS[1], 'someone', 'something')";
        world.lua(slots, &key("slots")).await;
        assert!(world.rooms.leave(world.request(event_id, ann)).await.unwrap());
        assert_eq!(world.rooms.occupied_events().await.unwrap(), NO_ROOMS);
        let count = "local count = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
                     if redis.call('TTL', key) == -1 then count = count + 1 end end return count";
        assert_eq!(world.lua(count, "any").await, 0, "nothing stays for ever");
        let snapshot = "return #redis.call('KEYS', KEYS[1] .. '*')";
        for gone in ["seen", "active", "slots", "queue"] {
            assert_eq!(world.lua(snapshot, &key(gone).replace(['{', '}'], "?")).await, 0, "{gone}");
        }
        assert!(world.lua(ttl, &key("room")).await > 80 * 86_400);
        let second = UserStatus::Waiting(LinePosition { number: 2, position: 1 });
        assert_eq!(line_up().await, second, "numbers go on");
        assert_eq!(world.lua(ttl, &key("room")).await, -1, "and stay while somebody is there");
        let user_ttl = world.lua(ttl, &user_hash(ann)).await;
        assert!((1..=30 * 86_400).contains(&user_ttl), "{user_ttl}");
    });
}
